package validate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestQuietlyIsAside: a verdict about what is not deployed is not inherited, in either
// direction.
func TestQuietlyIsAside(t *testing.T) {
	v := &Validator{}
	with := func(address string) *dataplane.Config {
		cfg, err := dataplane.NewConfig(strings.Replace("defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\nlisten l\n  bind unix@/tmp/quietly\nbackend b\n  server s ADDR\n", "ADDR", address, 1))
		require.NoError(t, err)
		return cfg
	}
	require.NoError(t, v.Quietly(t.Context(), with("192.0.2.1:80")))
	report, err := v.Check(t.Context(), with("192.0.2.2:80"))
	require.NoError(t, err)
	require.False(t, report.Inherited)
	require.NoError(t, v.Quietly(t.Context(), with("192.0.2.3:80")))
	report, err = v.Check(t.Context(), with("192.0.2.3:80"))
	require.NoError(t, err)
	require.True(t, report.Remembered)
	report, err = v.Check(t.Context(), with("192.0.2.4:80"))
	require.NoError(t, err)
	require.True(t, report.Inherited)
}
