package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// intruder is the backend of a second writer.
const intruder = "intruder"

// settleTime is how long all may take to be as the cluster says once the last
// fault is over: a leader that was frozen, or a connection that fell silent,
// comes back after its lease or its pings.
const settleTime = 90 * time.Second

// loopState is what matters here of the state that a controller shows.
type loopState struct {
	Rendered, Validated, LastError string
	Leading                        bool
	Refused, Quarantined           []json.RawMessage
	Instances                      []struct {
		Name, Hash, Error string
		StaleSince        time.Time
	}
}

func (c *controller) loopState() (state loopState, err error) {
	text, err := c.page("/debug/vars/state")
	if err != nil {
		return state, err
	}
	return state, json.Unmarshal([]byte(text), &state)
}

// calm ends all faults and checks that all is as the cluster says.
func (s *soak) calm(when string) {
	s.t.Helper()
	s.endTrials(time.Now().Add(time.Hour))
	begin := time.Now()
	s.still.Store(true)
	for _, check := range []struct {
		what  string
		check func() error
	}{
		{"the cluster has all changes", s.writes.done},
		{"controllers run", s.run},
		{"every HAProxy serves what is in the API", s.served},
		{"every store holds what is in etcd", s.stored},
		{"every HAProxy has the last valid revision", s.settled},
		{"nothing of the second writer is left", s.alone},
		{"no event is lost", s.nothingLost},
		{"goroutines and descriptors are where they were", s.resourcesReturned},
	} {
		begin, why := time.Now(), error(nil)
		eventuallyWithin(s.t, settleTime, when+": "+check.what, func() error {
			err := check.check()
			if err != nil {
				why = err
			}
			return err
		})
		if took := time.Since(begin); took > 5*time.Second {
			s.t.Logf("%s: %s, after %v; at last %.300s", when, check.what, took.Round(time.Second), why)
		}
	}
	s.t.Logf("%s: all is as the cluster says, after %v", when, time.Since(begin).Round(time.Millisecond))
	s.still.Store(false)
	s.quiet.Store(true)
	<-time.After(quietTime) // the length of the calm is what propagation is measured in
}

// quietTime is how long a calm lasts.
const quietTime = 3 * time.Second

func (s *soak) controllers() []*controller { return append([]*controller{s.local}, s.fleet...) }

func (s *soak) run() error {
	var errs []error
	for _, c := range s.controllers() {
		if err := c.ended(); err != nil {
			s.t.Fatal(err)
		}
		_, err := c.page("/readyz")
		errs = append(errs, err)
	}
	for _, p := range s.pods {
		if err := p.ended(); err != nil {
			s.t.Fatal(err)
		}
	}
	return errors.Join(errs...)
}

