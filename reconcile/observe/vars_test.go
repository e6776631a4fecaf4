package observe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

func fieldOf(t *testing.T, s *observe.Server, name, expr string) (int, string) {
	t.Helper()
	w := ask(t, s, "/debug/vars/"+name+"?field="+url.QueryEscape(expr))
	require.True(t, json.Valid(w.Body.Bytes()), w.Body)
	return w.Code, strings.Join(strings.Fields(w.Body.String()), " ")
}

func TestField(t *testing.T) {
	s := &observe.Server{}
	s.Register("state", func() any { return badDay() })
	s.Register("list", func() any { return []int{1, 2, 3} })
	s.Register("text", func() any { return "a\nb" })
	for _, c := range []struct {
		name, expr string
		status     int
		want       string // whole, or part of an error
	}{
		{"state", "{.validated}", 200, `"6b86b273ff34fce19d6b804eff5a3f57"`},
		{"state", ".validated", 200, `"6b86b273ff34fce19d6b804eff5a3f57"`},
		{"state", "reconciliation", 200, `41`},
		{"state", "{.instances[*].name}", 200, `[ "ingress/haproxy-0", "ingress/haproxy-1", "ingress/haproxy-2" ]`},
		{"state", "{.instances[?(@.failures>3)].name}", 200, `"ingress/haproxy-1"`},
		{"state", "{.instances[?(@.failures>9)].name}", 200, `[]`},
		{"list", "{[1]}", 200, `2`},
		{"text", "{.a}", 400, `the value has nothing there`},
		{"state", "{.nothing}", 400, `the value has nothing there`},
		{"state", "{.instances[7]}", 400, `the value has nothing there`},
		{"state", "{.instances[}", 400, `unterminated array`},
		{"state", "", 200, ``}, // the whole
		{"state", "{.instances[-1].name}", 200, `"ingress/haproxy-2"`},
		{"list", "{[*]}, ", 400, `outside of the braces`},
		{"state", "{..message}", 400, `.. is not allowed`},
		{"list", strings.Repeat("a", 1025), 400, `it has 1025 bytes, at most 1024 are allowed`},
	} {
		t.Run(c.name+" "+c.expr, func(t *testing.T) {
			status, got := fieldOf(t, s, c.name, c.expr)
			require.Equal(t, c.status, status, got)
			if status == http.StatusOK && c.want != "" {
				require.Equal(t, c.want, got)
			} else {
				require.Contains(t, got, c.want)
			}
		})
	}
}

// renderedAs is what the variable rendered shows of a text.
func renderedAs(t testing.TB, text string, files ...dataplane.File) (shown, auxfiles string) {
	cfg, err := dataplane.NewConfig(text, files...)
	require.NoError(t, err)
	o := newObserver(t, eventbus.New(nil), observe.Subject{Loop: &fixedLoop{config: cfg}}, nil)
	server := o.Server()
	server.Token = "t"
	for name, to := range map[string]*string{"rendered": &shown, "auxfiles": &auxfiles} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/debug/vars/"+name, nil)
		r.SetBasicAuth("me", "t")
		server.Handler().ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code)
		*to = w.Body.String()
	}
	return shown, auxfiles
}

func TestRenderedIsMasked(t *testing.T) {
	for in, want := range map[string]string{
		"user root insecure-password hunter2":                          "user root insecure-password (secret)",
		"user root password $5$abc groups admin":                       "user root password (secret)",
		"stats auth admin:hunter2":                                     "stats auth (secret)",
		"http-request set-header Authorization Basic\\ hunter2":        "http-request set-header Authorization (secret)",
		"http-request set-header X-Session-Id hunter2":                 "http-request set-header X-Session-Id (secret)",
		"http-check send hdr Cookie a=hunter2":                         "http-check send hdr Cookie (secret)",
		"setenv DB hunter2":                                            "setenv (secret)",
		"http-request redirect location https://me:hunter2@h/":         "http-request redirect location https://(secret)@h/",
		"dynamic-cookie-key hunter2":                                   "dynamic-cookie-key (secret)",
		`acl ok req.hdr(x-token) -m str hunter2`:                       "acl ok (secret)",
		"http-request deny unless { var(txn.x),hmac(sha256,hunter2) }": "http-request deny unless { (secret)",
		"# the password is hunter2":                                    "# the password (secret)",
		"tcp-check send AUTH\\ hunter2":                                "tcp-check send (secret)",
		"server a 10.0.0.1:80 check":                                   "server a 10.0.0.1:80 check",
		"cookie SRV insert indirect":                                   "cookie SRV insert indirect",
		"acl path_token path_beg /token":                               "acl path_token (secret)",
		"bind :443 ssl crt /etc/haproxy/ssl/shop.pem":                  "bind :443 ssl crt /etc/haproxy/ssl/shop.pem",
		"backend auth": "backend auth",
	} {
		got, _ := renderedAs(t, "  "+in+"\n")
		require.Equal(t, "  "+want+"\n", got)
	}
}

