package observe

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

// Comment logs, until the bus is closed, one line for what a person wants to
// know: each reconciliation that changed something, each deployment, each
// failure, each resource that was refused. What led nowhere is at debug level.
// A nil logger is slog.Default().
//
// The message is a sentence; what to search for is in the attributes
// "reconciliation", "instance", "hash" and "took", and in "event": the name of
// the event ([reconcile.Event]), such as "reconciliation.completed".
func Comment(bus *eventbus.Bus, log *slog.Logger) *eventbus.Subscription {
	if log == nil {
		log = slog.Default()
	}
	var c commentator
	return eventbus.Subscribe(bus, func(ctx context.Context, d eventbus.Delivery[any]) {
		if r, ok := c.record(d.Event); ok {
			log.LogAttrs(ctx, r.level, r.text, r.attrs...)
		}
	})
}

// remark is a log line.
type remark struct {
	level slog.Level
	text  string
	attrs []slog.Attr
}

// commentator makes remarks of events. It remembers what the last event of a
// reconciliation, and of an instance, needs to tell its whole story.
type commentator struct {
	started  reconcile.ReconciliationStarted
	rendered reconcile.TemplateRendered
	attempts int            // of the reconciliation under way
	failures int            // reconciliations that failed, in a row
	failing  map[string]int // deployments that failed in a row, by instance
	refused  string         // version of the settings that were refused last, "" after good ones
}

// record returns the remark on an event, and whether there is one.
func (c *commentator) record(event any) (remark, bool) {
	known, ok := event.(reconcile.Event)
	if !ok {
		return remark{}, false
	}
	r := remark{level: known.Level()}
	if c.reconciliation(&r, event) || c.resources(&r, event) || c.deployment(&r, event) || c.settings(&r, event) {
		r.attrs = append(r.attrs, slog.String("event", known.EventName()))
		return r, true
	}
	return remark{}, false
}

// reconciliation remarks on how reconciliations end.
func (c *commentator) reconciliation(r *remark, event any) bool {
	switch e := event.(type) {
	case reconcile.ReconciliationStarted:
		c.started, c.attempts = e, 0
	case reconcile.AttemptCompleted:
		c.attempts++
	case reconcile.TemplateRendered:
		c.rendered = e
	case reconcile.ReconciliationCompleted:
		c.completed(r, e)
		return true
	case reconcile.ReconciliationFailed:
		c.failures++
		r.say("the configuration stays as it is, as the new one failed%s%s: %s", inARow(c.failures), c.because(e.ID), text(e.Err))
		r.id(e.ID).took(e.Took)
		return true
	}
	return false
}

// resources remarks on what is read and on what is left out of it.
func (c *commentator) resources(r *remark, event any) bool {
	switch e := event.(type) {
	case reconcile.ResourceRefused:
		r.say("left out: %s", e.Refusal).id(e.ID)
	case reconcile.ResourceAccepted:
		r.say("no longer left out: %s", strings.TrimSuffix(e.Refusal.Resource+": "+e.Refusal.Field, ": ")).id(e.ID)
	case reconcile.ResourceQuarantined:
		r.say("in quarantine, all others are served").about(e.Resource, "fault", e.Fault.String()).id(e.ID)
	case reconcile.ResourceReleased:
		r.say("released from quarantine").about(e.Resource, "because", e.Reason).id(e.ID)
	case reconcile.SourceFailed:
		r.say("resources not read, those from before stay in use: %s", text(e.Err))
	case reconcile.IndexSynchronized:
		r.say("watching %s", kinds(e.Resources)).took(e.Took)
	case fetch.Updated:
		r.say("fetched a new content of %s, %s, which is used once it has been deployed", e.URL, count(e.Bytes, "byte"))
	case fetch.Accepted:
		r.say("the new content of %s is deployed", e.URL)
	case fetch.Rejected:
		r.say("the new content of %s is not used, the one from before stays: %s", e.URL, text(e.Err))
	default:
		return false
	}
	return true
}

