package ingress

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/claims"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// TestBadEditFreesNothing: an edit that is refused also drops the host, or the path. Who
// waits for it gets nothing while the earlier version is served, however many attempts
// there are, and gets it once the edit is mended.
func TestBadEditFreesNothing(t *testing.T) {
	engine, err := Compile(os.DirFS(ownTemplates(t)), dataplane.Layout{})
	require.NoError(t, err)
	for _, waits := range []string{"evil", "aaa", "shop"} { // shop: another Ingress of the same namespace
		for _, blind := range []bool{false, true} {
			t.Run(fmt.Sprint(waits, ", no line is named: ", blind), func(t *testing.T) {
				var slots Slots
				w, version := newTenants(by("shop", 100, ingress("web", rule("x.test", path(prefix, "/", "a"))))), 0
				put := func(ing *networkingv1.Ingress, note string) {
					version++
					ing.ResourceVersion, ing.Annotations = fmt.Sprint(version), map[string]string{"snippet": "# " + note}
					for i, was := range w.ingresses {
						if nameOf(was) == nameOf(ing) {
							w.ingresses[i] = ing
							return
						}
					}
					w.ingresses = append(w.ingresses, ing)
				}
				view := viewOf(w.world)
				loop, err := reconcile.New(reconcile.Options{View: view,
					QuarantineBase: time.Nanosecond, QuarantineMax: time.Nanosecond, // each reconciliation is followed by one
					Validator: reconcile.ValidatorFunc(func(ctx context.Context, cfg *dataplane.Config) error {
						if err := refusesBad(ctx, cfg); err == nil || !blind {
							return err
						}
						return fmt.Errorf("%w: no line is named", dataplane.ErrInvalid)
					}),
					Renderer: &render.Templates{Engine: engine, Pure: true, Input: func(ctx context.Context) (*render.Input, error) {
						cluster := w.cluster()
						cluster.Held, cluster.Hosts = view.Held(), &w.hosts
						return Build(cluster, &slots).input(Settings{HTTP: ":8080", Socket: "/run/haproxy.sock", MaxConn: 100, MaxPassed: 200, Share: 50, SharedHosts: true, HardStopAfter: "30m"}), nil
					}}})
				require.NoError(t, err)
				serves := func() string {
					_, err := loop.Once(t.Context())
					require.NoError(t, err)
					for key, backend := range claims.Entries(loop.Validated(), "prefix.map") {
						if key == "x.test/" {
							return backend
						}
					}
					return ""
				}
				put(w.ingresses[0], "good")
				require.Equal(t, "shop_a_80", serves())
				put(by(waits, 200, ingress("waits", rule("x.test", path(prefix, "/", "b")))), "good")
				require.Equal(t, "shop_a_80", serves())

				for round := range 4 {
					put(by("shop", 100, ingress("web", rule(fmt.Sprintf("y%d.test", round), path(prefix, "/", "a")))), "bad")
					for i := range 5 { // that are looked through as well
						put(by(waits, 300, ingress(fmt.Sprint("more", i), rule(fmt.Sprintf("more%d.test", i), path(prefix, "/", "b")))), "good")
					}
					put(by(waits, 200, ingress("waits", rule("x.test", path(prefix, "/", "b")))), "good")
					for range 3 {
						require.Equal(t, "shop_a_80", serves())
						require.Len(t, loop.State().Quarantined, 1)
						require.Equal(t, "web", loop.State().Quarantined[0].Resource.Name)
					}
				}
				put(by("shop", 100, ingress("web", rule("y.test", path(prefix, "/", "a")))), "good")
				loop.Release()
				require.Equal(t, waits+"_b_80", serves())
				require.Empty(t, loop.State().Quarantined)
			})
		}
	}
}
