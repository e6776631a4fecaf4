package k8swatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestOptionsAreChecked: each wrong option is named, with the form that is wanted.
func TestOptionsAreChecked(t *testing.T) {
	folder := mustFolder(t, t.TempDir(), nil)
	leases := fake.NewClientset().CoordinationV1()
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	watch := func(o k8swatch.Options) error { _, err := k8swatch.New(folder, pods, &o); return err }
	elect := func(o k8swatch.ElectionOptions) error { _, err := k8swatch.NewElection(&o); return err }
	cached := func(o k8swatch.CachedOptions) error {
		_, err := k8swatch.NewCached[*corev1.Pod](k8swatchtest.NewSource(), pods, &o)
		return err
	}
	_, noFolder := k8swatch.NewFolder("", nil)
	_, badBound := k8swatch.NewFolder(t.TempDir(), &k8swatch.FolderOptions{MaxFile: -1})
	_, noCluster := k8swatch.NewCluster(&k8swatch.ClusterOptions{Kubeconfig: "/no/such"})
	const times = "RenewDeadline 10s, RetryPeriod 2s: want each shorter than the one before, and the last one by a fifth"
	for want, err := range map[string]error{
		`k8swatch: pods: Namespace "NO SUCH": want the name of a namespace: a-z, 0-9 and -, 63 characters at most`:                                watch(k8swatch.Options{Namespace: "NO SUCH"}),
		`k8swatch: pods: LabelSelector "a in b": want one such as app=haproxy: unable to parse requirement: found 'b' expected: '('`:              watch(k8swatch.Options{LabelSelector: "a in b"}),
		`k8swatch: pods: FieldSelector "x": want one such as type=kubernetes.io/tls: invalid selector: 'x'; can't understand 'x'`:                 watch(k8swatch.Options{FieldSelector: "x"}),
		`k8swatch: pods: IndexBy: jsonpath "a[": wrong at offset 1: unterminated array: use .field, ['key'], [3], [-1], [*] or [?(@.field=="x")]`: watch(k8swatch.Options{IndexBy: []string{"a["}}),
		`k8swatch: pods: MaxBytes -1, Parallel 0: want 0 or more`:                                                                                 cached(k8swatch.CachedOptions{MaxBytes: -1}),
		`k8swatch: pods: MaxBytes 0, Parallel -1: want 0 or more`:                                                                                 cached(k8swatch.CachedOptions{Parallel: -1}),
		`k8swatch: ElectionOptions.Client is missing: want one such as Clientset().CoordinationV1()`:                                              elect(k8swatch.ElectionOptions{}),
		`k8swatch: ElectionOptions.Namespace "": want the namespace of the Lease`:                                                                 elect(k8swatch.ElectionOptions{Client: leases, Name: "a"}),
		`k8swatch: ElectionOptions.Name "A": want the name of the Lease`:                                                                          elect(k8swatch.ElectionOptions{Client: leases, Namespace: "a", Name: "A"}),
		`k8swatch: ElectionOptions.LeaseDuration -1s, ` + times:                                                                                   elect(k8swatch.ElectionOptions{Client: leases, Namespace: "a", Name: "a", LeaseDuration: -time.Second}),
		`k8swatch: ElectionOptions.LeaseDuration 5s, ` + times:                                                                                    elect(k8swatch.ElectionOptions{Client: leases, Namespace: "a", Name: "a", LeaseDuration: 5 * time.Second}),
		`k8swatch: manifests: the path is empty: want a folder`:                                                                                   noFolder,
		`k8swatch: FolderOptions.MaxFile -1: want 0 or more bytes`:                                                                                badBound,
		`k8swatch: ClusterOptions.Kubeconfig "/no/such": want a file that says how to reach a cluster: stat /no/such: no such file or directory`:  noCluster,
	} {
		require.EqualError(t, err, want)
	}
}

