package discover

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// DefaultSecret is the default name of the Secret with the credentials. It is in the namespace
// of the controller.
const DefaultSecret = "haptic-credentials"

// The keys of the Secret that [ParseCredentials] reads.
const (
	KeyDataplaneUsername = "dataplane_username"
	KeyDataplanePassword = "dataplane_password"
)

// Credentials are for the Dataplane APIs. They never print.
type Credentials struct {
	DataplaneUsername, DataplanePassword string
}

// ParseCredentials reads the data of a Secret. Both keys are required and must not be empty. The
// error names every missing key. Other keys do no harm.
func ParseCredentials(data map[string][]byte) (c Credentials, err error) {
	var missing []string
	for _, f := range []struct {
		key string
		to  *string
	}{
		{KeyDataplaneUsername, &c.DataplaneUsername},
		{KeyDataplanePassword, &c.DataplanePassword},
	} {
		*f.to = string(data[f.key])
		if *f.to == "" {
			missing = append(missing, f.key)
		}
	}
	if len(missing) > 0 {
		return Credentials{}, fmt.Errorf("missing or empty: %s", strings.Join(missing, ", "))
	}
	return c, nil
}

// CredentialsFromEnv reads both values from environment variables: HAPTIC_DATAPLANE_USERNAME and
// HAPTIC_DATAPLANE_PASSWORD.
func CredentialsFromEnv(getenv func(string) string) (Credentials, error) {
	get := func(key string) string { return getenv("HAPTIC_" + strings.ToUpper(key)) }
	c := Credentials{
		DataplaneUsername: get(KeyDataplaneUsername),
		DataplanePassword: get(KeyDataplanePassword),
	}
	const username, password = "HAPTIC_DATAPLANE_USERNAME", "HAPTIC_DATAPLANE_PASSWORD"
	switch {
	case c.DataplaneUsername == "" && c.DataplanePassword == "":
		return Credentials{}, errors.New("credentials: the environment variables " + username + " and " + password + " must be set")
	case c.DataplaneUsername == "":
		return Credentials{}, errors.New("credentials: the environment variable " + username + " is missing; " + password + " is set")
	case c.DataplanePassword == "":
		return Credentials{}, errors.New("credentials: the environment variable " + password + " is missing; " + username + " is set")
	}
	return c, nil
}

// String says only that there are credentials.
func (c Credentials) String() string               { return "credentials (secret)" }
func (c Credentials) Format(s fmt.State, _ rune)   { _, _ = s.Write([]byte(c.String())) }
func (c Credentials) LogValue() slog.Value         { return slog.StringValue(c.String()) }
func (c Credentials) MarshalJSON() ([]byte, error) { return []byte(`"` + c.String() + `"`), nil }
