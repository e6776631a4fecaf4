package dataplane_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// losing is a transport on which runtime actions get lost: the API says that it
// has done all it was asked.
type losing struct{ name string }

func (l losing) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.name == "SetServerState" && r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/servers/") {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	}
	const header = "X-Runtime-Actions"
	if actions := strings.Split(r.Header.Get(header), ";"); len(actions) > 0 {
		r = r.Clone(r.Context())
		r.Header.Set(header, strings.Join(slices.DeleteFunc(actions, func(a string) bool { return strings.HasPrefix(a, l.name) }), ";"))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// What reading back does not show is not acknowledged.
func TestClientBelievesNothing(t *testing.T) {
	t.Parallel()
	for action, change := range map[string]func(d *desired){
		"SetServerAddr":   func(d *desired) { d.s1 = "127.0.0.9:9 weight 10" },
		"SetServerWeight": func(d *desired) { d.s1 = "127.0.0.1:1001 weight 11" },
		"SetServerState":  func(d *desired) { d.s1 = "127.0.0.1:1001 weight 10 disabled" },
	} {
		t.Run(action, func(t *testing.T) {
			s := fakeSite(t, nil)
			d := newDesired(t, s)
			d.bind = "  maxconn 40\n"
			client := s.client(t, &dataplane.ClientOptions{HTTPClient: &http.Client{Transport: losing{action}}})
			syncSite(t, client, d.config(t))
			change(&d)
			r := syncSite(t, client, d.config(t))
			require.Equal(t, dataplane.ImpactRuntime, r.Plan.Impact())
			require.Equal(t, 1, r.Reloads)
			require.Contains(t, r.Fallback, "does not have the change")
		})
	}
}
