package reconcile

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/event"
)

// DeploymentScheduled says that an instance gets a configuration later, because
// its last reload was less than the minimum interval ago. Changes without a reload
// are applied already.
type DeploymentScheduled struct {
	ID       uint64
	Instance string
	At       time.Time
	Applied  *dataplane.Result // Left has what waits
}

// Report implements [event.Event].
func (e DeploymentScheduled) Report() event.Report {
	s := "waits for the minimum interval between two reloads, until " + clock(e.At)
	if e.Applied != nil && e.Applied.Commands > 0 {
		s += "; applied at once: " + outcomeOf(e.Applied)
	}
	return event.Report{Name: "deployment.scheduled", Level: slog.LevelInfo, Sentence: s, Reconciliation: e.ID, Instance: e.Instance}
}

// DeploymentStarted opens a deployment to one instance.
type DeploymentStarted struct {
	ID       uint64
	Instance string
}

// Report implements [event.Event].
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

// Report implements [event.Event].
func (e InstanceDeployed) Report() event.Report {
	return event.Report{Name: "instance.deployed", Level: slog.LevelInfo, Reconciliation: e.ID, Instance: e.Instance, Took: e.Took, Result: e.Result,
		Sentence: "deployed" + afterFailures(e.Failures) + ": " + outcomeOf(e.Result), Metrics: deploymentMetrics(e.Took, false)}
}

// InstanceDeploymentFailed says that an instance does not have the
// configuration, and when it is tried again; other instances are untouched.
type InstanceDeploymentFailed struct {
	ID       uint64
	Instance string
	Result   *dataplane.Result // what was done all the same; may be nil
	Err      error
	Failures int       // in a row
	RetryAt  time.Time // unless a new configuration comes first
	Took     time.Duration

	// Asked says that it was only asked whether it takes a configuration that no
	// other instance gets: what it has is what it should have, as far as can be.
	Asked bool
}

// Report implements [event.Event].
func (e InstanceDeploymentFailed) Report() event.Report {
	r := event.Report{Name: "instance.deployment.failed", Level: slog.LevelError, Reconciliation: e.ID, Instance: e.Instance,
		Took: e.Took, Err: e.Err, Result: e.Result, Metrics: deploymentMetrics(e.Took, !e.Asked)}
	if e.Asked { // nothing is wrong but what is in quarantine
		r.Level, r.Sentence = slog.LevelInfo, fmt.Sprintf("was asked, and does not take it: %v", e.Err)
		return r
	}
	again := inARow(e.Failures)
	if !e.RetryAt.IsZero() {
		again += ", next try at " + clock(e.RetryAt)
	}
	r.Sentence = fmt.Sprintf("deployment failed%s: %v", again, e.Err)
	return r
}

// DriftRepaired says that an idle instance no longer had what was deployed to
// it, and that it has again.
type DriftRepaired struct {
	ID       uint64
	Instance string
	Result   *dataplane.Result
}

// Report implements [event.Event].
func (e DriftRepaired) Report() event.Report {
	r := event.Report{Name: "drift.repaired", Level: slog.LevelWarn, Reconciliation: e.ID, Instance: e.Instance, Result: e.Result,
		Sentence: "was changed by somebody else and is repaired: " + outcomeOf(e.Result)}
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

// InstancesChanged says which instances are deployed to from now on.
type InstancesChanged struct {
	Instances []string
	Added     []string
	Removed   []string
}

// Report implements [event.Event].
func (e InstancesChanged) Report() event.Report {
	return event.Report{Name: "haproxy.pods.discovered", Level: slog.LevelInfo,
		Sentence: "deploying to " + count(len(e.Instances), "instance") + listed(", new: ", e.Added) + listed(", gone: ", e.Removed)}
}
