package observe_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// scene is a loop with a past, and what it watches.
func scene(t *testing.T, state reconcile.State, events ...any) *observe.Server {
	t.Helper()
	bus := eventbus.New(nil)
	now := time.Now()
	o := newObserver(t, bus, observe.Subject{
		Loop: &fixedLoop{state: state}, Version: "v1.4.0",
		Watched: []func() map[schema.GroupVersionResource]k8swatch.State{func() map[schema.GroupVersionResource]k8swatch.State {
			synced := k8swatch.State{Phase: k8swatch.PhaseSynced, Synced: true, Since: now.Add(-3 * time.Hour)}
			ingresses, services, slices := synced, synced, synced
			ingresses.Objects, services.Objects, slices.Objects = 312, 640, 655
			return map[schema.GroupVersionResource]k8swatch.State{
				{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}:     ingresses,
				{Version: "v1", Resource: "services"}:                                  services,
				{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}: slices,
			}
		}},
	}, slog.New(slog.DiscardHandler))
	publish(bus, events...)
	deliver(t, bus)
	return o.Server()
}

func plan(t *testing.T, from, to string) *dataplane.Plan {
	t.Helper()
	was, err := dataplane.NewConfig(from)
	require.NoError(t, err)
	is, err := dataplane.NewConfig(to)
	require.NoError(t, err)
	p, err := dataplane.Diff(was, is)
	require.NoError(t, err)
	return p
}

// goodDay is a state in which nothing is wrong.
func goodDay() reconcile.State {
	now := time.Now()
	const hash = "6b86b273ff34fce19d6b804eff5a3f57"
	return reconcile.State{Leading: true, Reconciliation: 41, Validated: hash, Rendered: hash, ValidatedAt: now.Add(-90 * time.Second),
		Instances: []reconcile.InstanceState{
			{Name: "ingress/haproxy-0", Hash: hash, DeployedAt: now.Add(-88 * time.Second), Reloads: 12, Commands: 431},
			{Name: "ingress/haproxy-1", Hash: hash, DeployedAt: now.Add(-87 * time.Second), Reloads: 12, Commands: 428},
			{Name: "ingress/haproxy-2", Hash: hash, DeployedAt: now.Add(-88 * time.Second), Reloads: 3, Commands: 77},
		}}
}

// badDay is one in which much is.
func badDay() reconcile.State {
	now := time.Now()
	s := goodDay()
	s.LastError = "validate: haproxy.cfg:812: unknown keyword 'balanc'; written by backend.cfg:4 for Ingress shop/checkout"
	s.LastErrorAt = now.Add(-20 * time.Second)
	s.Instances[1].Error, s.Instances[1].Failures = "Dataplane API http://10.0.3.17:5555: no route to host", 4
	s.Instances[1].RetryAt, s.Instances[1].StaleSince = now.Add(7*time.Second), now.Add(-6*time.Minute)
	s.Quarantined = []reconcile.Quarantined{{
		Resource: reconcile.Resource{Kind: "Ingress", Namespace: "shop", Name: "checkout", Source: "checkout.yaml:12"},
		Fault:    reconcile.Fault{Message: "unknown keyword 'balanc' in 'backend' section", Template: reconcile.TemplateLine{File: "backend.cfg", Line: 4}},
		Since:    now.Add(-12 * time.Minute), RetryAt: now.Add(3 * time.Minute)}}
	s.Refused = []reconcile.Refusal{{Resource: "Ingress blog/www", Source: "blog.yaml:3", Field: "spec.rules[0].host", Reason: "shop.example.com is served for an older Ingress, shop/web"}}
	return s
}

