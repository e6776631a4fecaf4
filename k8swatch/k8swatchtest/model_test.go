package k8swatchtest_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/internal/watchtest"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

var (
	seed  = flag.Uint64("seed", 0, "repeat the model with this seed alone")
	seeds = flag.Uint64("seeds", 60, "run the model with so many seeds")
)

// server is the source in memory as one under test, in a bubble of synctest.
type server struct{ src *k8swatchtest.Source }

func (s server) Source() k8swatch.MetadataSource { return s.src }
func (s server) Namespace() string               { return "shop" }

func (s server) Apply(_ context.Context, cm *corev1.ConfigMap) error {
	s.src.Apply(cm)
	return nil
}

func (s server) Delete(_ context.Context, name string) error {
	if !s.src.Delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}) {
		return fmt.Errorf("%s is not there", name)
	}
	return nil
}

func (s server) Compact(context.Context) error {
	s.src.Compact()
	return nil
}

func (s server) Install(_ context.Context, names ...string) error {
	s.src.Install(watchtest.Routes)
	for _, name := range names {
		s.src.Apply(watchtest.Route("shop", name))
	}
	return nil
}

func (s server) Uninstall(context.Context) error {
	s.src.Uninstall(watchtest.Routes)
	return nil
}

// Settle lets so much time pass that there is no excuse left.
func (s server) Settle(check func() error) error {
	<-time.After(15 * time.Second)
	synctest.Wait()
	return check()
}

// TestSuite: what the real API server does, too.
func TestSuite(t *testing.T) {
	watchtest.Suite(t, func(t *testing.T, test func(*testing.T, watchtest.Server)) {
		synctest.Test(t, func(t *testing.T) { test(t, server{k8swatchtest.NewSource()}) })
	})
}

// TestModel checks watchers against a fresh list while everything changes.
func TestModel(t *testing.T) {
	first, last := uint64(1), *seeds
	if *seed != 0 {
		first, last = *seed, *seed
	}
	for n := first; n <= last; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := k8swatchtest.NewSource()
				watchtest.Model(t, server{src}, watchtest.ModelOptions{
					Seed: n, Rounds: 8, Steps: 25, Faults: faults(src), Removals: []func(*rand.Rand){removal(src)},
				})
			})
		})
	}
}

func pass(r *rand.Rand) { <-time.After(time.Duration(r.IntN(3000)) * time.Millisecond) }

// removal uninstalls the resource and installs it again: at once, after a while,
// or so long after that everybody knows.
func removal(src *k8swatchtest.Source) func(*rand.Rand) {
	return func(r *rand.Rand) {
		src.Uninstall(watchtest.ConfigMaps)
		if r.IntN(3) > 0 {
			pass(r)
		}
		src.Install(watchtest.ConfigMaps)
	}
}

func faults(src *k8swatchtest.Source) []func(*rand.Rand) func() {
	return []func(*rand.Rand) func(){
		func(*rand.Rand) func() { src.Drop(); return nil },
		func(*rand.Rand) func() { src.Compact(); return nil },
		func(*rand.Rand) func() { src.Bookmark(); return nil },
		func(*rand.Rand) func() { synctest.Wait(); return nil },
		func(r *rand.Rand) func() { pass(r); return nil },
		func(r *rand.Rand) func() { src.Partition(); pass(r); return src.Restore },
		func(r *rand.Rand) func() {
			verbs := [][]string{{"list"}, {"watch"}, {"get"}, nil}
			src.Forbid(watchtest.ConfigMaps, verbs[r.IntN(len(verbs))]...)
			pass(r)
			return func() { src.Allow(watchtest.ConfigMaps) }
		},
		func(r *rand.Rand) func() {
			slow := time.Duration(r.IntN(3000)) * time.Millisecond
			src.OnRequest(func(ctx context.Context, r k8swatchtest.Request) error {
				select {
				case <-time.After(slow):
				case <-ctx.Done():
				}
				return ctx.Err()
			})
			return func() { src.OnRequest(nil) }
		},
		func(r *rand.Rand) func() {
			src.EatBookmarks(true)
			src.Drop()
			return func() { src.EatBookmarks(false) }
		},
	}
}
