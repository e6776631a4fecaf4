package reconcile

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/phrase"
	"github.com/hapticsdk/haptic/reconcile/event"
)

// DeploymentScheduled says that an instance gets a configuration later. Its last reload was
// less than the minimum interval ago, or its old workers have to end first. Changes that
// need no reload are already applied.
type DeploymentScheduled struct {
	ID       uint64
	Instance string
	At       time.Time
	Applied  *dataplane.Result // Left has the part that waits
	Waits    error             // why old workers hold it up: wraps [dataplane.ErrOldWorkers]; nil: it waits for the interval
}

func (e DeploymentScheduled) Report() event.Report {
	level, s := slog.LevelInfo, "waits for the minimum interval between two reloads, until "+phrase.Clock(e.At)
	if e.Waits != nil {
		level, s = slog.LevelWarn, "waits: "+e.Waits.Error()+": they end with their connections, or by hard-stop-after"
	}
	if e.Applied != nil && e.Applied.Commands > 0 {
		s += "; what takes no reload is applied, by " + phrase.Count(e.Applied.Commands, "runtime command")
	}
	return event.Report{Name: "deployment.scheduled", Level: level, Sentence: s, Reconciliation: e.ID, Instance: e.Instance}
}

// DeploymentStarted opens a deployment to one instance.
type DeploymentStarted struct {
	ID       uint64
	Instance string
}

func (e DeploymentStarted) Report() event.Report {
	return event.Report{Name: "deployment.started", Level: slog.LevelDebug, Sentence: "deploying", Reconciliation: e.ID, Instance: e.Instance}
}

// InstanceDeployed says that an instance has the configuration.
type InstanceDeployed struct {
	ID       uint64
	Instance string
	Result   *dataplane.Result
	Took     time.Duration
	Failures int // of the deployments before this one, in a row
}

func (e InstanceDeployed) Report() event.Report {
	return event.Report{Name: "instance.deployed", Level: slog.LevelInfo, Reconciliation: e.ID, Instance: e.Instance, Took: e.Took, Result: e.Result,
		Sentence: "deployed" + afterFailures(e.Failures) + ": " + outcomeOf(e.Result), Metrics: deploymentMetrics(e.Took, false)}
}

// InstanceDeploymentFailed says that an instance does not have the configuration, and when
// the loop tries again. Other instances are untouched.
type InstanceDeploymentFailed struct {
	ID       uint64
	Instance string
	Result   *dataplane.Result // what was done all the same; may be nil
	Err      error
	Failures int       // in a row
	RetryAt  time.Time // unless a new configuration comes first
	Took     time.Duration
}

func (e InstanceDeploymentFailed) Report() event.Report {
	again := phrase.InARow(e.Failures)
	if !e.RetryAt.IsZero() {
		again += ", next try at " + phrase.Clock(e.RetryAt)
	}
	return event.Report{Name: "instance.deployment.failed", Level: slog.LevelError, Reconciliation: e.ID, Instance: e.Instance,
		Took: e.Took, Err: e.Err, Repeat: e.Failures, Result: e.Result, Metrics: deploymentMetrics(e.Took, true),
		Sentence: fmt.Sprintf("deployment failed%s: %v", again, e.Err)}
}

// InstanceReached says that an instance answers again after failures, and can be deployed
// to. [InstanceDeployed] follows if this process leads.
type InstanceReached struct {
	Instance string
	Failures int // before, in a row
}

func (e InstanceReached) Report() event.Report {
	return event.Report{Name: "instance.reached", Level: slog.LevelInfo, Instance: e.Instance, Sentence: "answers again" + afterFailures(e.Failures)}
}

// DeploymentCompleted says that a revision has arrived: each instance has it, or its last
// deployment of it failed. An instance that does not answer fails by its time-out, and the
// loop goes on trying it. A reload that waits holds the event back.
//
// A process that leads publishes one such event for each revision. If a newer revision takes
// its place first, Superseded names the instances that get that one instead. There is no
// event without instances, for instances that come later, or after the end of the loop or of
// leadership.
type DeploymentCompleted struct {
	ID         uint64
	Hash       string
	Instances  []string // that have it
	Failed     []string // that have not
	Superseded []string
	Took       time.Duration // since it was validated or, if that was later, since this process leads
}

