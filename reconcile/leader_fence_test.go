package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest"
)

// What holds of two loops for one instance, one of which freezes in the middle of
// a deployment and thaws when the other has deployed, is tested here: at each
// call, before it arrives and before its answer does.

// freezer is the way of one loop to an instance: it can hold one of its calls,
// as if the process were frozen around it.
type freezer struct {
	*httptest.Server

	mu       sync.Mutex
	at       int  // number of the call to hold, from 0; -1: none
	arrived  bool // the call is held when the instance has answered it, otherwise before it gets there
	calls    int
	changing []string
	frozen   chan string // tells which call is held
	thaw     chan struct{}
}

func newFreezer(t *testing.T, api *dataplanetest.Server) *freezer {
	to, err := url.Parse(api.URL())
	require.NoError(t, err)
	transport := &http.Transport{DisableKeepAlives: true}
	f := &freezer{at: -1, frozen: make(chan string, 1), thaw: make(chan struct{})}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held, arrived := f.count(r)
		if !held {
			proxy.ServeHTTP(w, r)
			return
		}
		call := r.Method + " " + r.URL.Path
		if !arrived {
			f.hold(call)
			proxy.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		f.hold(call)
		for k, v := range answer.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *freezer) count(r *http.Request) (held, arrived bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	held, arrived = f.at == f.calls, f.arrived
	f.calls++
	if r.Method != http.MethodGet && !strings.Contains(r.URL.RawQuery, "only_validate=") {
		f.changing = append(f.changing, r.Method+" "+r.URL.Path)
	}
	return held, arrived
}

func (f *freezer) hold(call string) {
	f.frozen <- call
	<-f.thaw
}

// freezeAt holds a call, counted from now on.
func (f *freezer) freezeAt(call int, arrived bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls, f.changing, f.at, f.arrived = 0, nil, call, arrived
}

func (f *freezer) changes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changing[:len(f.changing):len(f.changing)]
}

// versions makes the configurations of a test by their names.
type versions func(t *testing.T, name string) *dataplane.Config

// reloading is a change that takes a file that is new, one that changes, one
// that goes, and a reload.
func reloading(t *testing.T, name string) *dataplane.Config {
	return fencedConfig(t, "web_"+name, "192.0.2.1", name, dataplane.File{Kind: dataplane.Map, Name: "of-" + name + ".map", Content: []byte("/a shop\n")})
}

// atRuntime is one that takes only changes at runtime, and files.
func atRuntime(t *testing.T, name string) *dataplane.Config {
	return fencedConfig(t, "web", map[string]string{"start": "192.0.2.1", "older": "192.0.2.2", "newer": "192.0.2.3", "again": "192.0.2.4"}[name], name)
}

func fencedConfig(t *testing.T, frontend, server, path string, files ...dataplane.File) *dataplane.Config {
	files = append(files, dataplane.File{Kind: dataplane.Map, Name: "paths.map", Content: []byte("/" + path + " shop\n")})
	var uses strings.Builder
	for _, f := range files {
		fmt.Fprintf(&uses, "  use_backend %%[path,map(/etc/haproxy/maps/%s)]\n", f.Name)
	}
	cfg, err := dataplane.NewConfig(fmt.Sprintf(`defaults
  mode http
  timeout connect 1s
  timeout client 10s
  timeout server 10s
frontend %s
  bind 127.0.0.1:1
%sbackend shop
  server s1 %s:80
`, frontend, &uses, server), files...)
	require.NoError(t, err)
	return cfg
}

// seen is all that an instance has: how often it was written and reloaded, and
// from the second line on its configuration, its files and what runs.
func seen(api *dataplanetest.Server) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version %d, %d reloads\n%s", api.Version(), len(api.Reloads()), api.Raw())
	for _, name := range api.Files(dataplane.Map) {
		file, _ := api.File(dataplane.Map, name)
		fmt.Fprintf(&b, "%s: %q, loaded %v\n", name, file, api.LoadedMap(name))
	}
	address, state := api.LoadedServer("shop", "s1")
	fmt.Fprintf(&b, "s1: %s %s\n", address, state)
	return b.String()
}

// content is what seen says without its first line.
func content(seen string) string { _, rest, _ := strings.Cut(seen, "\n"); return rest }

// never is a file interval.
const never = -1

// enough time for a call that is held until the other loop has deployed, on
// whatever machine: it is the other loop that ends the wait, not the clock.
const enough = 5 * time.Minute

// contender is one of two loops.
type contender struct {
	*Loop
	leader *fakeLeader
	way    *freezer
	mu     sync.Mutex
	cfg    *dataplane.Config
}

func newContender(t *testing.T, api *dataplanetest.Server, fileInterval time.Duration) *contender {
	c := &contender{leader: &fakeLeader{}, way: newFreezer(t, api)}
	instance := api.Endpoint()
	instance.URL, instance.Name = c.way.URL, "one"
	client, err := dataplane.NewClient(instance, &dataplane.ClientOptions{CheckInterval: fileInterval,
		Timeout: enough, RequestTimeout: enough, ReloadTimeout: enough})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	c.Loop, err = New(Options{Leader: c.leader, Targets: []Target{client}, DeployTimeout: enough, Renderer: RendererFunc(func(context.Context) (*Rendered, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return &Rendered{Config: c.cfg}, nil
	})})
	require.NoError(t, err)
	return c
}

