package claims_test

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/claims"
)

// TestHostNames: they are those of the API server.
func TestHostNames(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		name := make([]byte, r.IntN(8))
		for i := range name {
			name[i] = "ab0-.-.A_*\n "[r.IntN(12)]
		}
		host := string(name)
		require.Equal(t, len(validation.IsDNS1123Subdomain(strings.TrimPrefix(host, "*."))) == 0, claims.HostProblem(host) == "", "%q", host)
	}
	require.Empty(t, claims.HostProblem("*."+strings.Repeat("a", 253)))
	require.NotEmpty(t, claims.HostProblem(strings.Repeat("a", 254)))
}

// FuzzHostProblem: a text is a host name by the rules of the API server, or the problem is
// short, and a host that it suggests is one.
func FuzzHostProblem(f *testing.F) {
	for _, s := range []string{"shop.test", "*.shop.test", "https://Shop.test:80/cart", "[2001:db8::1]", "-a.test", "a..b", "ѕhop.test", "*", "a.*.b", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, host string) {
		problem := claims.HostProblem(host)
		require.Equal(t, claims.IsHost(host), problem == "")
		require.Less(t, len(problem), 500)
		if claims.IsHost(host) {
			claims.HostWarning(host)
			require.NoError(t, claims.CheckShared(host))
		}
	})
}

// TestEntries: lines that are no entries are skipped, and a file that is not there has none.
func TestEntries(t *testing.T) {
	deployed, err := dataplane.NewConfig("global\n", dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: []byte("#a b\n\na\na b c\nd  e\nf g")})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"d": "e", "f": "g"}, maps.Collect(claims.Entries(deployed, "hosts.map")))
	require.Empty(t, maps.Collect(claims.Entries(deployed, "other.map")))
	for range claims.Entries(deployed, "hosts.map") {
		break
	}
}
