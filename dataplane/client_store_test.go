package dataplane_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// tellSite has a Client tell the process only.
func tellSite(t *testing.T, c *dataplane.Client, config *dataplane.Config) *dataplane.Result {
	t.Helper()
	r, err := c.Sync(t.Context(), config, dataplane.StoreLater())
	require.NoError(t, err)
	require.True(t, r.Pending, "%s\n%s", r, r.Plan)
	require.Zero(t, r.Reloads, "%s", r)
	return r
}

// serves returns the addresses of backend b that get traffic.
func (s *site) serves(t *testing.T) (addresses []string) {
	t.Helper()
	for line := range strings.Lines(s.Runtime("show servers state b")) {
		if f := strings.Fields(line); len(f) > 18 && f[1] == "b" && f[6] == "0" {
			addresses = append(addresses, f[4]+":"+f[18])
		}
	}
	slices.Sort(addresses)
	return addresses
}

// laterSites are those whose process can be told servers.
func laterSites(t *testing.T, test func(t *testing.T, s *site, d desired, client *dataplane.Client)) {
	t.Parallel()
	sites(t, func(t *testing.T, s *site) {
		if s.real && haproxyMinor(t) < 300 {
			t.Skip("this HAProxy cannot be told servers by the Dataplane API")
		}
		d, client := newDesired(t, s), s.client(t, nil)
		syncSite(t, client, d.config(t))
		test(t, s, d, client)
	})
}

// What was told is served at once, and one push stores several changes.
func TestClientStoresLater(t *testing.T) {
	laterSites(t, func(t *testing.T, s *site, d desired, client *dataplane.Client) {
		pid, before := s.WorkerPID(), s.stored(t)
		for i := range 3 { // the same server again and again
			d.s1 = fmt.Sprintf("127.0.0.%d:1003 weight 20", 2+i)
			d.mapText = fmt.Sprintf("/a a\n/n new-%d\n", i)
			tellSite(t, client, d.config(t))
			require.Equal(t, []string{fmt.Sprintf("127.0.0.%d:1003", 2+i)}, s.serves(t))
			require.Equal(t, fmt.Sprintf("new-%d", i), s.LoadedMap("m.map")["/n"])
			require.Equal(t, before, s.stored(t))
			require.True(t, tellSite(t, client, d.config(t)).Plan.Empty())
		}
		plan, err := client.DryRun(t.Context(), d.config(t))
		require.NoError(t, err)
		require.True(t, plan.Empty(), "what is not stored yet is no drift: %s", plan)

		require.NoError(t, client.Store(t.Context()))
		require.Contains(t, s.stored(t), "server s1 127.0.0.4:1003 weight 20")
		require.Equal(t, d.mapText, s.file(dataplane.Map, "m.map"))
		require.Contains(t, s.file(dataplane.General, "haptic-ledger.txt"), "loaded "+d.config(t).Hash())
		address, state := s.LoadedServer("b", "s1")
		require.Equal(t, []string{"127.0.0.4:1003", "ready"}, []string{address, state})
		require.NotContains(t, s.Runtime("show servers state b"), "haptic-", "those that stood in for it are gone")
		require.NoError(t, client.Store(t.Context()), "there is nothing left to store")
		again := syncSite(t, client, d.config(t))
		require.Zero(t, again.Files+again.Commands+again.Reloads, again)
		plan, err = s.client(t, nil).DryRun(t.Context(), d.config(t))
		require.NoError(t, err)
		require.True(t, plan.Empty(), "%s", plan)
		require.Equal(t, pid, s.WorkerPID(), "it has reloaded")
	})
}

// From version 3.4 on, the API changes address and weight of a server by themselves, with
// health checks, too: no other server stands in for it.
func TestClientChangesServersDirectly(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"fake", "haproxy"} {
		t.Run(name, func(t *testing.T) {
			options := &dataplanetest.Options{APIVersion: "v3.4.2"}
			if name == "haproxy" {
				if options.HAProxy = siteHAProxy(t); haproxyMinor(t) < 300 {
					t.Skip("this HAProxy cannot be told servers by the Dataplane API")
				}
			}
			s := fakeSite(t, options)
			d, client := newDesired(t, s), s.client(t, nil)
			d.s1 = "127.0.0.1:1003 weight 20 check"
			syncSite(t, client, d.config(t))
			pid := s.WorkerPID()
			for i, state := range []string{"", " disabled", ""} {
				d.s1 = fmt.Sprintf("127.0.0.%d:1003 weight %d check%s", 2+i, 30+i, state)
				tellSite(t, client, d.config(t))
				require.NotContains(t, s.Runtime("show servers state b"), "haptic-")
				address, _ := s.LoadedServer("b", "s1")
				require.Equal(t, fmt.Sprintf("127.0.0.%d:1003", 2+i), address)
			}
			require.NoError(t, client.Store(t.Context()))
			require.Contains(t, s.stored(t), "server s1 "+d.s1)
			require.Equal(t, pid, s.WorkerPID(), "it has reloaded")
		})
	}
}

