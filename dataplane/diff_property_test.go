package dataplane_test

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

func diffOf(t testing.TB, current, desired string) *dataplane.Plan {
	t.Helper()
	one, err := dataplane.NewConfig(current)
	require.NoError(t, err)
	two, err := dataplane.NewConfig(desired)
	require.NoError(t, err)
	plan, err := dataplane.Diff(one, two)
	require.NoError(t, err)
	return plan
}

// corpus returns whole configurations by name.
func corpus(t testing.TB) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "corpus.txtar"))
	require.NoError(t, err)
	texts := make(map[string]string)
	for _, f := range archive.Files {
		texts[f.Name] = string(f.Data)
	}
	return texts
}

// What the Dataplane API does to a text is no difference.
func TestDiffOfNormalised(t *testing.T) {
	for name, text := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			normalised, err := haproxycfg.Normalise(text)
			require.NoError(t, err)
			require.NotEqual(t, text, normalised)
			require.True(t, diffOf(t, text, normalised).Empty(), "%s", diffOf(t, text, normalised))
			require.True(t, diffOf(t, normalised, text).Empty(), "%s", diffOf(t, normalised, text))
		})
	}
}
