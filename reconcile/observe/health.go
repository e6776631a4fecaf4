package observe

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/internal/panics"
)

// Probe is the probe that fails if a check fails.
type Probe int

// The probes.
const (
	// Live is /healthz: the component has stalled, and only a new process helps.
	Live Probe = iota
	// ReadyToServe is /readyz: the component is not ready yet.
	ReadyToServe
	// Reported is neither: people should know, but taking the process out of service gains
	// nothing.
	Reported
)

// String returns "live", "ready" or "reported".
func (p Probe) String() string               { return [...]string{"live", "ready", "reported"}[p] }
func (p Probe) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// checkTime is how long a check may take. After that it counts as stalled.
const checkTime = time.Second

// Health is a registry of checks, one for each component that can stall. The zero value is
// empty. Its methods may be called from several goroutines.
type Health struct {
	mu     sync.Mutex
	checks []*check // in the order in which they were added
}

// check is one component.
type check struct {
	component string
	probe     Probe
	quiet     bool // Run publishes no event for it
	f         func() error

	mu   sync.Mutex
	call *call // has not returned

	story story // only [Observer.Run] uses it
}

type call struct {
	began time.Time
	done  chan struct{}
	err   error
}

// finding is the result of a check.
type finding struct {
	Component string `json:"component"`
	Probe     Probe  `json:"probe"`
	Error     string `json:"error,omitempty"` // "": all is well

	check  *check
	causes []error // the parts of Error
}

// maxCauses is the number of causes that a check shows; it counts the others.
const maxCauses = 10

// Check adds a component. [Observer.Run] calls f each second; each probe, scrape and page also
// calls it. Calls of f do not overlap. f returns what is wrong, or nil. If it takes longer
// than a second, the component counts as stalled until f returns. A second check of the same
// component replaces the first.
//
// The component is a row of the page, of the probes with ?verbose, and of
// haptic_component_healthy. The log has a line when the check begins to fail, and one when the
// component is in order again: [ComponentFailed], [ComponentRecovered].
//
// If f returns errors that [errors.Join] joined, each is a cause with its own lines. The text
// before the first ": " names a cause: "shop.yaml:3: no such field". Figures, such as counts,
// durations and addresses, may change while the cause stays the same.
func (h *Health) Check(component string, p Probe, f func() error) {
	h.add(&check{component: component, probe: p, f: f})
}

// CheckQuietly is [Health.Check] for a component whose failures other events report. The log
// has no line for the check.
func (h *Health) CheckQuietly(component string, p Probe, f func() error) {
	h.add(&check{component: component, probe: p, f: f, quiet: true})
}

func (h *Health) add(c *check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = append(slices.DeleteFunc(slices.Clone(h.checks), func(o *check) bool { return o.component == c.component }), c)
}

// findings runs all checks at once and returns their results, in the order of Check.
func (h *Health) findings() []finding {
	h.mu.Lock()
	checks := h.checks
	h.mu.Unlock()
	all := make([]finding, len(checks))
	var wg sync.WaitGroup
	for i, c := range checks {
		wg.Go(func() {
			all[i] = finding{Component: c.component, Probe: c.probe, check: c, causes: causes(c.ask())}
			all[i].Error = list(all[i].causes, maxCauses, "\n")
		})
	}
	wg.Wait()
	return all
}

// Live returns the failures of [Live] checks, by component, or nil.
func (h *Health) Live() error { return failing(h.findings(), Live) }

// Ready returns the failures of [ReadyToServe] checks, by component, or nil. "Probes" in the
// package documentation says what ready means.
func (h *Health) Ready() error { return failing(h.findings(), ReadyToServe) }

func failing(all []finding, p Probe) error {
	var errs []error
	for _, f := range all {
		if f.Probe == p && f.Error != "" {
			errs = append(errs, errors.New(f.Component+": "+f.Error))
		}
	}
	return errors.Join(errs...)
}

// ask calls the check, or waits for a call that is under way.
func (c *check) ask() error {
	c.mu.Lock()
	one := c.call
	if one == nil {
		one = &call{began: time.Now(), done: make(chan struct{})}
		c.call = one
		go func() {
			one.err = panics.Guard(c.f)
			c.mu.Lock()
			c.call = nil
			c.mu.Unlock()
			close(one.done)
		}()
	}
	c.mu.Unlock()
	select {
	case <-one.done:
		return one.err
	case <-time.After(checkTime):
		return fmt.Errorf("no answer for %s", brief(time.Since(one.began)))
	}
}

// verbose lists all findings in the form of the Kubernetes API server.
func verbose(all []finding) string {
	var b strings.Builder
	for _, f := range all {
		mark, text := "[-]", strings.ReplaceAll(f.Error, "\n", "\n    ")
		switch {
		case f.Error == "":
			mark, text = "[+]", "ok"
		case f.Probe == Reported:
			mark = "[!]"
		}
		fmt.Fprintf(&b, "%s%s (%s): %s\n", mark, f.Component, f.Probe, text)
	}
	return b.String()
}

// brief rounds a duration for people: 1m30s, 12.3s, 45ms.
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