// Report implements [event.Event]. With a single instance it has no sentence, since
// [InstanceDeployed] has one.
func (e DeploymentCompleted) Report() event.Report {
	r := event.Report{Name: "deployment.completed", Level: slog.LevelInfo, Reconciliation: e.ID, Took: e.Took, Fields: []slog.Attr{hashField(e.Hash)}}
	all := len(e.Instances) + len(e.Failed)
	switch {
	case len(e.Superseded) > 0 || all < 2:
		r.Level = slog.LevelDebug
	case len(e.Failed) > 0:
		r.Level = slog.LevelWarn
		r.Sentence = fmt.Sprintf("%d of %d instances have revision %s; it failed on %s", len(e.Instances), all, phrase.Short(e.Hash), phrase.Some(e.Failed))
	default:
		r.Sentence = fmt.Sprintf("all %d instances have revision %s", all, phrase.Short(e.Hash))
	}
	return r
}

// DeploymentUnfinished says that the loop ended while an instance lacked the newest
// revision. Only a process that leads publishes it.
type DeploymentUnfinished struct {
	ID       uint64
	Hash     string
	Instance string
	Waits    string // what the instance waits for
}

func (e DeploymentUnfinished) Report() event.Report {
	return event.Report{Name: "deployment.unfinished", Level: slog.LevelWarn, Reconciliation: e.ID, Instance: e.Instance, Fields: []slog.Attr{hashField(e.Hash)},
		Sentence: "ended before revision " + phrase.Short(e.Hash) + " was deployed to " + e.Instance + ": " + e.Waits}
}

// DriftPreventionTriggered says that the loop checks an instance for drift, because it
// deployed nothing to it for the drift interval. An instance without drift has no other
// event.
type DriftPreventionTriggered struct {
	ID       uint64
	Instance string
	Idle     time.Duration
}

func (e DriftPreventionTriggered) Report() event.Report {
	return event.Report{Name: "drift.prevention.triggered", Level: slog.LevelDebug, Reconciliation: e.ID, Instance: e.Instance,
		Fields: []slog.Attr{slog.String("idle", e.Idle.Round(time.Millisecond).String())}}
}

// DriftRepaired says that an idle instance had lost what was deployed to it, and has it
// again.
type DriftRepaired struct {
	ID       uint64
	Instance string
	Result   *dataplane.Result
}

func (e DriftRepaired) Report() event.Report {
	r := event.Report{Name: "drift.repaired", Level: slog.LevelWarn, Reconciliation: e.ID, Instance: e.Instance, Result: e.Result,
		Sentence: "another writer changed this instance, and the controller repaired it: " + outcomeOf(e.Result)}
	if e.Result != nil {
		r.Took = e.Result.Duration
	}
	r.Metrics = append(deploymentMetrics(r.Took, false),
		event.Metric{Name: "drift_repaired_total", Help: "Idle instances that no longer had what was deployed to them, and have it again.", Value: 1})
	return r
}

func deploymentMetrics(took time.Duration, failed bool) []event.Metric {
	return []event.Metric{
		{Name: "deployment_total", Help: "Deployments to one instance, well or not, repairs of drift included.", Value: 1},
		{Name: "deployment_errors_total", Help: "Deployments to one instance that failed.", Value: event.One(failed)},
		{Kind: event.Seconds, Name: "deployment_duration_seconds", Help: "Time of a deployment to one instance, in seconds.", Value: took.Seconds()},
	}
}

// InstancesChanged names the instances that the loop deploys to from now on.
type InstancesChanged struct {
	Instances []string
	Added     []string
	Removed   []string
}

