package settings

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
)

type leads struct{ atomic.Bool }

func (l *leads) Leading() bool { return l.Load() }

// TestLiveLeads: a leader whose watches were broken when its term began deploys nothing
// before they are back, or their time is over.
func TestLiveLeads(t *testing.T) {
	const another = "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: shop, name: another}\n"
	for name, test := range map[string]struct {
		back  time.Duration // of the API server, after the term began
		newer bool          // what is deployed first
	}{
		"they come back": {5 * time.Second, true},
		"they do not":    {time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, target, leader := k8swatchtest.NewSource(k8swatchtest.Objects(liveManifests)...), &fakeTarget{name: "a"}, &leads{}
				live, err := NewLive(LiveOptions{Source: source, Program: ProgramOptions{Namespace: "edge"}})
				require.NoError(t, err)
				loop, err := live.NewLoop(reconcile.Options{Targets: []reconcile.Target{target}, Leader: leader})
				require.NoError(t, err)
				ctx, stop := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				defer wg.Wait()
				defer stop()
				wg.Go(func() { _ = live.Run(ctx) })
				wg.Go(func() { _ = loop.Run(ctx) })
				require.NoError(t, live.ApplyYAML(ctx, "settings", []byte(liveSettings)))
				time.Sleep(time.Minute)
				require.Empty(t, target.texts(), "it follows")

				source.OnRequest(func(context.Context, k8swatchtest.Request) error { return errors.New("away") })
				source.Drop()
				source.Apply(k8swatchtest.Objects(another)...)
				time.Sleep(time.Minute)
				leader.Store(true)
				loop.LeadershipChanged()
				time.Sleep(min(test.back, refreshTime-time.Millisecond))
				require.Empty(t, target.texts(), "it knows that it may have missed something")
				if test.back < refreshTime {
					source.OnRequest(nil)
				}
				time.Sleep(4 * time.Second)
				require.NotEmpty(t, target.texts())
				require.Equal(t, test.newer, strings.Contains(target.texts()[0], "# another"))
			})
		})
	}
}
