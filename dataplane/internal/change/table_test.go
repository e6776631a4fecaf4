package change

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxytest"
)

func TestMain(m *testing.M) { haproxytest.Main(m) }

// Each row of a field says everything that is needed to change it by the sockets.
func TestTableIsComplete(t *testing.T) {
	server := func(words ...string) *config.Server {
		s, ok := config.ParseServer(append([]string{"server", "s", "192.0.2.1:80"}, words...))
		require.True(t, ok)
		return &s
	}
	c := &ServerChange{Old: server(), New: server("weight", "5", "maxconn", "7", "disabled"), Was: Balance{Algorithm: "roundrobin"}, Balance: Balance{Algorithm: "roundrobin"}}
	seen := map[string]bool{}
	for _, r := range Table() {
		name := r.Kind + " " + string(r.Action) + " " + r.Field
		require.False(t, seen[name], "two rows for %s", name)
		seen[name] = true
		require.NotZero(t, r.Since, name)
		require.NotEmpty(t, r.Where, name)
		require.Equal(t, r.API == Version{}, r.SinceAPI == Version{}, name)
		if r.Kind != "server" || r.Action != Update {
			require.Nil(t, r.ServerField, name)
			continue
		}
		value, why := r.Value(c)
		require.Empty(t, why, name)
		require.Contains(t, r.Command(ServerRef{"b", "s"}, value), "b/s", name)
		if r.API != (Version{}) {
			require.Contains(t, r.Header(ServerRef{"b", "s"}, value), " b s ", name)
			require.NotNil(t, r.Loaded, "%s: the Dataplane API changes only what can be read back", name)
			fields, err := r.Fields(value)
			require.NoError(t, err, name)
			require.NotEmpty(t, fields, name)
		}
		require.Equal(t, r.Loaded == nil, r.Drift == nil, name)
		require.Equal(t, r.Field, FieldRow(r.Field).Field)
	}
}

func TestWhyNot(t *testing.T) {
	require.Empty(t, Target{}.WhyNot("server", Update, "weight"))
	require.Contains(t, Target{}.WhyNot("server", Update, "inter"), "cannot update the inter of a server")
	require.Contains(t, Target{Silent: true}.WhyNot("server", Update, "weight"), "no stats socket")
	require.Contains(t, Target{}.WhyNot("server", Create, "cookie"), "HAProxy 2.6 cannot")
	require.Contains(t, Target{Transport: API}.WhyNot("server", Update, "weight"), "HAProxy 2.7 and later only")
	require.Contains(t, Target{Transport: API, Version: HAProxy30}.WhyNot("certificate", Update, ""), "before 3.2")
	require.Contains(t, Target{Transport: API, Version: HAProxy30}.WhyNot("server", Update, "maxconn"), "the Dataplane API cannot")
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]Version{
		"3.2.26-1": {3, 2}, "2.6.12-1+deb12u4": {2, 6}, "3.10-dev1": {3, 10}, "v3.2.4 1eed677a": {3, 2}, "": {}, "x": {}, "3": {}, "-1.2": {},
	} {
		require.Equal(t, want, ParseVersion(text), text)
	}
}