// A change that takes a reload stores the earlier ones as well.
func TestClientReloadsWhatIsNotStored(t *testing.T) {
	laterSites(t, func(t *testing.T, s *site, d desired, client *dataplane.Client) {
		d.s1 = "127.0.0.2:1003 weight 20"
		tellSite(t, client, d.config(t))
		d.s2, d.global = "127.0.0.3:1004", "  nbthread 1\n"
		r, err := client.Sync(t.Context(), d.config(t), dataplane.StoreLater())
		require.NoError(t, err)
		require.Equal(t, 1, r.Reloads)
		require.False(t, r.Pending)
		require.Equal(t, []string{"127.0.0.2:1003", "127.0.0.3:1004"}, s.serves(t))
		require.NoError(t, client.Store(t.Context()))
		require.True(t, syncSite(t, client, d.config(t)).Plan.Empty())
	})
}

// A server that is disabled, and one that goes, while another stands in for it.
func TestClientStandInGoes(t *testing.T) {
	laterSites(t, func(t *testing.T, s *site, d desired, client *dataplane.Client) {
		d.s1, d.more = "127.0.0.2:1003 weight 20", "  server s3 127.0.0.1:1005\n"
		tellSite(t, client, d.config(t))
		d.s1, d.more = "127.0.0.2:1003 weight 20 disabled", "  server s3 127.0.0.1:1006\n"
		tellSite(t, client, d.config(t))
		require.Equal(t, []string{"127.0.0.1:1006"}, s.serves(t))
		d.more = ""
		tellSite(t, client, d.config(t))
		require.Empty(t, s.serves(t))
		require.NoError(t, client.Store(t.Context()))
		require.Empty(t, s.serves(t))
		plan, err := s.client(t, nil).DryRun(t.Context(), d.config(t))
		require.NoError(t, err)
		require.True(t, plan.Empty(), "%s", plan)
	})
}

// A successor reads what the process was told, and needs no reload.
func TestClientSuccessorOfOneThatStoresLater(t *testing.T) {
	laterSites(t, func(t *testing.T, s *site, d desired, client *dataplane.Client) {
		d.s1, d.mapText = "127.0.0.2:1003 weight 20", "/a a\n/n new\n"
		tellSite(t, client, d.config(t))
		r := syncSite(t, s.client(t, nil), d.config(t))
		require.Zero(t, r.Reloads, "%s\n%s", r, r.Plan)
		require.Equal(t, []string{"127.0.0.2:1003"}, s.serves(t))
		require.Equal(t, d.mapText, s.file(dataplane.Map, "m.map"))
		plan, err := s.client(t, nil).DryRun(t.Context(), d.config(t))
		require.NoError(t, err)
		require.True(t, plan.Empty(), "%s", plan)
		require.NotContains(t, s.Runtime("show servers state b"), "haptic-")
	})
}

// A reload by another brings the older configuration back, until the next Sync.
func TestClientReloadBeforeItStores(t *testing.T) {
	laterSites(t, func(t *testing.T, s *site, d desired, client *dataplane.Client) {
		d.s1, d.mapText = "127.0.0.2:1003 weight 20", "/a a\n/n new\n"
		tellSite(t, client, d.config(t))
		s.reloads(t)
		require.Error(t, client.Store(t.Context()), "the process is another one")
		_, err := client.Sync(t.Context(), d.config(t), dataplane.StoreLater())
		require.NoError(t, err)
		require.Equal(t, []string{"127.0.0.2:1003"}, s.serves(t))
		require.Equal(t, "new", s.LoadedMap("m.map")["/n"])
		require.NoError(t, client.Store(t.Context()))
		require.Contains(t, s.stored(t), "server s1 127.0.0.2:1003 weight 20")
		plan, err := s.client(t, nil).DryRun(t.Context(), d.config(t))
		require.NoError(t, err)
		require.True(t, plan.Empty(), "%s", plan)
	})
}

