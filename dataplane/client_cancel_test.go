package dataplane_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// reloading is an API that is asked without a socket, and whose next reload that a
// request demands may fail.
type reloading struct {
	api   *dataplanetest.Server
	fails bool
}

func (w *reloading) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.fails && strings.Contains(r.URL.RawQuery, "force_reload") {
		w.fails = false
		w.api.FailReload("no memory")
	}
	return handlerTransport{w.api}.RoundTrip(r)
}

// whole is all that there is at an endpoint without a haproxy: what is stored,
// what is open, and what the process has loaded.
func (s *site) whole(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(s.Raw())
	if s.Memory() != s.Raw() {
		b.WriteString("\nthe API has another text in memory:\n" + s.Memory())
	}
	for _, kind := range []dataplane.FileKind{dataplane.Map, dataplane.Certificate, dataplane.General} {
		names := s.Files(kind)
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(&b, "\n%s %s:\n%s", kind, name, s.file(kind, name))
		}
	}
	fmt.Fprintln(&b)
	for _, server := range []string{"b/s1", "b/s2", "app/s1", "their_app/one"} {
		backend, name, _ := strings.Cut(server, "/")
		address, state := s.LoadedServer(backend, name)
		fmt.Fprintln(&b, server, address, state)
	}
	fmt.Fprintln(&b, s.LoadedMap("m.map"), s.LoadedCertificate("a.pem"), s.LoadedCertificate("b.pem"))
	fmt.Fprintln(&b, s.Runtime("show ssl crt-list "+s.Layout().Path(dataplane.CRTList, "list.txt")))
	return b.String()
}

// steps are two configurations, and how a Client gets from one to the other.
type steps struct {
	shared      bool
	failsReload bool
	configs     func(t *testing.T, s *site) (from, to *dataplane.Config)
}

func giveUps() map[string]steps {
	stray := func(name string) dataplane.File {
		return dataplane.File{Kind: dataplane.General, Name: name, Content: []byte("x\n")}
	}
	alone := func(global string) func(t *testing.T, s *site) (from, to *dataplane.Config) {
		return func(t *testing.T, s *site) (from, to *dataplane.Config) {
			d := newDesired(t, s)
			d.extra = []dataplane.File{stray("goes.txt")}
			from = d.config(t)
			d.s1, d.mapText, d.certificate, d.second = "127.0.0.7:7 weight 9", "/a a\n/n new\n", siteCertificate(t, "a.test"), siteCertificate(t, "b.test")
			d.extra, d.global = []dataplane.File{stray("comes.txt")}, global
			return from, d.config(t)
		}
	}
	shared := func(old, now string) func(t *testing.T, s *site) (from, to *dataplane.Config) {
		return func(t *testing.T, s *site) (from, to *dataplane.Config) {
			sharedSite(t, s)
			s.SetFile(dataplane.General, "theirs.txt", []byte("x\n"))
			m := func(text string) dataplane.File {
				return dataplane.File{Kind: dataplane.Map, Name: "m.map", Content: []byte(text)}
			}
			app := strings.Replace(sharedApp, "  default_backend",
				"  http-request set-header X %[path,map("+s.Layout().Path(dataplane.Map, "m.map")+")]\n  default_backend", 1)
			return ourConfig(t, s, app, m("/a a\n"), stray("goes.txt")),
				ourConfig(t, s, strings.Replace(app, old, now, 1), m("/a b\n"), stray("comes.txt"))
		}
	}
	rule := shared("  default_backend", "  http-request deny if { path /x }\n  default_backend")
	return map[string]steps{
		"runtime":               {configs: alone("")},
		"failed reload":         {configs: alone("  nbthread 2\n"), failsReload: true},
		"shared":                {shared: true, configs: rule},
		"shared, failed reload": {shared: true, configs: rule, failsReload: true},
	}
}

// giver gives up Syncs from one configuration of an endpoint to the other.
type giver struct {
	*site
	steps
	from, to *dataplane.Config
	wholes   map[*dataplane.Config]string
}

func newGiver(t *testing.T, c steps) *giver {
	g := &giver{site: fakeSite(t, nil), steps: c, wholes: map[*dataplane.Config]string{}}
	g.from, g.to = c.configs(t, g.site)
	for _, config := range []*dataplane.Config{g.to, g.from, g.to, g.from} {
		syncSite(t, g.client(t, &dataplane.ClientOptions{Shared: c.shared}), config)
		g.wholes[config] = g.whole(t)
	}
	return g
}