// TestPathsAndTypesAreChecked: a path that no object has, or that takes what the watcher needs, is
// refused, and so is a type that the objects do not have.
func TestPathsAndTypesAreChecked(t *testing.T) {
	src := k8swatchtest.NewSource()
	index := func(path string) error {
		_, err := k8swatch.New(src, ingresses, &k8swatch.Options{IndexBy: []string{path}})
		return err
	}
	ignore := func(gvr schema.GroupVersionResource, paths ...string) error {
		_, err := k8swatch.New(src, gvr, &k8swatch.Options{IgnoreFields: paths})
		return err
	}
	_, noName := k8swatch.NewSingle[*corev1.Secret](src, secrets, "shop", "", nil)
	_, wrongType := k8swatch.NewSingle[*corev1.ConfigMap](src, secrets, "shop", "main", nil)
	_, notTyped := k8swatch.NewSingle[*corev1.ConfigMap](src, routes, "shop", "main", nil)
	_, badPath := k8swatch.NewSingle(src, secrets, "shop", "main", &k8swatch.SingleOptions[k8swatch.Object]{IgnoreFields: []string{"spec"}})
	const needed = "the watcher needs this field"
	for _, tt := range []struct {
		err  error
		want string
	}{
		{index("spec.rules[?(@.host.host"), "use .field"},
		{index("spec.rulez"), `no field "rulez"`},
		{ignore(ingresses, "metadata.managedfields"), `no field "managedfields"`},
		{ignore(ingresses, "{.metadata.name}"), needed},
		{ignore(ingresses, "metadata['name']"), needed},
		{ignore(ingresses, `$["metadata"].uid`), needed},
		{ignore(routes, "metadata['resourceVersion']"), needed},
		{ignore(routes, "metadata.*"), needed},
		{ignore(routes, "*"), needed},
		{ignore(routes, "*.name"), needed},
		{ignore(routes, "metadata"), needed},
		{noName, "needs the name"},
		{wrongType, "its objects are *v1.Secret, not *v1.ConfigMap"},
		{notTyped, "its objects are *unstructured.Unstructured, not *v1.ConfigMap"},
		{badPath, `no field "spec"`},
	} {
		var option *k8swatch.OptionError
		require.ErrorAs(t, tt.err, &option)
		require.ErrorContains(t, tt.err, tt.want)
	}
	require.NoError(t, ignore(routes, "metadata.labels", "spec.*"))
}