// deployment remarks on events about instances and leadership.
func (c *commentator) deployment(r *remark, event any) bool {
	switch e := event.(type) {
	case reconcile.DeploymentScheduled:
		done := ""
		if r := e.Applied; r != nil && r.Commands > 0 {
			done = fmt.Sprintf("; applied at once: %s", outcome(r))
		}
		r.say("waits for the minimum interval between two reloads, until %s%s", clock(e.At), done).id(e.ID).instance(e.Instance)
	case reconcile.DeploymentStarted:
		r.say("deploying").id(e.ID).instance(e.Instance)
	case reconcile.InstanceDeployed:
		r.say("deployed%s: %s", c.recovered(e.Instance), outcome(e.Result)).id(e.ID).instance(e.Instance).took(e.Took)
	case reconcile.InstanceDeploymentFailed:
		if e.Asked {
			r.say("was asked, and does not take it: %s", text(e.Err)).id(e.ID).instance(e.Instance).took(e.Took)
			break
		}
		c.fails(e.Instance)
		r.say("deployment failed%s: %s", again(e), text(e.Err)).id(e.ID).instance(e.Instance).took(e.Took)
	case reconcile.DriftRepaired:
		r.say("was changed by somebody else and is repaired: %s", outcome(e.Result)).id(e.ID).instance(e.Instance)
	case reconcile.InstancesChanged:
		for _, name := range e.Removed {
			delete(c.failing, name)
		}
		r.say("%s", instances(e))
	case reconcile.LeaderBecame:
		r.say("leads now and deploys, as %s", e.Identity)
	case reconcile.LeaderLost:
		r.say("leads no longer and deploys nothing, as %s", e.Identity)
	case reconcile.LeaderObserved:
		r.say("the leader is %s", e.Identity)
	default:
		return false
	}
	return true
}

// settings remarks on settings that take effect, or do not.
func (c *commentator) settings(r *remark, event any) bool {
	switch e := event.(type) {
	case settings.Applied:
		after := ""
		if c.refused != "" {
			after, c.refused = ", after version "+c.refused+" was refused", ""
		}
		r.say("new settings are in use%s: version %s of %s%s", after, e.Version, e.Name, watchers(e)).took(e.Took)
	case settings.Invalid:
		c.refused = e.Version
		r.say("the settings stay as they are, as version %s of %s is wrong: %s", e.Version, e.Name, text(e.Err)).took(e.Took)
	default:
		return false
	}
	return true
}

// completed tells of a configuration that may be deployed, what it was made of
// and, if that explains it, what went before.
func (c *commentator) completed(r *remark, e reconcile.ReconciliationCompleted) {
	before := ""
	if c.failures > 0 {
		before, r.level = ", after "+count(c.failures, "failure"), slog.LevelInfo
	}
	if c.attempts > 1 {
		before += fmt.Sprintf(", at attempt %d", c.attempts)
	}
	c.failures = 0
	if e.Unchanged {
		r.say("nothing to change%s%s", c.because(e.ID), before).id(e.ID).took(e.Took)
		return
	}
	s := "new valid configuration"
	if d := c.rendered; d.ID == e.ID {
		s += fmt.Sprintf(" of %s in %s and %s", count(d.Lines, "line"), count(d.Sections, "section"), count(d.Files, "file"))
		if len(d.Resources) > 0 {
			s += " from " + kinds(d.Resources)
		}
		if d.Refused > 0 {
			s += fmt.Sprintf(", %d left out", d.Refused)
		}
	}
	r.say("%s%s%s", s, c.because(e.ID), before).id(e.ID).took(e.Took)
	r.attrs = append(r.attrs, slog.String("hash", short(e.Hash)))
}

// fails counts a failed deployment.
func (c *commentator) fails(instance string) {
	if c.failing == nil {
		c.failing = map[string]int{}
	}
	c.failing[instance]++
}