// gives up a Sync at its n-th request, and returns the Client, which may have
// deployed before, and all requests until then.
func (g *giver) gives(t *testing.T, n int, warm, after bool) (*dataplane.Client, []string) {
	t.Helper()
	next := &reloading{api: g.Server}
	way := &severed{cut: &cut{n: never}, next: next, reading: true, after: after}
	client := g.client(t, &dataplane.ClientOptions{Shared: g.shared, HTTPClient: &http.Client{Transport: way}})
	if warm {
		syncSite(t, client, g.from)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	way.cut, next.fails = &cut{n: n, end: cancel}, g.failsReload
	_, err := client.Sync(ctx, g.to)
	asked, _ := way.reached()
	next.fails = false
	if err != nil && !errors.Is(err, dataplane.ErrReload) {
		require.ErrorIs(t, err, context.Canceled, "%v", asked)
	}
	return client, asked
}

// arrives wherever it is to go now, with one reload at most, knows that it has,
// and leaves nothing behind.
func (g *giver) arrives(t *testing.T, client *dataplane.Client, config *dataplane.Config, where string) {
	t.Helper()
	r, err := client.Sync(t.Context(), config)
	require.NoError(t, err, where)
	require.LessOrEqual(t, r.Reloads, 1, where)
	asked := len(g.Requests())
	again := syncSite(t, client, config)
	require.True(t, again.Plan.Empty(), "%s: %s", where, again.Plan)
	require.LessOrEqual(t, len(g.Requests())-asked, 2, where) // its mark goes, perhaps
	require.Equal(t, g.wholes[config], g.whole(t), where)
}

// TestClientGivesUpAnywhere ends the context of a Sync at each of its requests,
// before that is sent, or when it is done and its answer has not been read.
// Wherever the same Client then is to go, on or back, it gets there.
func TestClientGivesUpAnywhere(t *testing.T) {
	t.Parallel()
	thens := []string{"on", "back", "look and back"}
	for name, c := range giveUps() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGiver(t, c)
			for i, warm := range []bool{false, true} {
				client, requests := g.gives(t, never, warm, true)
				g.arrives(t, client, g.from, "at the end")
				require.Greater(t, len(requests), 8)
				first, distance := each(t, 4)
				for n := first; n < len(requests); n += distance {
					request := requests[n]
					changes := !strings.HasPrefix(request, "GET ")
					for j, after := range []bool{true, false} {
						if !warm && !after || !changes && !(warm && after) {
							continue // much as at a request before it
						}
						then := thens[(n+i+j)%len(thens)]
						where := fmt.Sprintf("%d, %s, warm %v, after %v, %s", n, request, warm, after, then)
						client, until := g.gives(t, n, warm, after)
						require.Greater(t, len(until), n, where)
						if then == "look and back" {
							_, err := client.DryRun(t.Context(), g.from)
							require.NoError(t, err, where)
						}
						if then == "on" {
							g.arrives(t, client, g.to, where)
						}
						g.arrives(t, client, g.from, where)
					}
				}
			}
		})
	}
}

// A ledger that could not be closed is closed by the next Sync of the same Client,
// and costs no reload.
func TestClientClosesTheLedgerLater(t *testing.T) {
	t.Parallel()
	for _, fault := range []dataplanetest.Fault{{Drop: true}, {Cut: true}, {Status: 503, Times: 3}} {
		s, d, client := servedSite(t)
		d.s1 = "127.0.0.7:7 weight 10"
		fault.Method, fault.Path, fault.Skip = "PUT", "haptic-ledger", 1
		s.Fail(fault)
		_, _ = client.Sync(t.Context(), d.config(t))
		require.Zero(t, syncSite(t, client, d.config(t)).Reloads)
		require.Contains(t, s.file(dataplane.General, "haptic-ledger.txt"), "loaded "+d.config(t).Hash())
		require.True(t, syncSite(t, s.client(t, nil), d.config(t)).Plan.Empty())
	}
}

// A Client that finds an open change, after another one was killed there, has HAProxy
// reload once, unless the process can be asked for all of it.
func TestClientFindsAnOpenChange(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct {
		change  func(d *desired)
		reloads int
	}{
		"runtime/ssl_crt_lists": {func(d *desired) { d.filter = " c.test" }, 1},
		"/entries":              {func(d *desired) { d.mapText = "/a a\n/n new\n" }, 0},
	} {
		s := fakeSite(t, nil)
		d := newDesired(t, s)
		d.second = siteCertificate(t, "b.test")
		client := s.client(t, nil)
		syncSite(t, client, d.config(t))
		c.change(&d)
		s.Fail(dataplanetest.Fault{Path: path, Status: 403}) // as if it were killed there
		_, err := client.Sync(t.Context(), d.config(t))
		require.Error(t, err)
		require.NotContains(t, s.file(dataplane.General, "haptic-ledger.txt"), "loaded "+d.config(t).Hash())
		require.Equal(t, c.reloads, syncSite(t, s.client(t, nil), d.config(t)).Reloads, path)
		for _, line := range strings.Fields(d.mapText) {
			require.Contains(t, fmt.Sprint(s.LoadedMap("m.map")), line)
		}
		require.True(t, syncSite(t, s.client(t, nil), d.config(t)).Plan.Empty())
	}
}
