package k8swatch_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ingresses = networkingv1.SchemeGroupVersion.WithResource("ingresses")

var routes = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "routes"}

func ingress(namespace, name string, hosts ...string) *networkingv1.Ingress {
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, h := range hosts {
		i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: h})
	}
	return i
}

// start runs a watcher or group, and stops it when the test ends. With a number, it waits until
// that has so many objects.
func start(t testing.TB, r interface{ Run(context.Context) error }, want ...int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(stop)
	for _, n := range want {
		synced(t, r.(syncing), n)
	}
	return stop
}

// syncing is what knows when it has all its objects.
type syncing interface {
	WaitForSync(context.Context) (int, error)
}

// patience is used up by a test that fails alone, so it may be long: the machine
// may have a lot else to do.
const patience = 2 * time.Minute

// soon is a context that ends long after anything that works.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func synced(t testing.TB, w syncing, want int) {
	t.Helper()
	n, err := w.WaitForSync(soon(t))
	require.NoError(t, err)
	require.Equal(t, want, n)
}

// errOf is the error of a call of which nothing else matters.
func errOf[T any](_ T, err error) error { return err }

// eventually polls a condition that no channel tells of.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func names[T k8swatch.Object](objs []T) string {
	text := ""
	for _, o := range objs {
		text += fmt.Sprintf("%s/%s ", o.GetNamespace(), o.GetName())
	}
	return text
}

func mustNew(t testing.TB, src k8swatch.Source, gvr schema.GroupVersionResource, opts *k8swatch.Options) *k8swatch.Watcher {
	t.Helper()
	w, err := k8swatch.New(src, gvr, opts)
	require.NoError(t, err)
	return w
}

// watching is a watcher that runs and has so many objects.
func watching(t testing.TB, src k8swatch.Source, gvr schema.GroupVersionResource, opts *k8swatch.Options, want int) *k8swatch.Watcher {
	t.Helper()
	w := mustNew(t, src, gvr, opts)
	start(t, w, want)
	return w
}

func mustFolder(t testing.TB, dir string, opts *k8swatch.FolderOptions) *k8swatch.Folder {
	t.Helper()
	f, err := k8swatch.NewFolder(dir, opts)
	require.NoError(t, err)
	return f
}

// recorder is an OnChange that keeps what it was told.
type recorder struct {
	mu    sync.Mutex
	calls []k8swatch.Changes
}

func (r *recorder) onChange(_ context.Context, c k8swatch.Changes) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
	return nil
}

func (r *recorder) all() []k8swatch.Changes {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// numbers is what changed, without the objects.
func numbers(c k8swatch.Changes) [6]int {
	initial := 0
	if c.InitialSync {
		initial = 1
	}
	return [6]int{c.Created, c.Modified, c.Deleted, initial, int(c.From), int(c.To)}
}

// rise makes most at least n.
func rise(most *atomic.Int32, n int32) {
	for {
		if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
			return
		}
	}
}

// elapse lets the time of a synctest bubble pass.
func elapse(d time.Duration) { <-time.After(d) }

// bubble is a test whose time passes when all wait.
func bubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}