func pastDay(t *testing.T) []any {
	was := "global\n  maxconn 100\n\nbackend shop\n  balance roundrobin\n  server a 10.0.0.1:80\n"
	is := "global\n  maxconn 100\n\nbackend shop\n  balance leastconn\n  server a 10.0.0.1:80\n  server b 10.0.0.2:80\n\nbackend blog\n  server a 10.0.1.1:80\n"
	return []any{
		reconcile.LeaderBecame{Identity: "haptic-7d9f4-x2x9p"},
		reconcile.IndexSynchronized{Resources: map[string]int{"ingresses": 312, "services": 640}, Took: 840 * time.Millisecond},
		reconcile.ReconciliationStarted{ID: 41, Reasons: []string{"ingresses: 1 created, 0 modified, 0 deleted"}},
		reconcile.TemplateRendered{ID: 41, Lines: 9120, Sections: 702, Files: 14, Resources: map[string]int{"ingresses": 312, "services": 640}},
		reconcile.ReconciliationCompleted{ID: 41, Hash: "6b86b273ff34", Took: 61 * time.Millisecond},
		reconcile.InstanceDeployed{ID: 41, Instance: "ingress/haproxy-0", Result: &dataplane.Result{Plan: plan(t, was, is), Reloads: 1}, Took: 312 * time.Millisecond},
		reconcile.InstanceDeployed{ID: 41, Instance: "ingress/haproxy-2", Result: &dataplane.Result{Plan: plan(t, is, strings.Replace(is, "10.0.0.2", "10.0.0.9", 1)), Commands: 2}, Took: 9 * time.Millisecond},
	}
}

func badPast(t *testing.T) []any {
	return append(pastDay(t),
		reconcile.ResourceQuarantined{ID: 42, Quarantined: badDay().Quarantined[0]},
		reconcile.DriftRepaired{ID: 41, Instance: "ingress/haproxy-2", Result: &dataplane.Result{Plan: plan(t, "global\n  maxconn 1\n", "global\n  maxconn 2\n"), Reloads: 1, Duration: time.Second}},
		reconcile.InstanceDeploymentFailed{ID: 42, Instance: "ingress/haproxy-1", Err: errors.New("Dataplane API http://10.0.3.17:5555: no route to host"), Failures: 4, RetryAt: time.Now().Add(time.Second), Took: 5 * time.Second},
		reconcile.ReconciliationFailed{ID: 43, Err: errors.New("validate: haproxy.cfg:812: unknown keyword 'balanc'"), Took: 130 * time.Millisecond})
}

func pageOf(t *testing.T, s *observe.Server, path string) string {
	t.Helper()
	w := ask(t, s, path)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	return w.Body.String()
}

func TestPage(t *testing.T) {
	for _, c := range []struct {
		name        string
		state       func() reconcile.State
		events      func(*testing.T) []any
		has, hasNot []string
	}{
		{"before anything has happened", func() reconcile.State { return reconcile.State{} }, nil,
			[]string{"<h1><i class=\"dot warn\"></i>Not ready</h1>", "no valid configuration yet", "No HAProxy is known yet.", "Nothing has happened yet.", "stands by"},
			[]string{"In quarantine</h2>", "Refused</h2>"}},
		{"a good day", goodDay, pastDay,
			[]string{"All is well", "3 / 3", "6b86b273", "haptic-7d9f4-x2x9p", "leads", "ingress/haproxy-0", "leader.became", "1 to update", "v1.4.0", "endpointslices.discovery.k8s.io"},
			[]string{"To look at", `<b class="tag bad"`, "In quarantine</h2>"}},
		{"a bad day", badDay, badPast,
			[]string{"Last good configuration", "2 / 3", "failed 4 times in a row, next try in", "no route to host", "Ingress shop/checkout", "checkout.yaml:12",
				"written by backend.cfg:4", "unknown keyword &#39;balanc&#39;", "Ingress blog/www", "spec.rules[0].host", "To look at", "6m0s", "drift.repaired"}, nil},
		{"no HAProxy is found", func() reconcile.State { return reconcile.State{Validated: "abc", Leading: true} }, nil,
			[]string{"No instance to serve with", "no HAProxy is known to deploy to"}, []string{"All is well"}},
		{"a resource is left out in part", func() reconcile.State {
			s := goodDay()
			s.Refused = badDay().Refused
			return s
		}, pastDay, []string{"Serving", "with something to look at", "Ingress blog/www"}, []string{"All is well"}},
		{"another one leads", func() reconcile.State {
			return reconcile.State{Validated: "abc", Instances: []reconcile.InstanceState{{Name: "a"}}}
		}, nil,
			[]string{"Standing by", "left to the leader"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the page says how long ago things were
				var events []any
				if c.events != nil {
					events = c.events(t)
				}
				page := pageOf(t, scene(t, c.state(), events...), "/")
				for _, part := range c.has {
					require.Contains(t, page, part)
				}
				for _, part := range c.hasNot {
					require.NotContains(t, page, part)
				}
				wellFormed(t, page)
			})
		})
	}
}

