package k8swatch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// naming are Ingresses and the Secrets that their spec.tls names, in one group.
type naming struct {
	ingresses, secrets *k8swatch.Watcher
	group              *k8swatch.Group
	recorder
}

func newNaming(t *testing.T, src k8swatch.Source, opts k8swatch.OnlyNamed) *naming {
	t.Helper()
	n := &naming{}
	n.group = k8swatch.NewGroup(&k8swatch.GroupOptions{Debounce: -1, OnChange: n.onChange, Logger: quiet})
	n.secrets = mustNew(t, src, secrets, &k8swatch.Options{OnlyNamed: &opts, Logger: quiet})
	n.ingresses = mustNew(t, src, ingresses, &k8swatch.Options{Logger: quiet, Names: func(o k8swatch.Object, name func(*k8swatch.Watcher, types.NamespacedName)) {
		for _, tls := range o.(*networkingv1.Ingress).Spec.TLS {
			name(n.secrets, types.NamespacedName{Namespace: o.GetNamespace(), Name: tls.SecretName})
		}
	}})
	require.NoError(t, n.group.Add(n.ingresses, n.secrets))
	start(t, n.group)
	return n
}

// with is an Ingress that names Secrets.
func with(name string, secrets ...string) *networkingv1.Ingress {
	ing := ingress("shop", name)
	for _, s := range secrets {
		ing.Spec.TLS = append(ing.Spec.TLS, networkingv1.IngressTLS{SecretName: s})
	}
	return ing
}

// in lists the Secrets of a snapshot with their passwords, or why they are withheld.
func (n *naming) in(s *k8swatch.GroupSnapshot) string {
	var all []string
	for _, o := range k8swatch.Read[*corev1.Secret](s.Of(n.secrets)).List() {
		switch {
		case k8swatch.Withheld(o) != "":
			all = append(all, o.Name+" withheld")
		default:
			all = append(all, o.Name+"="+password(o))
		}
	}
	return strings.Join(all, " ")
}

func (n *naming) now() string { return n.in(n.group.Snapshot()) }

// big is a Secret of so many bytes.
func big(name string, bytes int) *corev1.Secret {
	s := secret("shop", name, name)
	s.Data["big"] = make([]byte, bytes)
	return s
}

func TestOnlyNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(with("i", "a", "none"), secret("shop", "a", "1"), secret("shop", "b", "2"), secret("blog", "a", "3"), secret("shop", "own", "4"))
		n := newNaming(t, src, k8swatch.OnlyNamed{Always: []types.NamespacedName{{Namespace: "shop", Name: "own"}}})
		synced(t, n.group, 3)
		require.Equal(t, "a=1 own=4", n.now(), "what is named, and what is always held")

		src.Apply(secret("shop", "a", "one"))
		src.Apply(secret("shop", "b", "two"))
		synctest.Wait()
		require.Equal(t, "a=one own=4", n.now(), "a change of what is named")
		src.Apply(secret("shop", "none", "5"))
		synctest.Wait()
		require.Equal(t, "a=one none=5 own=4", n.now(), "what is named is created")
		src.Delete(secret("shop", "none", ""))
		synctest.Wait()
		require.Equal(t, "a=one own=4", n.now(), "and deleted")

		src.Apply(with("i", "b"))
		synctest.Wait()
		require.Equal(t, "a=one b=two own=4", n.now(), "what is named no longer stays while there is room")
		src.Delete(secret("shop", "a", ""))
		src.Apply(secret("shop", "a", "again"))
		synctest.Wait()
		require.Equal(t, "b=two own=4", n.now(), "and goes with its object")

		// A list finds what the watch missed.
		src.Partition()
		recreated := secret("shop", "b", "other")
		recreated.UID = "other"
		src.Apply(recreated)
		src.Delete(secret("shop", "own", ""))
		src.Compact()
		src.Restore()
		elapse(10 * time.Second)
		require.Equal(t, "b=other", n.now())
		require.NoError(t, n.group.Refresh(t.Context()))
		require.Zero(t, n.secrets.State().Refused)
		require.Equal(t, 1, n.secrets.State().Objects)
	})
}

