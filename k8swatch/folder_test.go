package k8swatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
)

const ingressYAML = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: %s
spec:
  rules:
  - host: %s
`

// write replaces a file in one step: a reader sees the old or the new one, never
// one that is cut, however slow the writer is.
func write(t testing.TB, name, text string) {
	t.Helper()
	next := filepath.Join(filepath.Dir(name), ".next-"+filepath.Base(name))
	require.NoError(t, os.WriteFile(next, []byte(text), 0o600))
	require.NoError(t, os.Rename(next, name))
}

// errorLog collects what OnError is told.
type errorLog struct {
	mu   sync.Mutex
	errs []error
}

func (l *errorLog) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

func (l *errorLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.errs...).Error()
}

func (l *errorLog) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.errs)
}

// TestManifestErrors is the specification in testdata: each mistake with its line.
func TestManifestErrors(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/manifests/errors.txtar")
	require.NoError(t, err)
	content := map[string]string{}
	for _, f := range archive.Files {
		content[f.Name] = string(f.Data)
	}
	for name, want := range content {
		name, ok := strings.CutSuffix(name, ".want")
		if !ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, name), content[name])
			f := mustFolder(t, dir, nil)
			got := ""
			for _, err := range f.Errors() {
				var m *k8swatch.ManifestError
				require.ErrorAs(t, err, &m)
				require.Equal(t, filepath.Join(dir, name), m.File)
				text, known := strings.CutSuffix(err.Error(), "; no earlier version of it is known: none of it is in use")
				require.True(t, known, "%v does not say what is in use", err)
				got += strings.TrimPrefix(text, filepath.Join(dir, name)+":") + "\n"
			}
			require.Empty(t, cmp.Diff(want, got), "(-want +got)\n")
		})
	}
}

func TestFolderObjects(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "all.yaml"), `
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: haproxy}
spec: {controller: example.com/haproxy}
--- # a List, whose items need not say what they are
apiVersion: networking.k8s.io/v1
kind: IngressList
items:
- metadata: {name: listed, namespace: shop}
---
apiVersion: v1
kind: Secret
metadata: {name: s}
data: {a: MQ==, b: MQ==}
stringData: {b: two, c: three}
---
apiVersion: example.com/v1
kind: Route
metadata: {name: r}
spec: {count: 3, anything: [goes]}
`)
	write(t, filepath.Join(dir, "svc.json"), `{"apiVersion":"v1","kind":"Service","metadata":{"name":"j"}}`)
	write(t, filepath.Join(dir, "README.md"), "not a manifest")
	write(t, filepath.Join(dir, ".hidden.yaml"), "not: a manifest")
	f := mustFolder(t, dir, nil)
	require.Empty(t, f.Errors())
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	classes := networkingv1.SchemeGroupVersion.WithResource("ingressclasses")
	g := k8swatch.NewGroup(nil)
	for _, gvr := range []struct {
		w    *k8swatch.Watcher
		want string
	}{
		{mustNew(t, f, classes, nil), "/haproxy"},
		{mustNew(t, f, ingresses, nil), "shop/listed"},
		{mustNew(t, f, secrets, nil), "default/s"},
		{mustNew(t, f, routes, nil), "default/r"},
		{mustNew(t, f, services, nil), "default/j"},
	} {
		require.NoError(t, g.Add(gvr.w))
		defer func() {
			if got := strings.TrimSpace(names(gvr.w.Snapshot().List())); got != gvr.want {
				t.Errorf("%s: %q, want %q", gvr.w.Resource().Resource, got, gvr.want)
			}
		}()
	}
	start(t, g, 5)
	snap := g.Snapshot()
	secret := k8swatch.Read[*corev1.Secret](snap.Resource(secrets)).GetSingle("default", "s")
	require.Empty(t, cmp.Diff(map[string][]byte{"a": []byte("1"), "b": []byte("two"), "c": []byte("three")}, secret.Data))
	require.Nil(t, secret.StringData)
	if got, want := secret.Annotations[k8swatch.SourceAnnotation], filepath.Join(dir, "all.yaml")+":12"; got != want {
		t.Errorf("source %q, want %q", got, want)
	}
	route := k8swatch.Read[*unstructured.Unstructured](snap.Resource(routes)).GetSingle()
	if n, _, _ := unstructured.NestedInt64(route.Object, "spec", "count"); n != 3 {
		t.Errorf("route %v", route)
	}
}

// followed is a folder that runs, with a watcher of its ingresses.
func followed(t *testing.T, files map[string]string) (dir string, f *k8swatch.Folder, w *k8swatch.Watcher, log *errorLog) {
	t.Helper()
	dir, log = t.TempDir(), &errorLog{}
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	f = mustFolder(t, dir, &k8swatch.FolderOptions{OnError: log.add})
	w = mustNew(t, f, ingresses, &k8swatch.Options{IndexBy: []string{"spec.rules[*].host"}})
	start(t, f)
	start(t, w)
	require.NoError(t, errOf(w.WaitForSync(soon(t))))
	// Events are followed from here on: this one comes through.
	write(t, filepath.Join(dir, "ready.yaml"), fmt.Sprintf(ingressYAML, "ready", "ready.test"))
	eventually(t, "the folder is followed", func() bool { return w.Snapshot().GetSingle("ready.test") != nil })
	return dir, f, w, log
}

func TestFolderFollows(t *testing.T) {
	dir, f, w, log := followed(t, map[string]string{"a.yaml": fmt.Sprintf(ingressYAML, "a", "a.test")})
	path := filepath.Join(dir, "a.yaml")
	has := func(host string) func() bool { return func() bool { return w.Snapshot().GetSingle(host) != nil } }
	version := func() string { return w.Snapshot().ByName("default", "a").GetResourceVersion() }

	require.NoError(t, os.WriteFile(path, []byte(fmt.Sprintf(ingressYAML, "a", "a2.test")), 0o600))
	eventually(t, "a save in place", has("a2.test"))

	// Saved without a change: nothing happens. Another file shows that it was read.
	before := version()
	write(t, path, fmt.Sprintf(ingressYAML, "a", "a2.test"))
	write(t, filepath.Join(dir, "b.yaml"), fmt.Sprintf(ingressYAML, "b", "b.test"))
	eventually(t, "a new file", has("b.test"))
	require.Equal(t, before, version(), "the resource version changed without the content")

	// As editors do it: a new file is moved over the old one.
	write(t, filepath.Join(dir, ".a.yaml.swp"), fmt.Sprintf(ingressYAML, "a", "a3.test"))
	require.NoError(t, os.Rename(filepath.Join(dir, ".a.yaml.swp"), path))
	eventually(t, "a rename", has("a3.test"))

	// Broken: an error, and the last good content stays.
	write(t, path, "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a}\nspecs: {}\n")
	eventually(t, "the error is told", func() bool { return log.len() == 1 })
	require.Equal(t, path+`:4: Ingress: unknown field "specs"; its last good version stays in use`, log.String(), "told")
	require.Len(t, f.Errors(), 1, "told")
	require.True(t, has("a3.test")(), "the last good content went")
	write(t, path, fmt.Sprintf(ingressYAML, "a", "a4.test"))
	eventually(t, "mended", has("a4.test"))
	require.Empty(t, f.Errors(), "mended, but")

	require.NoError(t, os.Remove(path))
	eventually(t, "a deleted file", func() bool { return w.Snapshot().ByName("default", "a") == nil })
	require.Equal(t, 1, log.len())
}

// TestFolderHalfWritten: an editor that truncates and writes in steps never makes
// an object disappear.
func TestFolderHalfWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	text := fmt.Sprintf(ingressYAML, "a", "a.test") + "---\n" + fmt.Sprintf(ingressYAML, "b", "b.test")
	write(t, path, text)
	log := &errorLog{}
	f := mustFolder(t, dir, &k8swatch.FolderOptions{OnError: log.add})
	f.SetSettle(time.Hour) // a busy machine may put long pauses between the steps
	deleted := make(chan struct{}, 100)
	w := mustNew(t, f, ingresses, &k8swatch.Options{
		IndexBy: []string{"spec.rules[*].host"}, Debounce: -1,
		OnChange: func(_ context.Context, c k8swatch.Changes) error {
			if c.Deleted > 0 {
				deleted <- struct{}{}
			}
			return nil
		},
	})
	start(t, f)
	start(t, w, 2)
	write(t, filepath.Join(dir, "z.yaml"), fmt.Sprintf(ingressYAML, "z", "z.test"))
	eventually(t, "the folder is followed: its first look takes what it finds as finished", func() bool { return w.Snapshot().GetSingle("z.test") != nil })
	for i := range 20 {
		host := fmt.Sprintf("b%d.test", i)
		text := strings.Replace(text, "b.test", host, 1)
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		require.NoError(t, err)
		for _, part := range []string{text[:50], text[50 : len(text)/2], text[len(text)/2 : len(text)-3], text[len(text)-3:]} {
			require.NoError(t, errOf(file.WriteString(part)))
		}
		require.NoError(t, file.Close())
		eventually(t, "the save is taken in", func() bool { return w.Snapshot().GetSingle(host) != nil })
	}
	require.Empty(t, deleted)
	require.Zero(t, log.len())
}

// TestFolderEmptied: what stays less than it was is meant, but for a file without
// anything.
func TestFolderEmptied(t *testing.T) {
	dir, f, w, _ := followed(t, map[string]string{
		"a.yaml": fmt.Sprintf(ingressYAML, "a", "a.test") + "---\n" + fmt.Sprintf(ingressYAML, "b", "b.test"),
	})
	write(t, filepath.Join(dir, "a.yaml"), fmt.Sprintf(ingressYAML, "a", "a.test"))
	eventually(t, "the second document is gone", func() bool { return w.Snapshot().GetSingle("b.test") == nil })
	require.NotNil(t, w.Snapshot().GetSingle("a.test"), "the first document went, too")
	for _, empty := range []string{"", " \n\t\n"} {
		write(t, filepath.Join(dir, "a.yaml"), empty)
		eventually(t, "the empty file is told", func() bool {
			return errorsOf(f, dir) == "a.yaml: it is empty: to delete its objects, delete it or leave a comment in it; its last good version stays in use"
		})
		require.NotNil(t, w.Snapshot().GetSingle("a.test"), "%q deleted the object", empty)
	}
	write(t, filepath.Join(dir, "a.yaml"), "# none\n---\n")
	eventually(t, "a comment deletes", func() bool { return w.Snapshot().GetSingle("a.test") == nil && len(f.Errors()) == 0 })
	write(t, filepath.Join(dir, "a.yaml"), "")
	write(t, filepath.Join(dir, "b.yaml"), fmt.Sprintf(ingressYAML, "b", "b.test"))
	eventually(t, "the next file", func() bool { return w.Snapshot().GetSingle("b.test") != nil })
	require.Empty(t, errorsOf(f, dir), "an empty file that had no objects")
}

func TestFolderConflict(t *testing.T) {
	dir, f, w, log := followed(t, map[string]string{"b.yaml": fmt.Sprintf(ingressYAML, "x", "b.test")})
	write(t, filepath.Join(dir, "a.yaml"), "\n"+fmt.Sprintf(ingressYAML, "x", "a.test"))
	eventually(t, "the conflict is told", func() bool { return log.len() == 1 })
	want := filepath.Join(dir, "a.yaml") + ":2: Ingress default/x is defined at " + filepath.Join(dir, "b.yaml") + ":1 already; that one is in use"
	require.Equal(t, want, log.String(), "told")
	require.Len(t, f.Errors(), 1, "told")
	require.NotNil(t, w.Snapshot().GetSingle("b.test"), "the object that was there first went")
	require.NoError(t, os.Remove(filepath.Join(dir, "b.yaml")))
	eventually(t, "the other takes its place", func() bool { return w.Snapshot().GetSingle("a.test") != nil })
	require.Empty(t, f.Errors(), "resolved, but")
}

func TestFolderUnreadable(t *testing.T) {
	require.ErrorIs(t, errOf(k8swatch.NewFolder(filepath.Join(t.TempDir(), "missing"), nil)), os.ErrNotExist, "a missing folder")
	dir := t.TempDir()
	path := filepath.Join(dir, "dangling.yaml")
	if err := os.Symlink(dir, path); err != nil { // a directory where a file should be
		t.Fatal(err)
	}
	f := mustFolder(t, dir, nil)
	var m *k8swatch.ManifestError
	if errs := f.Errors(); len(errs) != 1 || !errors.As(errs[0], &m) || m.File != path || m.Line != 0 {
		t.Errorf("errors %v", errs)
	}
}

// TestSecretsDoNotPrint: what is wrong with a Secret is told without its value.
func TestSecretsDoNotPrint(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "s.yaml"), "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  number: 8675309\n  list: [hunter2]\n")
	f := mustFolder(t, dir, nil)
	if text := fmt.Sprint(f.Errors()); len(f.Errors()) != 1 || strings.Contains(text, "8675309") || strings.Contains(text, "hunter2") {
		t.Error(text)
	}
}

// TestOnErrorMayAskTheFolder: a callback that looks at what is wrong.
func TestOnErrorMayAskTheFolder(t *testing.T) {
	dir := t.TempDir()
	var folder atomic.Pointer[k8swatch.Folder]
	counts := make(chan int, 10)
	f := mustFolder(t, dir, &k8swatch.FolderOptions{OnError: func(error) {
		if f := folder.Load(); f != nil {
			counts <- len(f.Errors())
		}
	}})
	folder.Store(f)
	start(t, f)
	write(t, filepath.Join(dir, "a.yaml"), "kind: [\n")
	select {
	case n := <-counts:
		require.Equal(t, 1, n)
	case <-soon(t).Done():
		t.Fatal("no error, or a deadlock")
	}
	write(t, filepath.Join(dir, "b.yaml"), fmt.Sprintf(ingressYAML, "web", "a.test"))
	write(t, filepath.Join(dir, "c.yaml"), fmt.Sprintf(ingressYAML, "web", "a.test"))
	select {
	case n := <-counts:
		require.Equal(t, 2, n)
	case <-soon(t).Done():
		t.Fatal("no conflict, or a deadlock")
	}
}

// TestFolderOrder: of files that are read together, Services come before EndpointSlices, and
// both before Ingresses, whatever the order in the files. A reader that is faster than the rest
// then sees no Ingress of a Service that is still to come.
func TestFolderOrder(t *testing.T) {
	var text strings.Builder
	for i := range 10 {
		fmt.Fprintf(&text, ingressYAML+"---\n", fmt.Sprint("site", i), "a.test")
		fmt.Fprintf(&text, "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: site%d}\naddressType: IPv4\nendpoints: []\n---\n", i)
		fmt.Fprintf(&text, "apiVersion: v1\nkind: Service\nmetadata: {name: site%d}\n---\n", i)
	}
	_, f, _, _ := followed(t, map[string]string{"sites.yaml": text.String()})
	last := 0
	for _, gvr := range []schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("services"),
		discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), networkingv1.SchemeGroupVersion.WithResource("ingresses")} {
		before := last
		for i := range 10 {
			o, err := f.Fetch(t.Context(), gvr, "default", fmt.Sprint("site", i))
			require.NoError(t, err)
			came, err := strconv.Atoi(o.GetResourceVersion())
			require.NoError(t, err)
			require.Greater(t, came, before, "%s %s", gvr.Resource, o.GetName())
			last = max(last, came)
		}
	}
}
