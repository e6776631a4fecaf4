package haproxyctl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEnvironment: credentials of the controller do not reach HAProxy.
func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"PATH": "/bin", "LC_ALL": "C", "DATAPLANE_PASSWORD": "secret", "AWS_SECRET_ACCESS_KEY": "secret", "POD_IP": "192.0.2.1", "PATHS": "no",
	} {
		t.Setenv(name, value)
	}
	require.Subset(t, Environment(nil), []string{"PATH=/bin", "LC_ALL=C"})
	for _, variable := range Environment(nil) {
		require.NotContains(t, variable, "secret")
		require.NotContains(t, variable, "PATHS")
		require.NotContains(t, variable, "POD_IP")
	}
	require.Contains(t, Environment([]string{"POD_IP"}), "POD_IP=192.0.2.1")
}
