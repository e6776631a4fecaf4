package settings

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestFirstSettingsBesideAWrongResource: a controller that starts serves all
// but the resource that is wrong, as one does that has run before.
func TestFirstSettingsBesideAWrongResource(t *testing.T) {
	picky := strings.Replace(liveSettings, "# {{ c.Name }}", `# {{ c.Name }}{% if c.Name == "wrong" %}{{ fail("not with me") }}{% end %}`, 1)
	wrong := "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: wrong}\n"
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		l.source.Apply(k8swatchtest.Objects(wrong)...)
		require.NoError(t, l.live.ApplyYAML(ctx, "s.yaml", []byte(picky)))
		l.happened()
		require.Contains(t, l.deployed(), "# hello")
		require.NotContains(t, l.deployed(), "wrong")
		require.Len(t, l.loop.State().Quarantined, 1)
		require.Equal(t, "wrong", l.loop.State().Quarantined[0].Resource.Name)
	})
	// What fails for no resource is said, as ever.
	runLive(t, func(ctx context.Context, t *testing.T, l *liveTest) {
		err := l.live.ApplyYAML(ctx, "s.yaml", []byte(strings.Replace(liveSettings, "# hello", `# {{ fail("not with me") }}`, 1)))
		require.ErrorContains(t, err, "render with the new settings")
	})
}
