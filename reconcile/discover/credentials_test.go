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
		KeyValidationUsername: []byte("canary-v"), KeyValidationPassword: []byte("canary-w"),
	})
	require.NoError(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		require.NotContains(t, fmt.Sprintf(verb, c), "canary")
	}
	_, err = ParseCredentials(map[string][]byte{KeyDataplaneUsername: []byte("u"), KeyValidationPassword: nil})
	require.ErrorContains(t, err, "dataplane_password, validation_username, validation_password")
	_, err = CredentialsFromEnv(func(string) string { return "" })
	require.Error(t, err)
}
