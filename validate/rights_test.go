package validate_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/validate"
)

// TestEnvironmentOfHAProxy: a configuration cannot read what the controller knows.
func TestEnvironmentOfHAProxy(t *testing.T) {
	needHAProxy(t)
	t.Setenv("API_PASSWORD", "secret")
	t.Setenv("POD_NAME", "edge-0")
	text := "global\n.if defined(API_PASSWORD)\n  no-such-keyword\n.endif\n.if defined(POD_NAME)\n  node \"${POD_NAME}\"\n.else\n  no-such-keyword\n.endif\n"
	_, err := (&validate.Validator{Env: []string{"POD_NAME"}}).Semantics(t.Context(), configOf(t, text))
	require.NoError(t, err)
}

// TestUser: haproxy runs under the account, and reads what is checked.
func TestUser(t *testing.T) {
	needHAProxy(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can choose an account")
	}
	secret := filepath.Join(t.TempDir(), "secret.http")
	require.NoError(t, os.Chmod(filepath.Dir(secret), 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(secret)), 0o755))
	require.NoError(t, os.WriteFile(secret, []byte("HTTP/1.0 400 Bad\r\n\r\n"), 0o600))
	v := &validate.Validator{User: "nobody"}
	_, err := v.Semantics(t.Context(), configOf(t, "global\n"))
	require.NoError(t, err)
	_, err = v.Semantics(t.Context(), configOf(t, "global\ndefaults\n  errorfile 400 "+secret+"\n"))
	require.ErrorContains(t, err, "secret.http")

	_, err = (&validate.Validator{User: "no-such-account"}).Semantics(t.Context(), configOf(t, "global\n"))
	require.ErrorContains(t, err, "no-such-account")
}

// TestLeftovers: what a killed process left behind goes, and nothing that is in use.
func TestLeftovers(t *testing.T) {
	needHAProxy(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	old, fresh := filepath.Join(tmp, "haproxy-check-old"), filepath.Join(tmp, "haproxy-check-new")
	for _, dir := range []string{old, fresh} {
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.pem"), []byte("key"), 0o600))
	}
	hourAgo := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(old, hourAgo, hourAgo))
	_, err := new(validate.Validator).Semantics(t.Context(), configOf(t, "global\n"))
	require.NoError(t, err)
	require.NoDirExists(t, old)
	require.DirExists(t, fresh)
}

func configOf(t *testing.T, text string) *dataplane.Config {
	t.Helper()
	cfg, err := dataplane.NewConfig(text + "frontend f\n  mode http\n  timeout client 1s\n  bind unix@x.sock\n")
	require.NoError(t, err)
	return cfg
}