// reloads has somebody else reload what is stored.
func (s *site) reloads(t *testing.T) {
	t.Helper()
	do := func(method, path, body string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), method, s.endpoint.URL+"/v3/"+path, strings.NewReader(body))
		require.NoError(t, err)
		req.SetBasicAuth(s.endpoint.Username, s.endpoint.Password)
		req.Header.Set("Content-Type", "text/plain")
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		_ = res.Body.Close()
		return res
	}
	version := do("GET", "info", "").Header.Get("Configuration-Version")
	pid := s.WorkerPID()
	res := do("POST", "services/haproxy/configuration/raw?force_reload=true&version="+version, s.stored(t))
	require.Equal(t, http.StatusCreated, res.StatusCode)
	waitForSite(t, func() bool { return s.WorkerPID() != pid })
}

// Changes are told while a push is under way, and stored by the next one.
func TestClientTellsWhileItStores(t *testing.T) {
	t.Parallel()
	s, d, client := servedSite(t)
	release := make(chan struct{})
	pushing := make(chan struct{})
	client = s.client(t, &dataplane.ClientOptions{HTTPClient: &http.Client{Transport: heldPush{pushing, release}}})
	_, err := client.DryRun(t.Context(), d.config(t))
	require.NoError(t, err)
	d.s1 = "127.0.0.2:1003 weight 20"
	tellSite(t, client, d.config(t))
	stored := make(chan error, 1)
	go func() { stored <- client.Store(t.Context()) }()
	<-pushing
	for i := range 5 {
		d.s2, d.mapText = fmt.Sprintf("127.0.0.%d:1004", 3+i), fmt.Sprintf("/a %d\n", i)
		tellSite(t, client, d.config(t))
		require.Equal(t, []string{"127.0.0.2:1003", fmt.Sprintf("127.0.0.%d:1004", 3+i)}, s.serves(t))
	}
	ctx, cancel := context.WithCancel(t.Context())
	d.s1 = "127.0.0.9:1003 weight 20" // which the push changes: it has to wait
	waits := make(chan error, 1)
	go func() {
		_, err := client.Sync(ctx, d.config(t), dataplane.StoreLater())
		waits <- err
	}()
	cancel()
	require.ErrorIs(t, <-waits, context.Canceled)
	close(release)
	require.NoError(t, <-stored)
	require.Contains(t, s.stored(t), "server s1 127.0.0.2:1003 weight 20")
	require.NotContains(t, s.stored(t), "127.0.0.7:1004")
	tellSite(t, client, d.config(t))
	require.NoError(t, client.Store(t.Context()))
	require.Contains(t, s.stored(t), "server s1 127.0.0.9:1003 weight 20")
	require.Contains(t, s.stored(t), "server s2 127.0.0.7:1004")
	require.Len(t, s.Reloads(), 1)
	plan, err := s.client(t, nil).DryRun(t.Context(), d.config(t))
	require.NoError(t, err)
	require.True(t, plan.Empty(), "%s", plan)
}

// heldPush holds the first push until it is released.
type heldPush struct{ pushing, release chan struct{} }