func TestFilesAreMasked(t *testing.T) {
	_, got := renderedAs(t, "global\n",
		dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: []byte("shop.test shop\n")},
		dataplane.File{Kind: dataplane.Map, Name: "api-keys.map", Content: []byte("hunter2 me\n")},
		dataplane.File{Kind: dataplane.Map, Name: "big.map", Content: []byte(strings.Repeat("a b\n", 100_000))},
		dataplane.File{Kind: dataplane.Certificate, Name: "shop.pem", Content: []byte("hunter2")},
		dataplane.File{Kind: dataplane.General, Name: "users.txt", Content: []byte("hunter2")})
	require.NotContains(t, got, "hunter2")
	require.Contains(t, got, "shop.test shop")
	require.Contains(t, got, "(too long)")
	var files []map[string]any
	require.NoError(t, json.Unmarshal([]byte(got), &files))
	require.Len(t, files, 5)
	for _, f := range files {
		hidden := f["name"] == "shop.pem" || f["name"] == "api-keys.map"
		require.Equal(t, !hidden, f["hash"] != nil, f["name"])
		require.Equal(t, f["kind"] == "map", f["content"] != nil, f["name"])
	}
}

// Whatever stands around it, what follows a word that announces a secret does
// not show, and no line is lost.
func FuzzMask(f *testing.F) {
	f.Add("user root ", " # comment")
	f.Add("server a ", "\tcheck")
	f.Add("\"", "'")
	f.Add("stats auth a ", "\\")
	f.Fuzz(func(t *testing.T, before, after string) {
		before, after = strings.ReplaceAll(before, "\n", " "), strings.ReplaceAll(after, "\n", " ")
		text := "global\n  maxconn 1\n" + before + " password " + canary + after + "\nbackend a\n"
		if _, err := dataplane.NewConfig(text); err != nil || strings.Contains(before, canary) {
			return
		}
		shown, _ := renderedAs(t, text)
		if strings.Contains(shown, canary) {
			t.Errorf("shows %q", shown)
		}
		if strings.Count(shown, "\n") != strings.Count(text, "\n") || !strings.HasSuffix(shown, "\nbackend a\n") {
			t.Errorf("other lines have changed: %q", shown)
		}
	})
}

func TestVariables(t *testing.T) {
	s := scene(t, badDay(), badPast(t)...)
	for name, parts := range map[string][]string{
		"plan":       {`"instance": "ingress/haproxy-1"`, `"summary": "2 to create, 1 to update, 0 to delete; one reload"`, `"error": "Dataplane API`},
		"errors":     {`"event": "reconciliation.failed"`, `"event": "instance.deployment.failed"`, `"event": "resource.quarantined"`},
		"events":     {`"event": "leader.became"`, `"event": "drift.repaired"`},
		"quarantine": {`"name": "checkout"`},
		"refused":    {`"Ingress blog/www"`},
		"resources":  {`"ingresses.networking.k8s.io": {`, `"state": "Synced"`, `"objects": 312`},
		"health":     {`"component": "instances"`, `"error": "instance ingress/haproxy-1 failed 4 times in a row`},
		"bus":        {`"Watermark"`},
		"uptime":     {`"seconds"`},
		"build":      {`"version": "v1.4.0"`, `"go": "go1`},
		"rendered":   {"# no valid configuration yet"},
		"auxfiles":   {"[]"},
		"state":      {`"leading": true`},
	} {
		page := pageOf(t, s, "/debug/vars/"+name)
		for _, part := range parts {
			require.Contains(t, page, part, name)
		}
	}
}