// deploy is Once with a configuration.
func (c *contender) deploy(ctx context.Context, cfg *dataplane.Config) error {
	c.mu.Lock()
	c.cfg = cfg
	c.mu.Unlock()
	_, err := c.Once(ctx)
	return err
}

// frozenAt plays one freeze, and reports false where the deployment has fewer
// calls than that.
func frozenAt(t *testing.T, config versions, call int, arrived bool) bool {
	api := dataplanetest.New(t, nil)
	older, newer := newContender(t, api, never), newContender(t, api, time.Nanosecond) // each check looks at files
	older.leader.Store(true)
	require.NoError(t, older.deploy(t.Context(), config(t, "start")))

	older.way.freezeAt(call, arrived)
	thaw := sync.OnceFunc(func() { close(older.way.thaw) })
	defer thaw() // also where a check ends the test: the server waits for the call
	done := make(chan error, 1)
	go func() { done <- older.deploy(t.Context(), config(t, "older")) }()
	var held string
	select {
	case held = <-older.way.frozen:
	case err := <-done:
		require.NoError(t, err)
		return false
	}
	older.leader.Store(false) // by the clock: it was frozen for that long
	newer.leader.Store(true)
	require.NoError(t, newer.deploy(t.Context(), config(t, "newer")))
	want, made := seen(api), len(older.way.changes())

	thaw()
	err := <-done
	what := fmt.Sprintf("call %d, %s, held %s", call, held, map[bool]string{true: "with its answer", false: "on its way"}[arrived])
	require.Len(t, older.way.changes(), made, "%s: it made another changing call", what)
	if arrived || strings.HasPrefix(held, "GET ") || strings.Contains(held, "configuration") {
		require.Equal(t, want, seen(api), what)
	} // What is on its way to a file or to the runtime has no version that could stop it.
	if err != nil {
		require.True(t, errors.Is(err, errNotLeading) || errors.Is(err, dataplane.ErrConflict), "%s: %v", what, err)
	}

	// The new leader finds what was on its way to a file, with its next check.
	require.NoError(t, newer.deploy(t.Context(), config(t, "newer")), what)
	if arrived || !strings.Contains(held, "/runtime/maps/") {
		require.Equal(t, content(want), content(seen(api)), what)
	}

	newer.leader.Store(false)
	older.leader.Store(true)
	older.way.freezeAt(-1, false)
	again := config(t, "again")
	require.NoError(t, older.deploy(t.Context(), again), "%s: it leads again", what)
	plan, err := older.Preview(t.Context())
	require.NoError(t, err, what)
	require.True(t, plan[0].Plan.Empty(), "%s: %s", what, plan[0].Plan)
	for _, f := range again.Files() {
		now, _ := api.File(f.Kind, f.Name)
		require.Equal(t, string(f.Content), string(now), what)
	}
	return true
}

// TestFrozenLeaderChangesNothingMore: the call that was on its way when it froze
// is the last one. One that writes the configuration is refused, for its version
// is an old one. One that writes a file is not, and the next check of the new
// leader that looks at files undoes it; an entry of a map in the running process
// stays until the next reload.
func TestFrozenLeaderChangesNothingMore(t *testing.T) {
	for name, config := range map[string]versions{"with a reload": reloading, "at runtime": atRuntime} {
		for _, arrived := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", after a call", false: ", a call on its way"}[arrived], func(t *testing.T) {
				t.Parallel()
				call := 0
				for frozenAt(t, config, call, arrived) {
					call++
					require.Less(t, call, 60)
				}
				require.Greater(t, call, 4, "files, the configuration and the look at it take calls")
			})
		}
	}
}

// TestNewTermTrustsNothing: what another leader has changed in files alone, which
// no version tells, is found with the first deployment of a new term.
func TestNewTermTrustsNothing(t *testing.T) {
	api := dataplanetest.New(t, nil)
	a, b := newContender(t, api, never), newContender(t, api, never)
	for i, name := range []string{"one", "two", "one", "two", "two", "one"} {
		leads, follows := a, b
		if i%2 == 1 {
			leads, follows = b, a
		}
		follows.leader.Store(false)
		require.ErrorIs(t, follows.deploy(t.Context(), fencedConfig(t, "web", "192.0.2.1", "other")), errNotLeading)
		leads.leader.Store(true)
		require.NoError(t, leads.deploy(t.Context(), fencedConfig(t, "web", "192.0.2.1", name)))
		file, _ := api.File(dataplane.Map, "paths.map")
		require.Equal(t, "/"+name+" shop\n", string(file), "term %d", i)
		require.Equal(t, map[string]string{"/" + name: "shop"}, api.LoadedMap("paths.map"), "term %d", i)
	}
}