// wellFormed checks that each element is closed in its turn, and that nothing is
// loaded and nothing runs.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	void := map[string]bool{"meta": true, "!doctype": true}
	var open []string
	body := regexp.MustCompile(`(?s)<style>.*</style>`).ReplaceAllString(page, "")
	for _, m := range regexp.MustCompile(`<(/?)([!a-z0-9]+)[^>]*>`).FindAllStringSubmatch(body, -1) {
		switch {
		case void[m[2]]:
		case m[1] == "":
			open = append(open, m[2])
		default:
			require.NotEmpty(t, open, "%s is closed and was not open", m[2])
			require.Equal(t, open[len(open)-1], m[2])
			open = open[:len(open)-1]
		}
		require.NotRegexp(t, `(?i)\son[a-z]+=|javascript:|\ssrc=|\sstyle=`, m[0])
		for _, no := range []string{"script", "iframe", "img", "link", "form", "object"} {
			require.NotEqual(t, no, m[2])
		}
	}
	require.Empty(t, open)
}

// Names that somebody chose to break the page are text on it.
func TestPageEscapes(t *testing.T) {
	const evil = `"><script>alert('x')</script><img src=x onerror=alert(1)>`
	state := badDay()
	state.LastError = evil
	state.Instances[1].Name, state.Instances[1].Error, state.Instances[1].Hash = evil, evil, `<script>`
	state.Quarantined[0].Resource.Name, state.Quarantined[0].Resource.Source = evil, evil
	state.Quarantined[0].Fault.Message, state.Quarantined[0].Fault.Template.File = evil, evil
	state.Refused[0] = reconcile.Refusal{Resource: evil, Source: evil, Field: evil, Reason: evil}
	s := scene(t, state,
		reconcile.LeaderBecame{Identity: evil},
		reconcile.ResourceRefused{Refusal: state.Refused[0]},
		reconcile.InstanceDeploymentFailed{Instance: evil, Err: errors.New(evil), Result: &dataplane.Result{Plan: &dataplane.Plan{
			Ops: []dataplane.Op{{Action: dataplane.Update, Kind: evil, Name: evil, Parent: evil, Reason: evil}}}}})
	s.Register(evil, func() any { return 1 })
	page := pageOf(t, s, "/")
	require.NotContains(t, page, "<script")
	require.NotContains(t, page, "<img")
	require.Greater(t, strings.Count(page, "&lt;script&gt;"), 10)
	wellFormed(t, page)
}

// Thousands of everything make a page that is still read at a glance.
func TestPageIsBounded(t *testing.T) {
	state := badDay()
	var events []any
	for i := range 3000 {
		name := fmt.Sprint("pod-", i)
		state.Instances = append(state.Instances, reconcile.InstanceState{Name: name, Error: "x", Failures: i})
		state.Quarantined = append(state.Quarantined, reconcile.Quarantined{Resource: reconcile.Resource{Kind: "Ingress", Name: name}})
		state.Refused = append(state.Refused, reconcile.Refusal{Resource: "Ingress " + name})
		events = append(events, reconcile.InstanceDeploymentFailed{Instance: name, Err: errors.New("x"),
			Result: &dataplane.Result{Plan: &dataplane.Plan{Ops: make([]dataplane.Op, 500)}}})
	}
	page := pageOf(t, scene(t, state, events...), "/")
	require.Less(t, len(page), 256<<10)
	require.Contains(t, page, "and 2953 more")
	wellFormed(t, page)
}

func TestPageHeaders(t *testing.T) {
	w := ask(t, scene(t, goodDay()), "/")
	policy := w.Header().Get("Content-Security-Policy")
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(w.Body.String())[1]
	sum := sha256.Sum256([]byte(style))
	require.Contains(t, policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'", "the browser would not take the style")
	for _, part := range []string{"default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} {
		require.Contains(t, policy, part)
	}
	require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))

	require.Contains(t, w.Body.String(), `http-equiv="refresh" content="10"`)
	require.NotContains(t, pageOf(t, scene(t, goodDay()), "/?reload=0"), "http-equiv")
	require.Contains(t, pageOf(t, scene(t, goodDay()), "/?reload=\"><script>"), `content="10"`)
	require.Equal(t, http.StatusNotFound, ask(t, &observe.Server{}, "/").Code, "a server without an observer")
}
