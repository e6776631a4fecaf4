package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
)

// watchers are one of each kind over the same objects. The single one watches
// the object "one".
type watchers[T k8swatch.Object] struct {
	resource schema.GroupVersionResource
	bulk     *k8swatch.Watcher
	single   *k8swatch.Single[T]
	cached   *k8swatch.Cached[T] // keeps nothing: each look-up fetches

	mu   sync.Mutex
	told k8swatch.Changes // by the bulk watcher
	tale []string         // by the single one
}

// startWatchers runs them until the test ends. They fetch the initial objects
// with lists or by a stream.
func startWatchers[T k8swatch.Object](t *testing.T, src k8swatch.MetadataSource, gvr schema.GroupVersionResource, ns string, lists bool) *watchers[T] {
	t.Helper()
	w := &watchers[T]{resource: gvr}
	var errs [3]error
	w.bulk, errs[0] = k8swatch.New(src, gvr, &k8swatch.Options{
		Namespace: ns, NoWatchList: lists, Debounce: -1, CallOnChangeDuringSync: true, OnChange: w.onChange,
	})
	w.single, errs[1] = k8swatch.NewSingle(src, gvr, ns, "one", &k8swatch.SingleOptions[T]{NoWatchList: lists, OnChange: w.onSingle})
	w.cached, errs[2] = k8swatch.NewCached[T](src, gvr, &k8swatch.CachedOptions{Namespace: ns, NoWatchList: lists, TTL: -1})
	must(t, errors.Join(errs[:]...))
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{w.bulk.Run, w.single.Run, w.cached.Run} {
		running.Go(func() {
			if err := run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(running.Wait) // the context ends before
	return w
}

func (w *watchers[T]) onChange(_ context.Context, c k8swatch.Changes) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told.Created += c.Created
	w.told.Modified += c.Modified
	w.told.Deleted += c.Deleted
	return nil
}

func (w *watchers[T]) onSingle(_ context.Context, c k8swatch.SingleChange[T]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	what := "modified"
	switch {
	case c.Initial && c.Deleted: // a list that came before the object
		return nil
	case c.Deleted:
		what = "deleted"
	case c.Created:
		what = "created"
	}
	w.tale = append(w.tale, what)
	return nil
}

func (w *watchers[T]) states() map[string]k8swatch.State {
	return map[string]k8swatch.State{"bulk": w.bulk.State(), "single": w.single.State(), "cached": w.cached.State()}
}

// fail checks that all of them say what is wrong: the phase, the resource, and
// one of the verbs.
func (w *watchers[T]) fail(phase k8swatch.Phase, reason error, verbs ...string) func() error {
	return func() error {
		for kind, s := range w.states() {
			var why *k8swatch.SyncError
			if s.Phase != phase || !errors.Is(s.Err, reason) || !errors.As(s.Err, &why) ||
				why.Resource != w.resource || !slices.Contains(verbs, why.Verb) ||
				!strings.Contains(s.Err.Error(), why.Verb+" "+w.resource.GroupResource().String()) {
				return fmt.Errorf("%s: state %+v", kind, s)
			}
			if s.Synced == s.StaleSince.IsZero() {
				return fmt.Errorf("%s: does not say since when it is stale: %+v", kind, s)
			}
		}
		return nil
	}
}

// hold checks that they hold the named objects, and not whether they are well.
func (w *watchers[T]) hold(names ...string) error {
	for kind, snap := range map[string]*k8swatch.Snapshot{"bulk": w.bulk.Snapshot(), "cached": w.cached.Metadata()} {
		if got := named(snap); !slices.Equal(got, names) {
			return fmt.Errorf("%s: holds %q, want %q", kind, got, names)
		}
	}
	if _, ok := w.single.Get(); ok != slices.Contains(names, "one") {
		return fmt.Errorf("single: holds one: %v", ok)
	}
	return nil
}

// well checks that they hold the named objects, can be read, and have told so.
func (w *watchers[T]) well(told k8swatch.Changes, tale string, names ...string) func() error {
	return func() error {
		for kind, s := range w.states() {
			if s.Phase != k8swatch.PhaseSynced || s.Err != nil || !s.StaleSince.IsZero() {
				return fmt.Errorf("%s: state %+v", kind, s)
			}
		}
		if err := w.hold(names...); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if all, err := w.cached.List(ctx); err != nil || len(all) != len(names) {
			return fmt.Errorf("cached: %d objects, %w", len(all), err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if [3]int{w.told.Created, w.told.Modified, w.told.Deleted} != [3]int{told.Created, told.Modified, told.Deleted} {
			return fmt.Errorf("told %+v, want %+v", w.told, told)
		}
		if got := strings.Join(w.tale, " "); got != tale {
			return fmt.Errorf("single: told %q, want %q", got, tale)
		}
		return nil
	}
}

func named(snap *k8swatch.Snapshot) []string {
	names := []string{}
	for _, o := range snap.List() {
		names = append(names, o.GetName())
	}
	return names
}

// few is in what time watchers find out that the cause of a failure has gone, on
// a machine that is busy with other things.
const few = 30 * time.Second

// recovers waits for what check says, and logs how long it took.
func (s *watchServer) recovers(t *testing.T, what string, check func() error) {
	t.Helper()
	begun := time.Now()
	eventuallyWithin(t, few, what, check)
	t.Logf("%s: after %v", what, time.Since(begun).Round(time.Millisecond))
}
