package dataplane_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// traffic asks frontend f again and again, over kept and over new connections. The
// function that it returns ends that and tells what went wrong, of how many requests.
func (s *site) traffic(t *testing.T) (ask func() string, end func() (wrong []string, requests int)) {
	t.Helper()
	path := s.Layout().Path(dataplane.General, "f.sock")
	request := func(c *http.Client) string {
		res, err := c.Get("http://f/a")
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return fmt.Sprint(res.StatusCode, " ", string(body), err)
	}
	client := func(keep bool) *http.Client {
		transport := &http.Transport{DisableKeepAlives: !keep, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	var (
		all      sync.WaitGroup
		mu       sync.Mutex
		wrong    []string
		requests int
		done     = make(chan struct{})
	)
	for _, keep := range []bool{true, false} {
		all.Go(func() {
			for c := client(keep); ; {
				select {
				case <-done:
					return
				default:
				}
				got := request(c)
				mu.Lock()
				if requests++; !strings.HasPrefix(got, "200 ") {
					wrong = append(wrong, got)
				}
				mu.Unlock()
			}
		})
	}
	fresh := client(false)
	return func() string { return request(fresh) }, func() ([]string, int) {
		close(done)
		all.Wait()
		return wrong, requests
	}
}

// No request fails while a server stands in for another, while what stands in changes,
// while it is stored, and while a successor takes over; each change is served at once.
func TestClientStandInTraffic(t *testing.T) {
	laterSites(t, func(t *testing.T, s *site, d desired, client *dataplane.Client) {
		if !s.real {
			t.Skip("a fake without HAProxy has no traffic")
		}
		addresses := map[string]string{}
		for _, name := range []string{"A", "B", "C"} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
			defer server.Close()
			addresses[name] = server.Listener.Addr().String()
		}
		d.s1 = addresses["A"]
		syncSite(t, client, d.config(t))
		ask, end := s.traffic(t)
		for i := range 12 {
			name := string("BCA"[i%3])
			d.s1 = addresses[name] + " weight 20"
			d.mapText = fmt.Sprintf("/a %d\n", i)
			tellSite(t, client, d.config(t))
			require.Equal(t, "200 "+name+"<nil>", ask(), "change %d", i)
			switch i % 4 {
			case 1:
				require.NoError(t, client.Store(t.Context()))
			case 3: // it is killed before it stores
				client = s.client(t, nil)
				r := syncSite(t, client, d.config(t))
				require.Zero(t, r.Reloads, "%s\n%s", r, r.Plan)
			}
			require.Equal(t, "200 "+name+"<nil>", ask(), "change %d", i)
		}
		wrong, requests := end()
		require.Empty(t, wrong)
		require.Greater(t, requests, 50)
		require.NoError(t, client.Store(t.Context()))
		require.NotContains(t, s.Runtime("show servers state b"), "haptic-")
	})
}