func (e InstancesChanged) Report() event.Report {
	return event.Report{Name: "haproxy.pods.discovered", Level: slog.LevelInfo,
		Sentence: "deploying to " + phrase.Count(len(e.Instances), "instance") + listed(", new: ", e.Added) + listed(", gone: ", e.Removed)}
}

// HAProxyChanged says what happened to the HAProxy on this host: it started or was adopted,
// ended unasked, does not start, hangs, or answers again. Your program publishes it, not the
// loop:
//
//	OnProcess: func(e dataplane.ProcessEvent) {
//		eventbus.Publish(bus, reconcile.HAProxyChanged{Instance: "local", ProcessEvent: e})
//	},
type HAProxyChanged struct {
	Instance string
	dataplane.ProcessEvent
}

func (e HAProxyChanged) Report() event.Report {
	starts := e.Kind == dataplane.ProcessStarted || e.Kind == dataplane.ProcessAdopted
	r := event.Report{Name: "haproxy.started", Level: slog.LevelError, Instance: e.Instance, Err: e.Err, Repeat: fallsToCount(e.Times), Metrics: []event.Metric{
		{Name: "haproxy_starts_total", Help: "Starts of the HAProxy on this host, adopted ones included.", Value: event.One(starts)},
		{Name: "haproxy_ends_total", Help: "Times that the HAProxy on this host ended unasked.", Value: event.One(e.Kind == dataplane.ProcessEnded)},
		{Name: "haproxy_start_errors_total", Help: "Starts of the HAProxy on this host that failed.", Value: event.One(e.Kind == dataplane.ProcessStartFailed)},
	}}
	switch text := textOf(e.Err); e.Kind {
	case dataplane.ProcessEnded:
		r.Name, r.Sentence = "haproxy.ended", text+inAShortTime(e.Times)
	case dataplane.ProcessSilent:
		r.Name, r.Sentence = "haproxy.silent", text+inAShortTime(e.Times)
	case dataplane.ProcessStartFailed:
		r.Name, r.Repeat, r.Sentence = "haproxy.start.failed", e.Tries, "HAProxy does not start"+phrase.InARow(e.Tries)+": "+text
	case dataplane.ProcessAnswers:
		r.Name, r.Level, r.Ends, r.Sentence = "haproxy.answers", slog.LevelInfo, outages(), "HAProxy answers again"
	default:
		verb := "started"
		if e.Kind == dataplane.ProcessAdopted {
			verb = "was adopted"
		}
		r.Level, r.Ends, r.Sentence = slog.LevelInfo, outages(), fmt.Sprintf("HAProxy %s, as process %d", verb, e.PID)+afterFailures(e.Tries)
	}
	return r
}

// outages are the names of the events after which HAProxy does not serve.
func outages() []string { return []string{"haproxy.ended", "haproxy.start.failed", "haproxy.silent"} }

// fallsToCount is the Repeat of a HAProxy that fell so often: each of the first four falls
// has a log line, then each doubling.
func fallsToCount(times int) int { return max(0, times-3) }

// inAShortTime says how often HAProxy fell.
func inAShortTime(times int) string {
	if times < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d times in a short time)", times)
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// The functions below give several events the same words.

func hashField(hash string) slog.Attr { return slog.String("hash", phrase.Short(hash)) }

func resourceFields(r Resource) []slog.Attr {
	fields := []slog.Attr{slog.String("resource", r.String())}
	if r.Source != "" {
		fields = append(fields, slog.String("source", r.Source))
	}
	return fields
}

// outcomeOf says what a deployment did to HAProxy.
func outcomeOf(r *dataplane.Result) string {
	if r == nil {
		return "nothing known about it"
	}
	s := r.Plan.Summary()
	if r.Fallback != "" {
		s += "; reloaded because " + r.Fallback
	}
	return s
}

// afterFailures says how often something failed before it succeeded.
func afterFailures(n int) string {
	if n == 0 {
		return ""
	}
	return ", after " + phrase.Count(n, "failure")
}

// listed returns a list behind its title, "" for an empty list.
func listed(title string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return title + strings.Join(names, " ")
}