// TestNamedComesFirst: no snapshot has an object without what it names, however long that takes to
// fetch, below a second. Other objects do not wait.
func TestNamedComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(with("i", "a"))
		for i := range 100 {
			src.Apply(secret("shop", fmt.Sprint("a", i), "1"), secret("shop", "a", "1"))
		}
		src.OnRequest(func(_ context.Context, r k8swatchtest.Request) error {
			if r.Verb == "get" {
				elapse(900 * time.Millisecond)
			}
			return nil
		})
		n := newNaming(t, src, k8swatch.OnlyNamed{})
		synced(t, n.group, 2)
		require.Equal(t, "a=1", n.now(), "the initial objects are complete")

		src.Apply(with("i", "a0", "a1"), ingress("shop", "other"))
		elapse(time.Millisecond)
		require.NotNil(t, n.group.Snapshot().Of(n.ingresses).ByName("shop", "other"), "another object waits")
		elapse(time.Second)
		require.Equal(t, "a=1 a0=1 a1=1", n.now())
		for _, c := range n.all() {
			ing := c.Snapshot.Of(n.ingresses).ByName("shop", "i").(*networkingv1.Ingress)
			for _, tls := range ing.Spec.TLS {
				require.Contains(t, n.in(c.Snapshot), tls.SecretName+"=", "a snapshot without it")
			}
		}

		// A newer version takes the place of one that waits, and a deletion ends the wait.
		src.Apply(with("i", "a2"))
		elapse(time.Millisecond)
		src.Apply(with("i", "a0"))
		src.Apply(with("j", "a3"))
		elapse(time.Millisecond)
		src.Delete(with("j"))
		elapse(time.Minute)
		require.Equal(t, "a0", n.group.Snapshot().Of(n.ingresses).ByName("shop", "i").(*networkingv1.Ingress).Spec.TLS[0].SecretName)
		require.Nil(t, n.group.Snapshot().Of(n.ingresses).ByName("shop", "j"))
	})
}

// TestNamedCannotBeFetched: a fetch that fails is repeated. It delays what names the object by a
// second, and the first sync until it works.
func TestNamedCannotBeFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(with("i", "a"), secret("shop", "a", "1"), secret("shop", "b", "2"))
		src.Forbid(secrets, "get")
		n := newNaming(t, src, k8swatch.OnlyNamed{})
		_, err := n.group.WaitForSync(t.Context())
		var missing *k8swatch.SyncError
		require.ErrorAs(t, err, &missing)
		require.ErrorIs(t, err, k8swatch.ErrForbidden)
		require.Equal(t, "get", missing.Verb)
		require.Equal(t, secrets, missing.Resource)
		require.ErrorContains(t, err, "shop/a")
		src.Allow(secrets)
		elapse(5 * time.Second)
		synced(t, n.group, 2)
		require.Equal(t, "a=1", n.now())
		require.Equal(t, k8swatch.PhaseSynced, n.secrets.State().Phase)

		src.OnRequest(func(_ context.Context, r k8swatchtest.Request) error {
			if r.Verb == "get" {
				return errors.New("not now")
			}
			return nil
		})
		src.Apply(with("i", "b"))
		src.Apply(secret("shop", "a", "one"))
		elapse(1001 * time.Millisecond)
		require.Equal(t, "b", n.group.Snapshot().Of(n.ingresses).ByName("shop", "i").(*networkingv1.Ingress).Spec.TLS[0].SecretName)
		require.Equal(t, "a=1", n.now(), "the version from before stays")
		require.Equal(t, k8swatch.PhaseStale, n.secrets.State().Phase)
		require.ErrorContains(t, n.secrets.State().Err, "not now")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var unfetched *k8swatch.FetchError
		require.ErrorAs(t, n.secrets.Fetch(ctx, types.NamespacedName{Namespace: "shop", Name: "b"}), &unfetched)
		require.Equal(t, "b", unfetched.Name)
		src.OnRequest(nil)
		elapse(10 * time.Second)
		require.Equal(t, "a=one b=2", n.now())
		require.Equal(t, k8swatch.PhaseSynced, n.secrets.State().Phase)
	})
}

