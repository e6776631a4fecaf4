package k8swatch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestOptionsAreChecked: each wrong option is named, with the form that is wanted.
func TestOptionsAreChecked(t *testing.T) {
	folder, err := k8swatch.NewFolder(t.TempDir(), nil)
	require.NoError(t, err)
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
		`k8swatch: pods: Namespace "NO SUCH": want the name of a namespace: a-z, 0-9 and -, 63 characters at most`:                                          watch(k8swatch.Options{Namespace: "NO SUCH"}),
		`k8swatch: pods: LabelSelector "a in b": want one such as app=haproxy: unable to parse requirement: found 'b' expected: '('`:                        watch(k8swatch.Options{LabelSelector: "a in b"}),
		`k8swatch: pods: FieldSelector "x": want one such as type=kubernetes.io/tls: invalid selector: 'x'; can't understand 'x'`:                           watch(k8swatch.Options{FieldSelector: "x"}),
		`k8swatch: pods: IndexBy: jsonpath "a[": wrong at offset 1: unterminated array: use .field, ['key'], [3], [*], [-2:], [?(@.field=="x")] or ..field`: watch(k8swatch.Options{IndexBy: []string{"a["}}),
		`k8swatch: pods: MaxBytes -1, Parallel 0: want 0 or more`:                                                                                           cached(k8swatch.CachedOptions{MaxBytes: -1}),
		`k8swatch: pods: MaxBytes 0, Parallel -1: want 0 or more`:                                                                                           cached(k8swatch.CachedOptions{Parallel: -1}),
		`k8swatch: ElectionOptions.Client is missing: want one such as Clientset().CoordinationV1()`:                                                        elect(k8swatch.ElectionOptions{}),
		`k8swatch: ElectionOptions.Namespace "": want the namespace of the Lease`:                                                                           elect(k8swatch.ElectionOptions{Client: leases, Name: "a"}),
		`k8swatch: ElectionOptions.Name "A": want the name of the Lease`:                                                                                    elect(k8swatch.ElectionOptions{Client: leases, Namespace: "a", Name: "A"}),
		`k8swatch: ElectionOptions.LeaseDuration -1s, ` + times:                                                                                             elect(k8swatch.ElectionOptions{Client: leases, Namespace: "a", Name: "a", LeaseDuration: -time.Second}),
		`k8swatch: ElectionOptions.LeaseDuration 5s, ` + times:                                                                                              elect(k8swatch.ElectionOptions{Client: leases, Namespace: "a", Name: "a", LeaseDuration: 5 * time.Second}),
		`k8swatch: manifests: the path is empty: want a folder`:                                                                                             noFolder,
		`k8swatch: FolderOptions.MaxFile -1: want 0 or more bytes`:                                                                                          badBound,
		`k8swatch: ClusterOptions.Kubeconfig "/no/such": want a file that says how to reach a cluster: stat /no/such: no such file or directory`:            noCluster,
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
