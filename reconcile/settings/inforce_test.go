package settings

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInForce: what is shown of settings has the defaults, and no text of a template.
func TestInForce(t *testing.T) {
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		require.Nil(t, l.live.InForce())
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(`
watchedResources: {configs: {apiVersion: v1, resources: configmaps}}
haproxyConfig: {template: "# CANARY\n# 2\n"}
maps: {a.map: {template: "CANARY x\n"}}
dataplane: {podSelector: {matchLabels: {app: haproxy}}}
reconcile: {minDeploymentInterval: 5s}
`)))
		text, err := json.Marshal(l.live.InForce())
		require.NoError(t, err)
		for _, want := range []string{
			`"haproxyConfig":{"template":"(2 lines)"}`, `"maps":{"a.map":{"template":"(1 lines)"}}`,
			`"debounceInterval":"500ms"`, `"minDeploymentInterval":"5s"`, `"driftPreventionInterval":"1m0s"`,
			`"credentialsSecretRef":{"name":"haptic-credentials","namespace":"edge"}`, `"podSelector":{"matchLabels":{"app":"haproxy"},"namespace":"edge"}`,
			`"level":"info"`, `"store":"full"`,
		} {
			require.Contains(t, string(text), want)
		}
		require.NotContains(t, string(text), "CANARY")
	})
}