func (h heldPush) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "configuration/raw") {
		select {
		case <-h.release:
		default:
			close(h.pushing)
			<-h.release
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Another writer's push comes in between: nothing of it is written over unseen.
func TestClientStoreConflicts(t *testing.T) {
	t.Parallel()
	s, d, client := servedSite(t)
	d.s1 = "127.0.0.2:1003 weight 20"
	tellSite(t, client, d.config(t))
	s.Write(strings.Replace(s.Raw(), "maxconn 100", "maxconn 7", 1))
	require.ErrorIs(t, client.Store(t.Context()), dataplane.ErrConflict)
	require.Contains(t, s.Raw(), "maxconn 7")
	_, err := client.Sync(t.Context(), d.config(t))
	require.NoError(t, err)
	require.NotContains(t, s.Raw(), "maxconn 7")
	require.Equal(t, []string{"127.0.0.2:1003"}, s.serves(t))
	require.True(t, syncSite(t, s.client(t, nil), d.config(t)).Plan.Empty())
}

// TestClientKilledBeforeItStores ends a Client at each request that changes something,
// of a Sync and a Store. A new one gets there, or back, with one reload at most.
func TestClientKilledBeforeItStores(t *testing.T) {
	t.Parallel()
	s := fakeSite(t, nil)
	d := newDesired(t, s)
	from := d.config(t)
	d.s1, d.s2, d.mapText = "127.0.0.2:1003 weight 20", "127.0.0.3:1004", "/a a\n/n new\n"
	d.certificate = siteCertificate(t, "a.test")
	to := d.config(t)
	wholes := map[*dataplane.Config]string{}
	for _, config := range []*dataplane.Config{from, to, from} {
		syncSite(t, s.client(t, nil), config)
		wholes[config] = s.whole(t)
	}
	for n, killed := 0, true; killed; n++ {
		for _, after := range []bool{true, false} {
			for _, then := range []*dataplane.Config{from, to} {
				syncSite(t, s.client(t, nil), from)
				ctx, cancel := context.WithCancel(t.Context())
				way := &severed{cut: &cut{n: never}, next: http.DefaultTransport, after: after, dies: true}
				client := s.client(t, &dataplane.ClientOptions{HTTPClient: &http.Client{Transport: way}, Attempts: 1})
				syncSite(t, client, from)
				way.cut = &cut{n: n, end: cancel}
				if _, err := client.Sync(ctx, to, dataplane.StoreLater()); err == nil {
					_ = client.Store(ctx)
				}
				var requests []string
				requests, killed = way.reached()
				cancel()
				where := fmt.Sprintf("%v, after %v", requests, after)
				r := syncSite(t, s.client(t, nil), then)
				require.LessOrEqual(t, r.Reloads, 1, where)
				require.Equal(t, wholes[then], s.whole(t), where)
				plan, err := s.client(t, nil).DryRun(t.Context(), then)
				require.NoError(t, err)
				require.True(t, plan.Empty(), "%s: %s", where, plan)
			}
		}
	}
}

// A text that the API refuses after the process was told leaves the process as it was.
func TestClientTakesBackWhatIsRefused(t *testing.T) {
	t.Parallel()
	s, d, client := servedSite(t)
	before := s.whole(t)
	d.s1, d.mapText = "127.0.0.2:1003 weight 20", "/a a\n/n new\n"
	s.Fail(dataplanetest.Fault{Method: "POST", Path: "configuration/raw", Status: 400})
	_, err := client.Sync(t.Context(), d.config(t))
	require.ErrorIs(t, err, dataplane.ErrInvalid)
	require.Equal(t, before, s.whole(t))
	require.Zero(t, syncSite(t, client, d.config(t)).Reloads)
}

// Another writer's push comes before a change that is told: it is not written over
// unseen, and the change is stored with the next Store.
func TestClientStoresAfterAnotherWriter(t *testing.T) {
	t.Parallel()
	s, d, client := servedSite(t)
	d.s1 = "127.0.0.2:1003 weight 20"
	tellSite(t, client, d.config(t))
	s.Write("# of another\n" + s.Raw())
	d.s1 = "127.0.0.3:1003 weight 20"
	_, err := client.Sync(t.Context(), d.config(t), dataplane.StoreLater())
	require.NoError(t, err)
	require.NoError(t, client.Store(t.Context()))
	require.Contains(t, s.stored(t), "server s1 127.0.0.3:1003 weight 20")
	require.Equal(t, []string{"127.0.0.3:1003"}, s.serves(t))
	require.True(t, syncSite(t, s.client(t, nil), d.config(t)).Plan.Empty())
}

// A map that cannot be read back leaves doubt: a successor that wants the older one
// reloads it, instead of taking for granted that the process has it.
func TestClientSuccessorAndAnUnreadableMap(t *testing.T) {
	for name, c := range map[string]struct{ mapText, bind string }{
		"values of words": {"/a a b\n", ""},
		"rules write":     {"/a a\n", "  http-request set-map(%s) %%[path] x if FALSE\n"},
	} {
		t.Run(name, func(t *testing.T) {
			laterSites(t, func(t *testing.T, s *site, d desired, client *dataplane.Client) {
				d.mapText = c.mapText
				if c.bind != "" {
					d.bind = fmt.Sprintf(c.bind, d.layout.Path(dataplane.Map, "m.map"))
				}
				syncSite(t, client, d.config(t))
				from := d.config(t)
				d.mapText += "/n new\n"
				ctx, cancel := context.WithCancel(t.Context())
				way := &severed{cut: &cut{n: 1, end: cancel}, next: http.DefaultTransport, after: true, dies: true}
				dies := s.client(t, &dataplane.ClientOptions{HTTPClient: &http.Client{Transport: way}, Attempts: 1})
				_, err := dies.Sync(ctx, d.config(t), dataplane.StoreLater())
				require.Error(t, err)
				cancel()
				syncSite(t, s.client(t, nil), from)
				require.NotContains(t, s.LoadedMap("m.map"), "/n")
			})
		})
	}
}