func TestProbes(t *testing.T) {
	h := &observe.Health{}
	var loop error
	h.Check("loop", observe.Live, func() error { return loop })
	h.Check("sync", observe.ReadyToServe, func() error { return errors.New("secrets is Forbidden") })
	h.Check("settings", observe.Reported, func() error { return errors.New("line 3\nline 4") })
	h.Check("panics", observe.Reported, func() error { panic("no") })
	s := &observe.Server{Health: h}
	w := ask(t, s, "/healthz")
	require.Equal(t, "200 ok\n", fmt.Sprint(w.Code, " ", w.Body))
	w = ask(t, s, "/readyz")
	require.Equal(t, "503 sync: secrets is Forbidden\n", fmt.Sprint(w.Code, " ", w.Body))
	loop = errors.New("reconciliation 7 makes no progress")
	w = ask(t, s, "/healthz?verbose")
	require.Equal(t, `503 [-]loop (live): reconciliation 7 makes no progress
[-]sync (ready): secrets is Forbidden
[!]settings (reported): line 3
    line 4
[!]panics (reported): panic: no
loop: reconciliation 7 makes no progress
`, fmt.Sprint(w.Code, " ", w.Body))
	w = get(t, s.Handler(), "http://127.0.0.1/healthz?verbose", "")
	require.Equal(t, "503 not ok\n", fmt.Sprint(w.Code, " ", w.Body), "nothing for those who may not know")
}

// A check that hangs, because what it asks does, is what it is about: stalled.
// It holds up no probe, and does not pile up.
func TestCheckThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, release := &observe.Health{}, make(chan struct{})
		var calls atomic.Int64
		h.Check("loop", observe.Live, func() error { calls.Add(1); <-release; return nil })
		require.EqualError(t, h.Live(), "loop: no answer for 1s")
		time.Sleep(time.Minute)
		require.EqualError(t, h.Live(), "loop: no answer for 1m2s")
		require.EqualValues(t, 1, calls.Load())
		close(release)
		synctest.Wait()
		require.NoError(t, h.Live())
	})
}

// What has begun and does not end is named; what ends in whatever way is not.
func TestStalls(t *testing.T) {
	started := reconcile.ReconciliationStarted{ID: 7}
	deploying := reconcile.DeploymentStarted{ID: 7, Instance: "a"}
	boom := errors.New("boom")
	for _, c := range []struct {
		name   string
		events []any
		after  time.Duration
		want   string
	}{
		{"a reconciliation", []any{started}, 6 * time.Minute, "reconciliation: reconciliation 7 makes no progress for 6m0s"},
		{"one that takes its time", []any{started}, 4 * time.Minute, ""},
		{"one that ends", []any{started, reconcile.ReconciliationCompleted{ID: 7}}, time.Hour, ""},
		{"one that fails", []any{started, reconcile.ReconciliationFailed{ID: 7}}, time.Hour, ""},
		{"a deployment", []any{deploying}, 6 * time.Minute, "deployment: instance a is being deployed to for 6m0s"},
		{"one that succeeds", []any{deploying, reconcile.InstanceDeployed{Instance: "a"}}, time.Hour, ""},
		{"one that does not", []any{deploying, reconcile.InstanceDeploymentFailed{Instance: "a", Err: boom}}, time.Hour, ""},
		{"one whose instance goes", []any{deploying, reconcile.InstancesChanged{Removed: []string{"a"}}}, time.Hour, ""},
		{"one that leadership was lost in", []any{deploying, reconcile.LeaderLost{Identity: "me"}}, time.Hour, ""},
		{"one whose instance has just gone", []any{reconcile.InstancesChanged{Removed: []string{"a"}}, deploying}, time.Hour, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bus := eventbus.New(nil)
				o := newObserver(t, bus, observe.Subject{}, slog.New(slog.DiscardHandler))
				bus.Start()
				publish(bus, c.events...)
				synctest.Wait()
				time.Sleep(c.after)
				if err := o.Health.Live(); c.want == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, c.want)
				}
				require.NoError(t, bus.Close(t.Context()))
			})
		})
	}
}