// recovered says how often a deployment failed that has succeeded now.
func (c *commentator) recovered(instance string) string {
	n := c.failing[instance]
	delete(c.failing, instance)
	if n == 0 {
		return ""
	}
	return ", after " + count(n, "failure")
}

// because says why a reconciliation began, "" where that is not known.
func (c *commentator) because(id uint64) string {
	const most = 3 // a storm of changes has one line, too
	var reasons []string
	if c.started.ID == id {
		reasons = slices.Compact(slices.Sorted(slices.Values(c.started.Reasons)))
	}
	switch {
	case len(reasons) == 0:
		return ""
	case len(reasons) > most:
		return fmt.Sprintf(", after %s and %d more", strings.Join(reasons[:most], ", "), len(reasons)-most)
	}
	return ", after " + strings.Join(reasons, ", ")
}

// say sets the text.
func (r *remark) say(format string, args ...any) *remark {
	r.text = fmt.Sprintf(format, args...)
	return r
}

func (r *remark) id(id uint64) *remark {
	r.attrs = append(r.attrs, slog.Uint64("reconciliation", id))
	return r
}

// about names the resource, so that it can be searched for, and says why.
func (r *remark) about(resource reconcile.Resource, key, why string) *remark {
	r.attrs = append(r.attrs, slog.String("resource", resource.String()))
	if resource.Source != "" {
		r.attrs = append(r.attrs, slog.String("source", resource.Source))
	}
	r.attrs = append(r.attrs, slog.String(key, why))
	return r
}

func (r *remark) instance(name string) *remark {
	r.attrs = append(r.attrs, slog.String("instance", name))
	return r
}

func (r *remark) took(d time.Duration) *remark {
	r.attrs = append(r.attrs, slog.String("took", d.Round(100*time.Microsecond).String()))
	return r
}

// outcome says what a deployment did to HAProxy.
func outcome(r *dataplane.Result) string {
	if r == nil {
		return "nothing known about it"
	}
	s := r.Plan.Summary()
	if r.Fallback != "" {
		s += "; reloaded because " + r.Fallback
	}
	return s
}

func again(e reconcile.InstanceDeploymentFailed) string {
	s := inARow(e.Failures)
	if !e.RetryAt.IsZero() {
		s += ", next try at " + clock(e.RetryAt)
	}
	return s
}

// inARow says how often something failed, if it was more than once.
func inARow(failures int) string {
	if failures < 2 {
		return ""
	}
	return fmt.Sprintf(" %d times in a row", failures)
}

// watchers says what is watched from now on and what no longer.
func watchers(e settings.Applied) string {
	s := ""
	if len(e.Started) > 0 {
		s += ", watching now: " + strings.Join(e.Started, " ")
	}
	if len(e.Stopped) > 0 {
		s += ", no longer: " + strings.Join(e.Stopped, " ")
	}
	return s
}

func instances(e reconcile.InstancesChanged) string {
	s := "deploying to " + count(len(e.Instances), "instance")
	if len(e.Added) > 0 {
		s += ", new: " + strings.Join(e.Added, " ")
	}
	if len(e.Removed) > 0 {
		s += ", gone: " + strings.Join(e.Removed, " ")
	}
	return s
}

// kinds reads "2 Ingress, 3 Service", sorted.
func kinds(resources map[string]int) string {
	if len(resources) == 0 {
		return "no resources"
	}
	parts := make([]string, 0, len(resources))
	for _, kind := range slices.Sorted(maps.Keys(resources)) {
		parts = append(parts, fmt.Sprintf("%d %s", resources[kind], kind))
	}
	return strings.Join(parts, ", ")
}

// clock is a time of day: a log line carries its date itself.
func clock(t time.Time) string { return t.Format("15:04:05.000") }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func short(hash string) string { return hash[:min(len(hash), 8)] }

func text(err error) string {
	if err == nil {
		return "no reason given"
	}
	return err.Error()
}
