package settings

import (
	"context"
	"iter"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
)

// refusal is what HAProxy says of a line that it does not take.
type refusal struct{ at dataplane.Position }

func (e *refusal) Error() string { return e.at.String() + ": no such keyword" }
func (e *refusal) Positions() iter.Seq2[dataplane.Position, string] {
	return func(yield func(dataplane.Position, string) bool) { yield(e.at, "no such keyword") }
}

// TestRefusedByHAProxyNamesTheKey: a line that a template in settings wrote is named by
// the key and the line of the settings, and then by the line of the configuration.
func TestRefusedByHAProxyNamesTheKey(t *testing.T) {
	const text = "haproxyConfig:\n  template: |\n    # a comment\n    global\n\n\n        foo\n  postProcessing:\n    - type: squeeze\n" +
		"maps:\n  hosts.map:\n    template: |\n      a b\n      c d\n"
	for want, at := range map[string]dataplane.Position{
		"validate with the new settings: ConfigMap haptic/settings settings.yaml:7: haproxyConfig.template: no such keyword; rendered as line 4 of haproxy.cfg":        {Line: 4},
		"validate with the new settings: ConfigMap haptic/settings settings.yaml:14: maps['hosts.map'].template: no such keyword; rendered as line 2 of map hosts.map": {Kind: dataplane.Map, Name: "hosts.map", Line: 2},
	} {
		source := k8swatchtest.NewSource(&corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "haptic", Name: "settings"},
			Data:       map[string]string{ConfigMapKey: text},
		})
		bus := eventbus.New(nil)
		told := make(chan Invalid, 10)
		eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[Invalid]) { told <- d.Event })
		bus.Start()
		live, err := NewLive(LiveOptions{Source: source, Bus: bus, Validator: func(dataplane.Layout) reconcile.Validator {
			return reconcile.ValidatorFunc(func(context.Context, *dataplane.Config) error { return &refusal{at} })
		}})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = live.Run(ctx) })
		wg.Go(func() { _ = live.FollowConfigMap(ctx, "haptic", "settings") })
		e := <-told
		require.EqualError(t, e.Err, want)
		stop()
		wg.Wait()
		require.NoError(t, bus.Close(context.Background()))
	}
}