// TestNilAndZero: what is missing is an error, or a panic where there is none, that
// names it and says what to do.
func TestNilAndZero(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	src := k8swatchtest.NewSource()
	watch := func(src k8swatch.Source, gvr schema.GroupVersionResource) func() error {
		return func() error { _, err := k8swatch.New(src, gvr, nil); return err }
	}
	single := func(src k8swatch.Source) func() error {
		return func() error {
			_, err := k8swatch.NewSingle[*networkingv1.Ingress](src, ingresses, "a", "b", nil)
			return err
		}
	}
	cached := func(src k8swatch.MetadataSource) func() error {
		return func() error {
			_, err := k8swatch.NewCached[*networkingv1.Ingress](src, ingresses, nil)
			return err
		}
	}
	static := func(objs ...*corev1.Pod) func() error {
		return func() error { _, err := k8swatch.NewStatic(objs[0]); return err }
	}
	const noSource = "k8swatch: ingresses: the source is missing: want one of NewCluster, NewFolder or NewStatic"
	for name, tt := range map[string]struct {
		do   func() error
		want string
	}{
		"New: no source":             {watch(nil, ingresses), noSource},
		"New: a nil Cluster":         {watch((*k8swatch.Cluster)(nil), ingresses), noSource},
		"New: a nil Folder":          {watch((*k8swatch.Folder)(nil), ingresses), noSource},
		"New: a zero Cluster":        {watch(&k8swatch.Cluster{}, ingresses), noSource},
		"New: a zero Folder":         {watch(&k8swatch.Folder{}, ingresses), noSource},
		"New: a zero Static":         {watch(&k8swatch.Static{}, ingresses), noSource},
		"New: no resource":           {watch(src, schema.GroupVersionResource{Version: "v1"}), `k8swatch: Resource "", Version "v1": want both, such as corev1.SchemeGroupVersion.WithResource("services")`},
		"New: no version":            {watch(src, schema.GroupVersionResource{Resource: "pods"}), `k8swatch: pods: Resource "pods", Version "": want both, such as corev1.SchemeGroupVersion.WithResource("services")`},
		"NewSingle: no source":       {single(nil), noSource},
		"NewSingle: a nil Cluster":   {single((*k8swatch.Cluster)(nil)), noSource},
		"NewCached: no source":       {cached(nil), noSource},
		"NewCached: a nil Cluster":   {cached((*k8swatch.Cluster)(nil)), noSource},
		"Group.Add: nil":             {func() error { return k8swatch.NewGroup(nil).Add(mustNew(t, src, ingresses, nil), nil) }, "k8swatch: Group.Add: watcher 1 is nil: see the error of its New"},
		"Group.Add: a zero Watcher":  {func() error { return k8swatch.NewGroup(nil).Add(&k8swatch.Watcher{}) }, "k8swatch: Group.Add: watcher 0 is not made by New"},
		"Group: zero, Add":           {func() error { return new(k8swatch.Group).Add(mustNew(t, src, ingresses, nil)) }, "k8swatch: a Group that NewGroup did not make"},
		"Group: zero, Run":           {func() error { return new(k8swatch.Group).Run(ctx) }, "k8swatch: a Group that NewGroup did not make"},
		"Watcher: zero":              {func() error { return new(k8swatch.Watcher).Run(ctx) }, "k8swatch: a Watcher that New did not make"},
		"Single: zero":               {func() error { return new(k8swatch.Single[*corev1.Pod]).Run(ctx) }, "k8swatch: a Single that NewSingle did not make"},
		"Cached: zero":               {func() error { return new(k8swatch.Cached[*corev1.Pod]).Run(ctx) }, "k8swatch: a Cached that NewCached did not make"},
		"Folder: zero":               {func() error { return new(k8swatch.Folder).Run(ctx) }, "k8swatch: a Folder that NewFolder did not make"},
		"NewStatic: a nil Pod":       {static(nil), "k8swatch: object 0 is nil"},
		"NewSnapshot: nil":           {func() error { _, err := k8swatch.NewSnapshot(ingresses, nil, nil); return err }, "k8swatch: object 0 is nil"},
		"NewSnapshot: a nil Ingress": {func() error { _, err := k8swatch.NewSnapshot(ingresses, nil, (*networkingv1.Ingress)(nil)); return err }, "k8swatch: object 0 is nil"},
		"NewSnapshot: a nil Route":   {func() error { _, err := k8swatch.NewSnapshot(routes, nil, (*Route)(nil)); return err }, "k8swatch: object 0 is nil"},
		"DecodeManifest: nil":        {func() error { _, err := k8swatch.DecodeManifest("f.yaml", nil); return err }, "f.yaml:1: not a Kubernetes object"},
		"NewElection: nil":           {func() error { _, err := k8swatch.NewElection(nil); return err }, "k8swatch: ElectionOptions.Client is missing: want one such as Clientset().CoordinationV1()"},
		"Election.Run: nil": {func() error {
			e, err := k8swatch.NewElection(&k8swatch.ElectionOptions{Client: fake.NewClientset().CoordinationV1(), Namespace: "a", Name: "a"})
			if err != nil {
				return err
			}
			return e.Run(t.Context(), nil)
		}, "k8swatch: Election.Run: lead is missing: want the work of a term"},
		"Read: nil": {func() error {
			defer func() { panic(recover()) }()
			k8swatch.Read[*corev1.Pod](mustGroup(t, src).Snapshot().Of(nil))
			return nil
		}, "k8swatch: Read: the snapshot is nil: is the watcher in the group?"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			func() {
				defer func() {
					if p := recover(); p != nil && strings.HasPrefix(name, "Read") {
						err = fmt.Errorf("%v", p)
					} else if p != nil {
						t.Errorf("panic: %v", p)
					}
				}()
				err = tt.do()
			}()
			require.EqualError(t, err, tt.want)
		})
	}
}

func mustGroup(t *testing.T, src k8swatch.Source) *k8swatch.Group {
	t.Helper()
	g := k8swatch.NewGroup(nil)
	require.NoError(t, g.Add(mustNew(t, src, ingresses, nil)))
	return g
}
