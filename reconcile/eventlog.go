package reconcile

import (
	"log/slog"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// Event is what every event of this package is: it knows its name, how loud it
// is in a log, and what to say there.
//
//	log.Log(ctx, e.Level(), e.EventName(), "event", e)
type Event interface {
	// EventName is the name of its kind, such as "reconciliation.completed": in
	// the past tense, the same in logs, histories and metrics, and the same for
	// ever.
	EventName() string
	slog.Leveler   // at which level it is worth a line of a log
	slog.LogValuer // its attributes; no secret is among them
}

// EventName implements [Event].
func (ReconciliationTriggered) EventName() string  { return "reconciliation.triggered" }
func (ReconciliationStarted) EventName() string    { return "reconciliation.started" }
func (AttemptCompleted) EventName() string         { return "reconciliation.attempted" }
func (ReconciliationCompleted) EventName() string  { return "reconciliation.completed" }
func (ReconciliationFailed) EventName() string     { return "reconciliation.failed" }
func (TemplateRendered) EventName() string         { return "template.rendered" }
func (TemplateRenderFailed) EventName() string     { return "template.render.failed" }
func (ValidationCompleted) EventName() string      { return "validation.completed" }
func (ValidationFailed) EventName() string         { return "validation.failed" }
func (ResourceRefused) EventName() string          { return "resource.refused" }
func (ResourceAccepted) EventName() string         { return "resource.accepted" }
func (ResourceQuarantined) EventName() string      { return "resource.quarantined" }
func (ResourceReleased) EventName() string         { return "resource.released" }
func (DeploymentScheduled) EventName() string      { return "deployment.scheduled" }
func (DeploymentStarted) EventName() string        { return "deployment.started" }
func (InstanceDeployed) EventName() string         { return "instance.deployed" }
func (InstanceDeploymentFailed) EventName() string { return "instance.deployment.failed" }
func (DriftRepaired) EventName() string            { return "drift.repaired" }
func (InstancesChanged) EventName() string         { return "haproxy.pods.discovered" }
func (IndexSynchronized) EventName() string        { return "index.synchronized" }
func (LeaderBecame) EventName() string             { return "leader.became" }
func (LeaderLost) EventName() string               { return "leader.lost" }
func (LeaderObserved) EventName() string           { return "leader.observed" }
func (SourceFailed) EventName() string             { return "source.failed" }

// Level implements [slog.Leveler]. What changed something is worth a line; what
// is only on its way is not; what somebody should look at is a warning; what
// keeps HAProxy from being up to date is an error.
func (ReconciliationTriggered) Level() slog.Level { return slog.LevelDebug }
func (ReconciliationStarted) Level() slog.Level   { return slog.LevelDebug }
func (AttemptCompleted) Level() slog.Level        { return slog.LevelDebug }
func (ReconciliationFailed) Level() slog.Level    { return slog.LevelError }
func (TemplateRendered) Level() slog.Level        { return slog.LevelDebug }
func (TemplateRenderFailed) Level() slog.Level    { return slog.LevelDebug } // ReconciliationFailed says it
func (ValidationCompleted) Level() slog.Level     { return slog.LevelDebug }
func (ValidationFailed) Level() slog.Level        { return slog.LevelDebug } // as does that
func (ResourceRefused) Level() slog.Level         { return slog.LevelWarn }
func (ResourceAccepted) Level() slog.Level        { return slog.LevelInfo }
func (ResourceQuarantined) Level() slog.Level     { return slog.LevelError }
func (ResourceReleased) Level() slog.Level        { return slog.LevelInfo }
func (DeploymentScheduled) Level() slog.Level     { return slog.LevelInfo }
func (DeploymentStarted) Level() slog.Level       { return slog.LevelDebug }
func (InstanceDeployed) Level() slog.Level        { return slog.LevelInfo }
func (DriftRepaired) Level() slog.Level           { return slog.LevelWarn }
func (InstancesChanged) Level() slog.Level        { return slog.LevelInfo }
func (IndexSynchronized) Level() slog.Level       { return slog.LevelInfo }
func (LeaderBecame) Level() slog.Level            { return slog.LevelInfo }
func (LeaderLost) Level() slog.Level              { return slog.LevelWarn }
func (LeaderObserved) Level() slog.Level          { return slog.LevelInfo }
func (SourceFailed) Level() slog.Level            { return slog.LevelError }

// Level implements [slog.Leveler]: what changed nothing is not worth a line.
func (e ReconciliationCompleted) Level() slog.Level {
	if e.Unchanged {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// The attributes of events, by the same names everywhere.
func attrID(id uint64) slog.Attr          { return slog.Uint64("reconciliation", id) }
func attrInstance(name string) slog.Attr  { return slog.String("instance", name) }
func attrTook(d time.Duration) slog.Attr  { return slog.Duration("took", d) }
func attrHash(hash string) slog.Attr      { return slog.String("hash", hash) }
func attrResource(r Resource) slog.Attr   { return slog.String("resource", r.located()) }
func group(attrs ...slog.Attr) slog.Value { return slog.GroupValue(attrs...) }
func attrIdentity(id string) slog.Value   { return group(slog.String("identity", id)) }

// attrErr is left out, as the empty attribute is, where there is no error.
func attrErr(err error) slog.Attr {
	if err == nil {
		return slog.Attr{}
	}
	return slog.String("error", err.Error())
}

// attrResult says what a deployment did; the plan in a phrase.
func attrResult(r *dataplane.Result) slog.Attr {
	if r == nil {
		return slog.Attr{}
	}
	attrs := []any{slog.String("plan", r.Plan.Summary()), slog.Int("reloads", r.Reloads), slog.Int("commands", r.Commands)}
	if r.Fallback != "" {
		attrs = append(attrs, slog.String("fallback", r.Fallback))
	}
	return slog.Group("result", attrs...)
}

// LogValue implements [slog.LogValuer].
func (e ReconciliationTriggered) LogValue() slog.Value {
	return group(slog.String("reason", e.Reason))
}

// LogValue implements [slog.LogValuer].
func (e ReconciliationStarted) LogValue() slog.Value {
	return group(attrID(e.ID), slog.Any("reasons", e.Reasons))
}

// LogValue implements [slog.LogValuer].
func (e AttemptCompleted) LogValue() slog.Value {
	return group(attrID(e.ID), slog.Int("excluded", e.Excluded), slog.Time("at", e.At),
		slog.Duration("render", e.RenderTook), slog.Duration("validate", e.ValidateTook), attrErr(e.Err))
}

// LogValue implements [slog.LogValuer].
func (e ReconciliationCompleted) LogValue() slog.Value {
	return group(attrID(e.ID), attrHash(e.Hash), slog.Bool("unchanged", e.Unchanged), attrTook(e.Took))
}

// LogValue implements [slog.LogValuer].
func (e ReconciliationFailed) LogValue() slog.Value {
	return group(attrID(e.ID), attrErr(e.Err), attrTook(e.Took))
}

// LogValue implements [slog.LogValuer].
func (e TemplateRendered) LogValue() slog.Value {
	return group(attrID(e.ID), attrHash(e.Hash), slog.Int("sections", e.Sections), slog.Int("lines", e.Lines),
		slog.Int("files", e.Files), slog.Int("refused", e.Refused), slog.Any("resources", e.Resources), attrTook(e.Took))
}

// LogValue implements [slog.LogValuer].
func (e TemplateRenderFailed) LogValue() slog.Value {
	return group(attrID(e.ID), attrErr(e.Err), attrTook(e.Took))
}

// LogValue implements [slog.LogValuer].
func (e ValidationCompleted) LogValue() slog.Value {
	return group(attrID(e.ID), attrHash(e.Hash), attrTook(e.Took))
}

// LogValue implements [slog.LogValuer].
func (e ValidationFailed) LogValue() slog.Value {
	return group(attrID(e.ID), attrHash(e.Hash), attrErr(e.Err), attrTook(e.Took))
}

// LogValue implements [slog.LogValuer].
func (e ResourceRefused) LogValue() slog.Value { return e.logValue(e.ID) }

// LogValue implements [slog.LogValuer].
func (e ResourceAccepted) LogValue() slog.Value { return e.logValue(e.ID) }

func (r Refusal) logValue(id uint64) slog.Value {
	return group(attrID(id), slog.String("resource", r.Resource), slog.String("source", r.Source),
		slog.String("field", r.Field), slog.String("reason", r.Reason))
}

// LogValue implements [slog.LogValuer].
func (e ResourceQuarantined) LogValue() slog.Value {
	return group(attrID(e.ID), attrResource(e.Resource), slog.String("fault", e.Fault.String()),
		slog.Time("retryAt", e.RetryAt), slog.Int("trials", e.Trials))
}

// LogValue implements [slog.LogValuer].
func (e ResourceReleased) LogValue() slog.Value {
	return group(attrID(e.ID), attrResource(e.Resource), slog.String("reason", e.Reason))
}

// LogValue implements [slog.LogValuer].
func (e DeploymentScheduled) LogValue() slog.Value {
	return group(attrID(e.ID), attrInstance(e.Instance), slog.Time("at", e.At))
}

// LogValue implements [slog.LogValuer].
func (e DeploymentStarted) LogValue() slog.Value {
	return group(attrID(e.ID), attrInstance(e.Instance))
}

// LogValue implements [slog.LogValuer].
func (e InstanceDeployed) LogValue() slog.Value {
	return group(attrID(e.ID), attrInstance(e.Instance), attrResult(e.Result), attrTook(e.Took))
}

// Level is lower for what an instance was only asked.
func (e InstanceDeploymentFailed) Level() slog.Level {
	if e.Asked {
		return slog.LevelInfo
	}
	return slog.LevelError
}

// LogValue implements [slog.LogValuer].
func (e InstanceDeploymentFailed) LogValue() slog.Value {
	retry := slog.Attr{}
	if !e.RetryAt.IsZero() {
		retry = slog.Time("retryAt", e.RetryAt)
	}
	asked := slog.Attr{}
	if e.Asked {
		asked = slog.Bool("asked", true)
	}
	return group(attrID(e.ID), attrInstance(e.Instance), attrErr(e.Err), slog.Int("failures", e.Failures), retry,
		attrResult(e.Result), attrTook(e.Took), asked)
}

// LogValue implements [slog.LogValuer].
func (e DriftRepaired) LogValue() slog.Value {
	return group(attrID(e.ID), attrInstance(e.Instance), attrResult(e.Result))
}

// LogValue implements [slog.LogValuer].
func (e InstancesChanged) LogValue() slog.Value {
	return group(slog.Int("instances", len(e.Instances)), slog.Any("added", e.Added), slog.Any("removed", e.Removed))
}

// LogValue implements [slog.LogValuer].
func (e IndexSynchronized) LogValue() slog.Value {
	return group(slog.Any("resources", e.Resources), attrTook(e.Took))
}

// LogValue implements [slog.LogValuer].
func (e LeaderBecame) LogValue() slog.Value { return attrIdentity(e.Identity) }

// LogValue implements [slog.LogValuer].
func (e LeaderLost) LogValue() slog.Value { return attrIdentity(e.Identity) }

// LogValue implements [slog.LogValuer].
func (e LeaderObserved) LogValue() slog.Value { return attrIdentity(e.Identity) }

// LogValue implements [slog.LogValuer].
func (e SourceFailed) LogValue() slog.Value { return group(attrErr(e.Err)) }
