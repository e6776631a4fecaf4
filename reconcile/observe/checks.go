package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/fetch"
)

// startTime is how long the first list of a resource may take before a check fails.
const startTime = 10 * time.Second

// addChecks adds a check for each component of a subject. A check is quiet if events of the
// loop or of settings report its failures, or if it fails at each start.
func addChecks(bus *eventbus.Bus, s *Subject) {
	p := &progress{subject: s, deploying: map[string]time.Time{}}
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[any]) { p.observe(d.Event) })
	h := s.Health
	h.Check("reconciliation", Live, p.reconciles)
	h.Check("deployment", Live, p.deploys)
	if s.Loop != nil {
		h.CheckQuietly("configuration", ReadyToServe, func() error { return s.ready() })
		h.CheckQuietly("newest", Reported, func() error { return errorOf(s.Loop.State().LastError) })
		h.CheckQuietly("instances", Reported, func() error { return failed(s.Loop.State()) })
		h.CheckQuietly("quarantine", Reported, func() error { return quarantined(s.Loop.State()) })
	}
	if s.watching() {
		h.CheckQuietly("sync", ReadyToServe, func() error {
			return watchesThat(s.watches(), func(w k8swatch.State) bool { return !w.Synced })
		})
		h.Check("watches", Reported, func() error {
			return watchesThat(s.watches(), func(w k8swatch.State) bool {
				starts := w.Phase == k8swatch.PhaseStarting && w.Err == nil && time.Since(w.Since) < startTime
				return w.Phase != k8swatch.PhaseSynced && !starts
			})
		})
	}
	if s.HTTP != nil {
		h.Check("http", Reported, func() error { return notFetched(s.HTTP()) })
		h.CheckQuietly("contents", Reported, func() error { return notUsed(s.HTTP()) })
	}
	if s.Discovery != nil {
		h.CheckQuietly("credentials", Reported, func() error { return errorOf(s.Discovery.Credentials().Error) })
		h.Check("discovery", Reported, s.Discovery.Check)
	}
	if s.Settings != nil {
		h.CheckQuietly("settings", Reported, func() error { return errorOf(s.Settings().Error) })
	}
}

// progress records what has begun and not ended.
type progress struct {
	subject        *Subject
	mu             sync.Mutex
	reconciliation uint64 // under way; 0: none
	since          time.Time
	deploying      map[string]time.Time // start, by instance
	instances      []string             // present instances; nil if unknown
}

func (p *progress) observe(v any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := v.(type) {
	case reconcile.ReconciliationStarted:
		p.reconciliation, p.since = e.ID, time.Now()
	case reconcile.AttemptCompleted: // a search for the fault may be long, but makes progress
		p.since = time.Now()
	case reconcile.ReconciliationCompleted, reconcile.ReconciliationFailed:
		p.reconciliation = 0
	case reconcile.DeploymentStarted:
		if p.instances == nil || slices.Contains(p.instances, e.Instance) { // an instance that has just gone reports no end
			p.deploying[e.Instance] = time.Now()
		}
	case reconcile.InstanceDeployed, reconcile.InstanceDeploymentFailed, reconcile.DeploymentScheduled:
		delete(p.deploying, reportOf(v).Instance)
	case reconcile.LeaderLost: // the loop gave up its deployments
		clear(p.deploying)
	case reconcile.InstancesChanged:
		p.instances = append([]string{}, e.Instances...)
		maps.DeleteFunc(p.deploying, func(name string, _ time.Time) bool { return !slices.Contains(e.Instances, name) })
	}
}

// reconciles finds a reconciliation that does not end. If the loop ended during a
// reconciliation, no event says that it ended.
func (p *progress) reconciles() error {
	state, stallTime := p.subject.state(), p.subject.stallTime()
	p.mu.Lock()
	defer p.mu.Unlock()
	if state.Stopped {
		p.reconciliation = 0
	}
	if took := time.Since(p.since); p.reconciliation != 0 && took > stallTime {
		return fmt.Errorf("reconciliation %d makes no progress for %s", p.reconciliation, brief(took))
	}
	return nil
}