func TestHealthOfASubject(t *testing.T) {
	subject := fullSubject()
	subject.Health = nil
	o := newObserver(t, eventbus.New(nil), subject, nil)
	require.NoError(t, o.Health.Live())
	require.EqualError(t, o.Health.Ready(), "configuration: instance far has no configuration yet: no route\n"+
		"sync: routes: NotInstalled; the watcher tries again\nsecrets: Forbidden: not allowed; the watcher tries again")
	page := pageOf(t, o.Server(), "/healthz?verbose")
	require.Contains(t, page, "[!]settings (reported): s.yaml:3: no\n")
	require.Contains(t, page, "[!]instances (reported): instance far failed 3 times in a row: no route\n")
	require.Contains(t, page, "[!]quarantine (reported): Ingress shop/web")
	require.Contains(t, page, "[+]reconciliation (live): ok\n")
}

// A deployment that leadership was lost in ends without an event.
func TestLostLeadershipIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus, loop := eventbus.New(nil), &fixedLoop{state: reconcile.State{Leading: true}}
		o := newObserver(t, bus, observe.Subject{Loop: loop}, slog.New(slog.DiscardHandler))
		bus.Start()
		publish(bus, reconcile.DeploymentStarted{ID: 7, Instance: "a"})
		synctest.Wait()
		time.Sleep(time.Hour)
		require.Error(t, o.Health.Live())
		loop.state.Leading = false
		require.NoError(t, o.Health.Live())
		require.NoError(t, bus.Close(t.Context()))
	})
}

// runObserved runs a loop, and an observer of it, until end is called.
func runObserved(t *testing.T, bus *eventbus.Bus, loop *reconcile.Loop) (o *observe.Observer, end func()) {
	o = newObserver(t, bus, observe.Subject{Loop: loop}, slog.New(slog.DiscardHandler))
	bus.Start()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = loop.Run(ctx) })
	wg.Go(func() { _ = o.Run(ctx) })
	loop.Trigger("start")
	return o, func() {
		cancel()
		wg.Wait()
		require.NoError(t, bus.Close(t.Context()))
	}
}

// TestTimeOutsAreNoStall: what a time-out of the loop ends is not stalled before, also
// where the time-out is longer than StallTime.
func TestTimeOutsAreNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus, one := eventbus.New(nil), &patient{plant: &plant{}}
		loop, err := reconcile.New(reconcile.Options{Bus: bus, Renderer: one.render(), Targets: []reconcile.Target{one}, DeployTimeout: 20 * time.Minute})
		require.NoError(t, err)
		o, end := runObserved(t, bus, loop)
		time.Sleep(19 * time.Minute)
		during := o.Health.Live()
		time.Sleep(2 * time.Minute)
		failed := loop.State().Instances[0].Error
		end()
		require.NoError(t, during)
		require.Contains(t, failed, context.DeadlineExceeded.Error())
	})
}

// patient is an instance whose deployments take as long as they may.
type patient struct{ *plant }

func (p *patient) Sync(ctx context.Context, _ *dataplane.Config, _ ...dataplane.SyncOption) (*dataplane.Result, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestALoopThatEndedIsNoStall: what a loop was at when it ended, as with its term, stalls
// nothing of the program that goes on.
func TestALoopThatEndedIsNoStall(t *testing.T) {
	for name, renders := range map[string]bool{"a deployment": true, "a render": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bus, one := eventbus.New(nil), &patient{plant: &plant{}}
				render := one.render()
				if !renders {
					render = reconcile.RendererFunc(func(ctx context.Context) (*reconcile.Rendered, error) { <-ctx.Done(); return nil, ctx.Err() })
				}
				loop, err := reconcile.New(reconcile.Options{Bus: bus, Renderer: render, Targets: []reconcile.Target{one}})
				require.NoError(t, err)
				o := newObserver(t, bus, observe.Subject{Loop: loop}, slog.New(slog.DiscardHandler))
				bus.Start()
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { _ = o.Run(ctx) })
				term, lost := context.WithTimeout(ctx, 5*time.Second)
				loop.Trigger("start")
				_ = loop.Run(term)
				time.Sleep(10 * time.Minute)
				after := o.Health.Live()
				lost()
				cancel()
				wg.Wait()
				require.NoError(t, bus.Close(t.Context()))
				require.NoError(t, after)
			})
		})
	}
}
