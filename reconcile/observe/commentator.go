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
)

// Comment logs, until the bus is closed, one line for what a person wants to
// know: each reconciliation that changed something, each deployment, each
// failure, each resource that was refused. What led nowhere is at debug level.
// A nil logger is slog.Default().
//
// The message is a sentence; figures to search for are in the attributes
// "reconciliation", "endpoint", "hash" and "took".
func Comment(bus *eventbus.Bus, log *slog.Logger) *eventbus.Subscription {
	if log == nil {
		log = slog.Default()
	}
	var c commentator
	return eventbus.Subscribe(bus, eventbus.Lossless, func(ctx context.Context, d eventbus.Delivery[any]) {
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
// reconciliation needs to tell its whole story.
type commentator struct {
	started  reconcile.ReconciliationStarted
	rendered reconcile.TemplateRendered
}

// record returns the remark on an event, and whether there is one.
func (c *commentator) record(event any) (remark, bool) {
	switch e := event.(type) {
	case reconcile.ReconciliationStarted:
		c.started = e
	case reconcile.TemplateRendered:
		c.rendered = e
	case reconcile.ReconciliationCompleted:
		return c.completed(e), true
	case reconcile.ReconciliationFailed:
		return note(slog.LevelError, "the configuration stays as it is, as the new one failed"+c.because(e.ID)+": "+text(e.Err)).
			id(e.ID).took(e.Took), true
	case reconcile.ResourceRefused:
		return note(slog.LevelWarn, "left out: "+e.Refusal.String()).id(e.ID), true
	case reconcile.ResourceAccepted:
		return note(slog.LevelInfo, "no longer left out: "+e.Refusal.Resource).id(e.ID), true
	case reconcile.SourceFailed:
		return note(slog.LevelError, "resources not read, those from before stay in use: "+text(e.Err)), true
	case reconcile.IndexSynchronized:
		return note(slog.LevelInfo, "watching "+kinds(e.Resources)).took(e.Took), true
	}
	return c.deployment(event)
}

// deployment remarks on events about endpoints and leadership.
func (c *commentator) deployment(event any) (remark, bool) {
	switch e := event.(type) {
	case reconcile.DeploymentScheduled:
		return note(slog.LevelInfo, "waits for the minimum interval between two reloads, until "+clock(e.At)).
			id(e.ID).endpoint(e.Endpoint), true
	case reconcile.DeploymentStarted:
		return note(slog.LevelDebug, "deploying").id(e.ID).endpoint(e.Endpoint), true
	case reconcile.InstanceDeployed:
		return note(slog.LevelInfo, "deployed: "+outcome(e.Result)).id(e.ID).endpoint(e.Endpoint).took(e.Took), true
	case reconcile.InstanceDeploymentFailed:
		return note(slog.LevelError, "deployment failed"+again(e)+": "+text(e.Err)).
			id(e.ID).endpoint(e.Endpoint).took(e.Took), true
	case reconcile.DriftRepaired:
		return note(slog.LevelWarn, "was changed by somebody else and is repaired: "+outcome(e.Result)).
			id(e.ID).endpoint(e.Endpoint), true
	case reconcile.EndpointsChanged:
		return note(slog.LevelInfo, endpoints(e)), true
	case reconcile.LeaderBecame:
		return note(slog.LevelInfo, "leads now and deploys, as "+e.Identity), true
	case reconcile.LeaderLost:
		return note(slog.LevelWarn, "leads no longer and deploys nothing, as "+e.Identity), true
	case reconcile.LeaderObserved:
		return note(slog.LevelInfo, "the leader is "+e.Identity), true
	}
	return remark{}, false
}

func (c *commentator) completed(e reconcile.ReconciliationCompleted) remark {
	if e.Unchanged {
		return note(slog.LevelDebug, "nothing to change"+c.because(e.ID)).id(e.ID).took(e.Took)
	}
	s := "new valid configuration"
	if r := c.rendered; r.ID == e.ID {
		s += fmt.Sprintf(" of %s in %s and %s", count(r.Lines, "line"), count(r.Sections, "section"), count(r.Files, "file"))
		if len(r.Resources) > 0 {
			s += " from " + kinds(r.Resources)
		}
		if r.Refused > 0 {
			s += fmt.Sprintf(", %d left out", r.Refused)
		}
	}
	r := note(slog.LevelInfo, s+c.because(e.ID)).id(e.ID).took(e.Took)
	r.attrs = append(r.attrs, slog.String("hash", short(e.Hash)))
	return r
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

func note(level slog.Level, text string) remark { return remark{level: level, text: text} }

func (r remark) id(id uint64) remark {
	r.attrs = append(r.attrs, slog.Uint64("reconciliation", id))
	return r
}

func (r remark) endpoint(name string) remark {
	r.attrs = append(r.attrs, slog.String("endpoint", name))
	return r
}

func (r remark) took(d time.Duration) remark {
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
	s := ""
	if e.Failures > 1 {
		s = fmt.Sprintf(" %d times in a row", e.Failures)
	}
	if !e.RetryAt.IsZero() {
		s += ", next try at " + clock(e.RetryAt)
	}
	return s
}

func endpoints(e reconcile.EndpointsChanged) string {
	s := "deploying to " + count(len(e.Endpoints), "endpoint")
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