// deploys finds deployments that do not end. If leadership or the loop ended during a
// deployment, no event says that it ended.
func (p *progress) deploys() error {
	state, stallTime := p.subject.state(), p.subject.stallTime()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.subject.Loop != nil && (state.Stopped || !state.Leading) {
		clear(p.deploying)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p.deploying)) {
		if took := time.Since(p.deploying[name]); took > stallTime {
			errs = append(errs, fmt.Errorf("instance %s is being deployed to for %s", name, brief(took)))
		}
	}
	return errors.Join(errs...)
}

// stallTime returns [reconcile.Options].StallTime, or its default without a loop.
func (s *Subject) stallTime() time.Duration {
	return cmp.Or(s.state().StallTime, reconcile.Options{}.WithDefaults().StallTime)
}

// ready says what the loop still needs for [reconcile.State.Ready].
func (of *Subject) ready() error {
	s := of.Loop.State()
	switch {
	case s.Ready():
		return nil
	case s.Validated == "" && s.LastError != "":
		return fmt.Errorf("no valid configuration yet: %s", s.LastError)
	case s.Validated == "" && of.Settings != nil && of.Settings().Version == "":
		return errors.New("no valid configuration yet: no settings are in use: see settings")
	case s.Validated == "":
		return errors.New("no valid configuration yet")
	case len(s.Instances) == 0 && of.Discovery != nil:
		return errors.Join(errors.New("no HAProxy was reached yet"), errorOf(of.Discovery.Credentials().Error), of.Discovery.Check())
	case len(s.Instances) == 0:
		return errors.New("no HAProxy was reached yet: the loop has no targets")
	}
	var errs []error
	for _, e := range s.Instances {
		if e.Unfit == "" && (e.Error == "" || s.Leading) && (e.Hash != "" || !s.Leading) {
			continue
		}
		errs = append(errs, fmt.Errorf("instance %s has no configuration yet: %s", e.Name, cmp.Or(e.Error, e.Unfit, "deployment under way")))
	}
	return errors.Join(errs...)
}

func failed(s reconcile.State) error {
	var errs []error
	for _, e := range s.Instances {
		if e.Error != "" {
			errs = append(errs, fmt.Errorf("instance %s failed %s: %s", e.Name, times(e.Failures), e.Error))
		}
	}
	return errors.Join(errs...)
}

func quarantined(s reconcile.State) error {
	var errs []error
	for _, q := range s.Quarantined {
		errs = append(errs, errors.New(q.String()))
	}
	return errors.Join(errs...)
}

func watchesThat(watches map[string]k8swatch.State, are func(k8swatch.State) bool) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(watches)) {
		if w := watches[name]; are(w) {
			text := string(w.Phase)
			if w.Err != nil {
				text += ": " + w.Err.Error()
			}
			if w.Synced {
				text += "; the objects read before stay in use"
			}
			errs = append(errs, fmt.Errorf("%s: %s; the watcher tries again", name, text))
		}
	}
	return errors.Join(errs...)
}

// notFetched names the URLs whose last fetch failed.
func notFetched(all []fetch.Resource) error {
	var errs []error
	for _, r := range all {
		if r.Error != "" {
			errs = append(errs, fmt.Errorf("%s: %s; failures in a row: %d", r.URL, strings.TrimPrefix(r.Error, "http.Fetch "+r.URL+": "), r.Failures))
		}
	}
	return errors.Join(errs...)
}

// notUsed names the URLs whose newest content is not used.
func notUsed(all []fetch.Resource) error {
	var errs []error
	for _, r := range all {
		if r.Refused != "" {
			errs = append(errs, fmt.Errorf("%s: its new content is not used, the one from before stays: %s", r.URL, r.Refused))
		}
	}
	return errors.Join(errs...)
}

// errorOf returns an error with this text, or nil if it is empty.
func errorOf(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times in a row", n)
}
