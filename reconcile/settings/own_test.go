package settings

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestOwnNamespace: "own" is the namespace of the controller for one resource, and
// others have those of all.
func TestOwnNamespace(t *testing.T) {
	text := strings.Replace(liveSettings, "configs: {", "services: {apiVersion: v1, resources: services}\n  configs: {namespace: own, ", 1)
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		l.source.Apply(k8swatchtest.Objects("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: edge, name: mine}}")...)
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(text)))
		l.happened()
		require.Equal(t, "# hello\n# mine\n", l.deployed())
		require.Equal(t, 1, l.live.State().Watched["services"].Objects, "of all namespaces")
		require.Equal(t, "edge", l.live.Program().Settings().WatchedResources["configs"].Namespace)
	})
	_, err := ParseProgram("s.yaml", []byte(text), nil)
	require.EqualError(t, err, "s.yaml:4:24: watchedResources.configs.namespace: own: the namespace of the controller is not known; name one, or tell the controller its own (POD_NAMESPACE)")

	// Where an empty namespace means that of the controller, own means the same.
	p, err := ParseProgram("s.yaml", []byte("haproxyConfig: {template: x}\ndataplane: {podSelector: {matchLabels: {a: b}, namespace: own}, tls: {caSecretRef: {name: ca, namespace: own}}}\ncredentialsSecretRef: {name: c, namespace: own}"), &ProgramOptions{Namespace: "edge"})
	require.NoError(t, err)
	require.Equal(t, "edge", p.Settings().Dataplane.PodSelector.Namespace)
	require.Empty(t, p.Settings().Credentials.Namespace)
	require.Equal(t, "edge/ca", p.Settings().Dataplane.TLS.discovery("edge").CASecret)
}

// TestCacheTTL: what is fetched on demand is kept for as long as the settings say.
func TestCacheTTL(t *testing.T) {
	require.Contains(t, string(Schema()), "Empty: "+k8swatch.DefaultTTL.String()+".")
	for said, ttl := range map[string]time.Duration{"": k8swatch.DefaultTTL, ", cacheTTL: 10s": 10 * time.Second} {
		runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
			text := strings.Replace(liveSettings, "resources: configmaps", "resources: configmaps, store: on-demand"+said, 1)
			require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(text)))
			l.happened()
			require.Equal(t, ttl, l.live.Program().Settings().WatchedResources["configs"].CacheTTL.Duration)
			configs := l.live.current.watchers["configs"].onDemand
			get := func() int64 {
				_, err := configs.Get(ctx, "default", "one")
				require.NoError(t, err)
				return configs.Stats().Fetches
			}
			time.Sleep(time.Hour) // what the first render fetched is gone
			first := get()
			time.Sleep(ttl - time.Second)
			require.Equal(t, first, get())
			time.Sleep(2 * time.Second)
			require.Equal(t, first+1, get())
		})
	}
}
