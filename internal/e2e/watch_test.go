package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/internal/watchtest"
	"github.com/hapticsdk/haptic/k8swatch"
)

// newPatientServer is for tests in which no connection may be lost that the test
// does not cut: an API server that stands still for a while keeps it.
func newPatientServer(t *testing.T) *watchServer {
	t.Helper()
	s := newWatchServer(t)
	s.source = s.connect(apiToken, &k8swatch.ClusterOptions{PingTimeout: patience})
	return s
}

// TestWatchSuite: the API server does what the one in memory does.
func TestWatchSuite(t *testing.T) {
	watchtest.Suite(t, func(t *testing.T, test func(*testing.T, watchtest.Server)) {
		test(t, newPatientServer(t))
	})
}

// TestWatchModel checks watchers of every kind against fresh lists, with
// connections that are cut and refused, and compactions.
func TestWatchModel(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newPatientServer(t)
			watchtest.Model(t, s, watchtest.ModelOptions{Seed: seed, Rounds: 6, Steps: 15, Faults: []func(*rand.Rand) func(){
				func(*rand.Rand) func() { s.wire.cut(); return nil },
				func(*rand.Rand) func() { s.must(compactEtcd(t.Context())); return nil },
				func(*rand.Rand) func() { s.wire.refuse(true); return func() { s.wire.refuse(false) } },
			}})
		})
	}
}

// watchConfigMaps runs a watcher until the test ends.
func (s *watchServer) watchConfigMaps(t *testing.T) *k8swatch.Watcher {
	t.Helper()
	w, err := k8swatch.New(s.source, watchtest.ConfigMaps, &k8swatch.Options{Namespace: s.ns})
	s.must(err)
	done := make(chan error, 1)
	go func() { done <- w.Run(t.Context()) }()
	t.Cleanup(func() { // the context ends before
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	_, err = w.WaitForSync(t.Context())
	s.must(err)
	return w
}

func (s *watchServer) configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
}

func (s *watchServer) seen(w *k8swatch.Watcher, name string) func() error {
	return func() error {
		if w.Snapshot().ByName(s.ns, name) == nil {
			return fmt.Errorf("%s is not in the store: %+v", name, w.State())
		}
		return nil
	}
}

// TestWatchAPIServerRestarts: a watcher tells since when it is stale, and finds
// what changed while the API server came back.
func TestWatchAPIServerRestarts(t *testing.T) {
	s := newWatchServer(t)
	w := s.watchConfigMaps(t)
	s.must(s.Apply(t.Context(), s.configMap("before")))
	eventually(t, "the first change is seen", s.seen(w, "before"))
	env.cluster.api.kill()
	eventually(t, "the loss is seen", func() error {
		if st := w.State(); st.Phase != k8swatch.PhaseStale || st.StaleSince.IsZero() || st.Objects != 1 || !errors.Is(st.Err, k8swatch.ErrUnreachable) {
			return fmt.Errorf("state %+v", st)
		}
		return nil
	})
	s.must(env.cluster.startAPI())
	s.must(s.Apply(t.Context(), s.configMap("after")))
	eventually(t, "the change after the return is seen", s.seen(w, "after"))
	eventually(t, "the state is well", func() error {
		if st := w.State(); st.Phase != k8swatch.PhaseSynced || st.Err != nil || !st.StaleSince.IsZero() {
			return fmt.Errorf("state %+v", st)
		}
		return nil
	})
}

// TestWatchHalfOpen: a network that swallows everything is found by pings.
func TestWatchHalfOpen(t *testing.T) {
	s := newWatchServer(t)
	w := s.watchConfigMaps(t)
	s.must(s.Apply(t.Context(), s.configMap("seen")))
	eventually(t, "the watch is open", s.seen(w, "seen"))
	s.wire.silence(true)
	s.must(s.Apply(t.Context(), s.configMap("unseen")))
	eventually(t, "the silence is found", func() error {
		if st := w.State(); st.Phase != k8swatch.PhaseStale {
			return fmt.Errorf("state %+v", st)
		}
		return nil
	})
	s.wire.silence(false)
	s.wire.cut() // what was swallowed is missing in each of them
	eventually(t, "the change is seen", s.seen(w, "unseen"))
}

// TestWatchFigures measures how soon watchers notice.
func TestWatchFigures(t *testing.T) {
	if !*figures {
		t.Skip("a measurement: run it with -figures")
	}
	s := newWatchServer(t)
	w := s.watchConfigMaps(t)
	stale := func() error {
		if st := w.State(); st.Phase != k8swatch.PhaseStale {
			return fmt.Errorf("state %+v", st)
		}
		return nil
	}
	s.must(s.Apply(t.Context(), s.configMap("zeroth")))
	eventually(t, "the watch is open", s.seen(w, "zeroth"))
	begun := time.Now()
	s.wire.silence(true)
	eventuallyWithin(t, time.Minute, "the silence is found", stale)
	t.Logf("half-open connection found after %v", time.Since(begun).Round(time.Millisecond))
	s.wire.silence(false)
	s.wire.cut()
	s.must(s.Apply(t.Context(), s.configMap("first")))
	eventually(t, "the watch is back", s.seen(w, "first"))

	env.cluster.api.kill()
	<-time.After(40 * time.Second) // the length of the outage is what is measured
	s.must(env.cluster.startAPI())
	back := time.Now()
	s.must(s.Apply(t.Context(), s.configMap("second")))
	eventuallyWithin(t, time.Minute, "the change is seen", s.seen(w, "second"))
	t.Logf("change made at once visible %v after the API server was ready, having been away 40 s", time.Since(back).Round(time.Millisecond))
}
