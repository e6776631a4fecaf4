package discover

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCredentialsNeverPrint(t *testing.T) {
	c, err := ParseCredentials(map[string][]byte{
		KeyDataplaneUsername: []byte("canary-u"), KeyDataplanePassword: []byte("canary-p"),
	})
	require.NoError(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		require.NotContains(t, fmt.Sprintf(verb, c), "canary")
	}
	_, err = ParseCredentials(map[string][]byte{KeyDataplaneUsername: []byte("u"), KeyDataplanePassword: nil})
	require.EqualError(t, err, "missing or empty: dataplane_password")
	_, err = ParseCredentials(nil)
	require.EqualError(t, err, "missing or empty: dataplane_username, dataplane_password")
	_, err = CredentialsFromEnv(func(string) string { return "" })
	require.Error(t, err)
}
