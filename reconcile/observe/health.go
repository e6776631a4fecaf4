package observe

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Probe says which probe fails with a check.
type Probe int

// The probes.
const (
	// Live is /healthz: the component is stalled, and only a new process helps.
	Live Probe = iota
	// ReadyToServe is /readyz: the component is not there yet.
	ReadyToServe
	// Reported is neither: people should know, but nothing is gained if the
	// process is taken out of service.
	Reported
)

// String returns "live", "ready" or "reported".
func (p Probe) String() string { return [...]string{"live", "ready", "reported"}[p] }

// checkTime is how long a check may take: one that does not answer has stalled. It
// is waited for in steps, so that a process that had no processor for a while, in
// which a timer runs off, leaves its checks time to answer.
const (
	checkTime  = time.Second
	checkSteps = 10
)

// Finding is what a check has found.
type Finding struct {
	Component string
	Probe     Probe
	Err       error // nil: all is well
}

// Health is a registry of checks, one for each component that can stall. The
// zero value is empty; its methods may be called from several goroutines.
type Health struct {
	mu     sync.Mutex
	checks []*check // in the order in which they were added
}

// check is one component.
type check struct {
	component string
	probe     Probe
	f         func() error

	mu   sync.Mutex
	call *call // that has not returned
}

type call struct {
	began time.Time
	done  chan struct{}
	err   error
}

// Check adds a component. f is called for each probe and each page, once at a
// time, and says what is wrong, nil for nothing. One that takes longer than a
// second counts as stalled, until it returns. A second check of the same
// component replaces the first.
func (h *Health) Check(component string, p Probe, f func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	added := &check{component: component, probe: p, f: f}
	if i := slices.IndexFunc(h.checks, func(c *check) bool { return c.component == component }); i >= 0 {
		h.checks[i] = added
		return
	}
	h.checks = append(h.checks, added)
}

// Heartbeat adds a component that says itself that it is alive: it is stalled
// when beat has not been called for longer than within. The first beat counts
// from now.
func (h *Health) Heartbeat(component string, within time.Duration) (beat func()) {
	var mu sync.Mutex
	last := time.Now()
	h.Check(component, Live, func() error {
		mu.Lock()
		defer mu.Unlock()
		if silent := time.Since(last); silent > within {
			return fmt.Errorf("no sign of life for %s", brief(silent))
		}
		return nil
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		last = time.Now()
	}
}

// All asks all checks, at once, and returns what they found, in the order in
// which they were added.
func (h *Health) All() []Finding {
	h.mu.Lock()
	checks := slices.Clone(h.checks)
	h.mu.Unlock()
	findings := make([]Finding, len(checks))
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() { findings[i] = Finding{c.component, c.probe, c.ask()} })
	}
	wg.Wait()
	return findings
}

// Live returns what keeps the process from being alive, by component; nil for
// nothing. It fits [Server].Healthy.
func (h *Health) Live() error { return failing(h.All(), Live) }

// Ready returns what keeps the process from being ready, by component; nil for
// nothing. It fits [Server].Ready.
func (h *Health) Ready() error { return failing(h.All(), ReadyToServe) }

func failing(findings []Finding, p Probe) error {
	var errs []error
	for _, f := range findings {
		if f.Probe == p && f.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.Component, f.Err))
		}
	}
	return errors.Join(errs...)
}

// ask calls the check, or waits with whoever has called it.
func (c *check) ask() error {
	c.mu.Lock()
	if c.call == nil {
		one := &call{began: time.Now(), done: make(chan struct{})}
		c.call = one
		go func() {
			one.err = safely(c.f)
			c.mu.Lock()
			c.call = nil
			c.mu.Unlock()
			close(one.done)
		}()
	}
	one := c.call
	c.mu.Unlock()
	if one.endsWithin(checkSteps) {
		return one.err
	}
	return fmt.Errorf("no answer for %s", brief(time.Since(one.began)))
}

// endsWithin waits for the end of a call, for so many steps.
func (c *call) endsWithin(steps int) bool {
	step := time.NewTicker(checkTime / checkSteps)
	defer step.Stop()
	for range steps {
		select {
		case <-c.done:
			return true
		case <-step.C:
		}
	}
	select {
	case <-c.done: // at the same moment, or before
		return true
	default:
		return false
	}
}

// verbose lists all findings, as the API server of Kubernetes does.
func verbose(findings []Finding) string {
	var b strings.Builder
	for _, f := range findings {
		mark, says := "[+]", "ok"
		if f.Err != nil {
			mark, says = "[-]", strings.ReplaceAll(f.Err.Error(), "\n", "\n    ")
		}
		if f.Err != nil && f.Probe == Reported {
			mark = "[!]"
		}
		fmt.Fprintf(&b, "%s%s (%s): %s\n", mark, f.Component, f.Probe, says)
	}
	return b.String()
}

// brief rounds to what a person wants to read: 1m30s, 12.3s, 45ms.
func brief(d time.Duration) string {
	switch {
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(100 * time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(time.Millisecond)
	}
	return d.String()
}