// TestNamedBudget: a namespace has a bound, and what is beyond it is refused by name. What nothing
// names makes room first.
func TestNamedBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const kb = 1 << 10
		src := k8swatchtest.NewSource(with("i", "a", "b"), big("a", 300*kb), big("b", 300*kb), big("c", 300*kb), big("d", 300*kb), secret("blog", "x", "7"))
		n := newNaming(t, src, k8swatch.OnlyNamed{BytesPerNamespace: 700 * kb})
		synced(t, n.group, 3)
		require.Equal(t, "a=a b=b", n.now())

		src.Apply(with("j", "c"))
		synctest.Wait()
		require.Equal(t, "a=a b=b c withheld", n.now())
		c := n.group.Snapshot().Of(n.secrets).ByName("shop", "c")
		require.Equal(t, "no room is left for its 0.3 MiB: what is named of namespace shop has 0.6 MiB, of 0.7 MiB at most", k8swatch.Withheld(c))
		require.Equal(t, 1, n.secrets.State().Refused)
		require.NotEmpty(t, c.GetUID())
		require.Equal(t, "Secret", c.GetObjectKind().GroupVersionKind().Kind)

		other := with("k", "x")
		other.Namespace = "blog"
		src.Apply(other)
		synctest.Wait()
		require.Equal(t, "x=7 a=a b=b c withheld", n.now(), "another namespace has room")

		src.Apply(with("i", "a"))
		synctest.Wait()
		require.Equal(t, "x=7 a=a c=c", n.now(), "what nothing names makes room")
		require.Zero(t, n.secrets.State().Refused)

		grown := big("a", 500*kb)
		grown.Data["password"] = []byte("grown")
		src.Apply(grown)
		synctest.Wait()
		require.Equal(t, "x=7 a=a c=c", n.now(), "one that grows beyond the bound stays as it was")
		require.Equal(t, 1, n.secrets.State().Refused)
		src.Delete(with("j"), big("c", 0))
		synctest.Wait()
		require.Equal(t, "x=7 a=grown", n.now(), "until there is room")

		// An author cannot pretend that there is none.
		forged := secret("blog", "x", "8")
		forged.Annotations = map[string]string{"haptic.hapticsdk.dev/withheld": "forged"}
		src.Apply(forged)
		synctest.Wait()
		require.Equal(t, "x=8 a=grown", n.now())
	})
}

// TestNamedBudgetOfAll: all namespaces together have a bound, too.
func TestNamedBudgetOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const kb = 1 << 10
		src := k8swatchtest.NewSource()
		n := newNaming(t, src, k8swatch.OnlyNamed{BytesPerNamespace: 700 * kb, Bytes: 1000 * kb})
		synced(t, n.group, 0)
		for i := range 4 {
			s, ing := big("s", 300*kb), with("i", "s")
			s.Namespace, ing.Namespace = fmt.Sprint(i), fmt.Sprint(i)
			src.Apply(s, ing)
			synctest.Wait()
		}
		require.Equal(t, "s=s s=s s=s s withheld", n.now())
		require.Contains(t, k8swatch.Withheld(n.group.Snapshot().Of(n.secrets).ByName("3", "s")), "what is named of all namespaces has 0.9 MiB, of 1.0 MiB at most")
		ing := with("i")
		ing.Namespace = "1"
		src.Apply(ing)
		synctest.Wait()
		require.Equal(t, "s=s s=s s=s", n.now(), "what nothing names makes room, also for others")
		require.NotNil(t, n.group.Snapshot().Of(n.secrets).ByName("3", "s"))
	})
}

// TestNamedWithoutNumber: names beyond what a namespace can hold are left alone, and none of another
// namespace is.
func TestNamedWithoutNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(secret("shop", "z", "1"), secret("blog", "z", "2"))
		n := newNaming(t, src, k8swatch.OnlyNamed{BytesPerNamespace: 100 << 10})
		synced(t, n.group, 0)
		var all []string
		for i := range 1100 {
			all = append(all, fmt.Sprint("s", i))
		}
		src.Apply(with("i", append(all, "z")...))
		other := with("i", "z")
		other.Namespace = "blog"
		src.Apply(other)
		synctest.Wait()
		require.Equal(t, "z=2", n.now())
		src.Apply(with("i", append(all[:1000], "z")...))
		synctest.Wait()
		src.Apply(with("i", "z"))
		synctest.Wait()
		require.Equal(t, "z=2 z=1", n.now())
	})
}

// TestNamedMemory: 400 Secrets that nothing names take no memory, and 50 named ones no more than
// their namespace has.
func TestNamedMemory(t *testing.T) {
	src := k8swatchtest.NewSource(with("i", "s0"))
	for i := range 400 {
		src.Apply(big(fmt.Sprint("s", i), 250_000))
	}
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	n := newNaming(t, src, k8swatch.OnlyNamed{BytesPerNamespace: 4 << 20})
	synced(t, n.group, 2)
	require.Less(t, heap()-before, 2<<20, "one is named")
	var all []string
	for i := range 50 {
		all = append(all, fmt.Sprint("s", i))
	}
	src.Apply(with("i", all...))
	eventually(t, "all are held or withheld", func() bool { return n.secrets.Snapshot().Len() == 50 })
	require.Less(t, heap()-before, 6<<20)
	withheld := map[string]bool{}
	for o := range n.secrets.Snapshot().All() {
		withheld[o.GetName()] = k8swatch.Withheld(o) != ""
	}
	require.Len(t, withheld, 50)
	require.Equal(t, 34, n.secrets.State().Refused, "16 fit: %v", slices.Sorted(maps.Keys(withheld)))
	runtime.KeepAlive(src)
}