// served asks every HAProxy for every host there is or was.
func (s *soak) served() error {
	for _, f := range s.fronts {
		for h, want := range s.want {
			check := f.plain.expectStatus(h, "/", 404)
			if want != nil {
				check = answeredBy(f.plain, h, want)
			}
			if err := check(); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
		if s.certificate != nil {
			config := s.certs.client(secureHost)
			if err := showsSerial(f.tls, config, s.certificate)(); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
	}
	for h, want := range s.want { // once is enough to see that it stays away
		if want == nil {
			delete(s.want, h)
		}
	}
	return nil
}

// stored compares how many resources there are with how many were rendered.
func (s *soak) stored() error {
	ctx, cancel := context.WithTimeout(s.t.Context(), pageTime)
	defer cancel()
	client, all := env.cluster.client, metav1.ListOptions{}
	ingresses, err1 := client.NetworkingV1().Ingresses(s.k.ns).List(ctx, all)
	services, err2 := client.CoreV1().Services(s.k.ns).List(ctx, all)
	endpoints, err3 := client.DiscoveryV1().EndpointSlices(s.k.ns).List(ctx, all)
	secrets, err4 := client.CoreV1().Secrets(s.k.ns).List(ctx, all)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	read := 0.0 // those with certificates, and with users or CAs
	for _, one := range secrets.Items {
		if one.Type == corev1.SecretTypeTLS || one.Type == corev1.SecretTypeOpaque {
			read++
		}
	}
	want := map[string]float64{"ingresses": float64(len(ingresses.Items)), "services": float64(len(services.Items)),
		"endpointslices": float64(len(endpoints.Items))}
	for _, c := range s.controllers() {
		families, err := c.metrics()
		if err != nil {
			return err
		}
		got := map[string]float64{}
		for _, m := range families["haptic_resource_count"].GetMetric() {
			if kind := m.GetLabel()[0].GetValue(); kind != "ingressclasses" { // of which no namespace has its own
				got[kind] = m.GetGauge().GetValue()
			}
		}
		if held := got["secrets"]; held > read {
			return fmt.Errorf("%s holds %v Secrets, the cluster has %v", c.debug, held, read)
		}
		delete(got, "secrets") // those that Ingresses name, or named
		if !maps.Equal(got, want) {
			return fmt.Errorf("%s has rendered %v, the cluster has %v", c.debug, got, want)
		}
	}
	return nil
}

// settled reads in the state of those who deploy that each endpoint has what
// was validated last, and that nothing is left out.
func (s *soak) settled() error {
	leaders := 0
	for _, c := range s.controllers() {
		state, err := c.loopState()
		if err != nil {
			return err
		}
		if state.LastError != "" || len(state.Refused)+len(state.Quarantined) > 0 || state.Rendered != state.Validated {
			return fmt.Errorf("%s: %+v", c.debug, state)
		}
		if !state.Leading {
			continue
		}
		want := 1
		if c != s.local {
			leaders++
			want = len(s.pods)
		}
		if len(state.Instances) != want {
			return fmt.Errorf("%s deploys to %+v", c.debug, state.Instances)
		}
		for _, e := range state.Instances {
			if e.Hash != state.Validated || !e.StaleSince.IsZero() || e.Error != "" {
				return fmt.Errorf("%s has validated %s, %s has %s, stale since %v: %s", c.debug, state.Validated, e.Name, e.Hash, e.StaleSince, e.Error)
			}
		}
	}
	if leaders != 1 {
		return fmt.Errorf("%d of %d lead", leaders, len(s.fleet))
	}
	return nil
}

// alone reads what the Dataplane APIs have stored.
func (s *soak) alone() error {
	for _, p := range s.pods {
		text, err := p.control("GET", podAPIPort, rawPath, "")
		if err != nil {
			return err
		}
		if strings.Contains(text, intruder) {
			return fmt.Errorf("%s has it still", p.name)
		}
	}
	return nil
}

// counts are what a controller has done.
type counts struct{ reconciliations, deployments, failed, reloads, changes, events float64 }

func (c *counts) add(d counts) {
	c.reconciliations += d.reconciliations
	c.deployments += d.deployments
	c.failed += d.failed
	c.reloads += d.reloads
	c.changes += d.changes
	c.events += d.events
}

func (c *controller) counts() (counts, error) {
	families, err := c.metrics()
	if err != nil {
		return counts{}, err
	}
	return counts{
		reconciliations: sum(families["haptic_reconciliation_total"]),
		deployments:     sum(families["haptic_deployment_total"]),
		failed:          sum(families["haptic_deployment_errors_total"]),
		reloads:         sum(families[reloadMetric]),
		changes:         sum(families["haptic_runtime_changes_total"]),
		events:          sum(families["haptic_events_published_total"]),
	}, nil
}

// nothingLost reads what each controller reports of its bus: no subscriber is
// behind, and the one that counts events by their name has got as many as were
// published.
func (s *soak) nothingLost() error {
	for _, c := range s.controllers() {
		families, err := c.metrics()
		if err != nil {
			return err
		}
		published, counted := sum(families["haptic_events_published_total"]), sum(families["haptic_events_total"])
		pending := sum(families["haptic_event_queue_pending"])
		if counted == 0 || counted != published || pending != 0 {
			return fmt.Errorf("%s: of %v events %v were counted, %v wait", c.debug, published, counted, pending)
		}
	}
	return nil
}

// resources are what a process holds.
type resources struct {
	goroutines, descriptors int
	memory                  int64
}

func (c *controller) resources() (r resources, err error) {
	text, err := c.page("/debug/pprof/goroutine?debug=1")
	if err != nil {
		return r, err
	}
	if _, err := fmt.Sscanf(text, "goroutine profile: total %d", &r.goroutines); err != nil {
		return r, err
	}
	if _, err := c.page("/debug/pprof/heap?gc=1"); err != nil {
		return r, err
	}
	files, err := os.ReadDir("/proc/" + strconv.Itoa(c.pid()) + "/fd")
	r.descriptors, r.memory = len(files), rss(c.pid())
	return r, err
}

// slack is how much more a process may hold than when it was first seen at
// rest: connections and their goroutines come and go, and freed memory goes back
// to the system late.
func (r resources) within(base resources) error {
	const mb = 1 << 20
	if r.goroutines > base.goroutines+15 || r.descriptors > base.descriptors+10 || r.memory > 2*base.memory+64*mb {
		return fmt.Errorf("%d goroutines, %d descriptors, %d MB; at first %d, %d, %d MB",
			r.goroutines, r.descriptors, r.memory/mb, base.goroutines, base.descriptors, base.memory/mb)
	}
	return nil
}

func (s *soak) resourcesReturned() error {
	for _, c := range s.controllers() {
		r, err := c.resources()
		if err != nil {
			return err
		}
		base, ok := s.baselines[c]
		if !ok {
			s.baselines[c] = r
			continue
		}
		if err := r.within(base); err != nil {
			return fmt.Errorf("%s: %w", c.debug, err)
		}
	}
	return nil
}

// endOf takes the counts of a controller that is about to end.
func (s *soak) endOf(c *controller) {
	if n, err := c.counts(); err == nil {
		s.deployed.add(n)
	}
	s.printed = append(s.printed, c)
}

// finish checks what holds for the whole run, and publishes the counts.
func (s *soak) finish(took time.Duration) {
	s.t.Helper()
	for _, c := range s.controllers() {
		var r resources
		eventually(s.t, "the resources are told", func() (err error) { r, err = c.resources(); return err })
		base := s.baselines[c]
		s.resources = append(s.resources, fmt.Sprintf("%s: %d goroutines (%d), %d descriptors (%d), %d MB (%d)", c.debug,
			r.goroutines, base.goroutines, r.descriptors, base.descriptors, r.memory>>20, base.memory>>20))
		for _, page := range []string{"/metrics", "/debug/vars/state", "/debug/vars/events"} {
			var text string
			eventually(s.t, "a page is shown", func() (err error) { text, err = c.page(page); return err })
			if strings.Contains(text, "canary-") {
				s.t.Errorf("%s%s shows a password", c.debug, page)
			}
		}
		s.endOf(c)
	}
	for _, c := range s.printed {
		if text := c.out.String(); strings.Contains(text, "canary-") || strings.Contains(text, "PRIVATE KEY") {
			s.t.Errorf("%s has printed a secret", c.debug)
		} else if strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic") {
			s.t.Errorf("%s has a race or panicked:\n%s", c.debug, c.out.from("DATA RACE", "panic"))
		}
	}
	s.report(took)
}

func (s *soak) report(took time.Duration) {
	s.t.Helper()
	text := &strings.Builder{}
	w := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	row := func(what string, of ...any) { fmt.Fprintf(w, "%s\t%s\n", what, strings.TrimSpace(fmt.Sprintln(of...))) }
	row("time", took.Round(time.Second))
	for _, name := range slices.Sorted(maps.Keys(s.injected)) {
		row("fault: "+name, s.injected[name])
	}
	row("faults in all", s.faults())
	s.writes.mu.Lock()
	row("changes of the cluster", s.writes.made)
	s.writes.mu.Unlock()
	row("routes that came and went", s.routes.Load())
	for _, f := range s.fronts {
		f.mu.Lock()
		row("requests to "+f.name, f.requests, "failed", len(f.failures), "while it was announced to be away", f.excused)
		if len(f.failures) > 0 {
			s.t.Errorf("%d of %d requests to healthy backends failed: %q", len(f.failures), f.requests, f.failures[:min(10, len(f.failures))])
		}
		f.mu.Unlock()
	}
	d := s.deployed
	row("reconciliations, deployments (failed)", d.reconciliations, d.deployments, "(", d.failed, ")")
	row("reloads, changes at runtime", d.reloads, d.changes)
	row("events published", d.events)
	row("controllers killed", s.restarts)
	s.propagation.rows(row)
	for _, line := range s.resources {
		row("held at the end (at first)", line)
	}
	_ = w.Flush()
	s.t.Logf("\n%s", text)
}

// rows print what was measured.
func (p *propagation) rows(row func(string, ...any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range []struct {
		when string
		took map[string][]time.Duration
	}{{"no fault about", p.took}, {"faults about", p.storm}} {
		for _, name := range slices.Sorted(maps.Keys(m.took)) {
			took := m.took[name]
			row("EndpointSlice saved -> answers, "+name+", "+m.when, len(took), "times, p50", quantile(took, .5),
				"p99", quantile(took, .99), "most", quantile(took, 1))
		}
	}
	row("changes that took more than a minute", p.lost)
}