// TestNamedInFolders: the sources without a cluster hold what is named, at once.
func TestNamedInFolders(t *testing.T) {
	const manifests = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: i, namespace: shop}
spec: {tls: [{secretName: a}]}
---
apiVersion: v1
kind: Secret
metadata: {name: a, namespace: shop}
stringData: {password: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: b, namespace: shop}
stringData: {password: "2"}
`
	dir := t.TempDir()
	write(t, dir+"/all.yaml", manifests)
	f := mustFolder(t, dir, nil)
	start(t, f)
	n := newNaming(t, f, k8swatch.OnlyNamed{})
	synced(t, n.group, 2)
	require.Equal(t, "a=1", n.now())
	require.Contains(t, n.secrets.Snapshot().ByName("shop", "a").GetAnnotations()[k8swatch.SourceAnnotation], "all.yaml:")
	write(t, dir+"/all.yaml", strings.ReplaceAll(strings.ReplaceAll(manifests, `"1"`, `"one"`), "secretName: a", "secretName: b"))
	eventually(t, "the change", func() bool { return n.now() == "a=one b=2" })

	static, err := k8swatch.NewStatic(with("i", "a"), secret("shop", "a", "1"), secret("shop", "b", "2"))
	require.NoError(t, err)
	n = newNaming(t, static, k8swatch.OnlyNamed{})
	synced(t, n.group, 2)
	require.Equal(t, "a=1", n.now())
}

// TestNamedFetch: an object can be held without one that names it.
func TestNamedFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(secret("shop", "a", "1"))
		n := newNaming(t, src, k8swatch.OnlyNamed{})
		synced(t, n.group, 0)
		require.NoError(t, n.secrets.Fetch(t.Context(), types.NamespacedName{Namespace: "shop", Name: "a"}, types.NamespacedName{Namespace: "shop", Name: "none"}))
		require.Equal(t, "a=1", n.now())
		src.Apply(secret("shop", "a", "one"))
		synctest.Wait()
		require.Equal(t, "a=one", n.now(), "it is followed")
		require.ErrorContains(t, n.ingresses.Fetch(t.Context()), "holds all objects")
	})
}

// TestNamedUntyped: custom resources, and those of one namespace.
func TestNamedUntyped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		route := func(namespace, name string, bytes int) *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"host": strings.Repeat("h", bytes)}}}
			u.SetAPIVersion("example.com/v1")
			u.SetKind("Route")
			u.SetNamespace(namespace)
			u.SetName(name)
			return u
		}
		src := k8swatchtest.NewSource(route("shop", "a", 1), route("shop", "b", 5000), route("blog", "a", 1), with("i", "a", "b"))
		w := mustNew(t, src, routes, &k8swatch.Options{Namespace: "shop", Logger: quiet, OnlyNamed: &k8swatch.OnlyNamed{BytesPerNamespace: 4000}})
		start(t, w)
		namer := mustNew(t, src, ingresses, &k8swatch.Options{Names: func(_ k8swatch.Object, name func(*k8swatch.Watcher, types.NamespacedName)) {
			for _, of := range []types.NamespacedName{{Namespace: "shop", Name: "a"}, {Namespace: "shop", Name: "b"}, {Namespace: "blog", Name: "a"}} {
				name(w, of)
			}
		}})
		start(t, namer, 1)
		synctest.Wait()
		require.Equal(t, "shop/a shop/b ", names(w.Snapshot().List()))
		require.NotEmpty(t, k8swatch.Withheld(w.Snapshot().ByName("shop", "b")))
		require.Equal(t, "Route", w.Snapshot().ByName("shop", "b").GetObjectKind().GroupVersionKind().Kind)
	})
}

func TestOnlyNamedRefuses(t *testing.T) {
	for _, opts := range []k8swatch.Options{
		{OnlyNamed: &k8swatch.OnlyNamed{Bytes: -1}},
		{BytesPerNamespace: -1},
		{OnlyNamed: &k8swatch.OnlyNamed{}, BytesPerNamespace: 1},
		{OnlyNamed: &k8swatch.OnlyNamed{}, Names: func(k8swatch.Object, func(*k8swatch.Watcher, types.NamespacedName)) {}},
	} {
		var wrong *k8swatch.OptionError
		require.ErrorAs(t, errOf(k8swatch.New(k8swatchtest.NewSource(), secrets, &opts)), &wrong)
	}
	require.ErrorContains(t, errOf(k8swatch.New(brokenSource{}, secrets, &k8swatch.Options{OnlyNamed: &k8swatch.OnlyNamed{}})), "has no metadata alone")
	require.Empty(t, k8swatch.Withheld(&metav1.PartialObjectMetadata{}))
}
