package reconcile

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/internal/phrase"
	"github.com/hapticsdk/haptic/reconcile/event"
)

// Events returns one value of each event of this package, without fields. Observers learn
// from it which events there are, and which metrics to declare. A new event is its type with
// its method Report, and its line here.
func Events() []event.Event {
	return []event.Event{
		ReconciliationTriggered{}, ReconciliationStarted{}, AttemptCompleted{}, ReconciliationCompleted{}, ReconciliationFailed{},
		TemplateRendered{}, TemplateRenderFailed{}, ValidationCompleted{}, ValidationFailed{},
		ResourceRefused{}, ResourceAccepted{}, ResourceQuarantined{}, ResourceReleased{},
		DeploymentScheduled{}, DeploymentStarted{}, InstanceDeployed{}, InstanceDeploymentFailed{}, InstanceReached{}, DriftRepaired{}, InstancesChanged{},
		DriftPreventionTriggered{}, DeploymentCompleted{}, DeploymentUnfinished{},
		HAProxyChanged{}, CallbackFailed{}, IndexSynchronized{}, ResourceIndexUpdated{}, LeaderBecame{}, LeaderLost{}, LeaderObserved{},
	}
}

// The events below are what a [Loop] publishes on its bus. They report and never steer:
// losing one changes nothing that is deployed. All are values that do not change after
// publication. ID is the number of the event's reconciliation; numbers grow by one.
//
// Reconciliations come one after the other. Beside them come, for each instance, its
// deployments and checks. A test reads this drawing and replays reconciliations against it.
// "?" is at most one, "+" one or more, "*" any number, "|" or.
//
//	reconciliation: ReconciliationStarted AttemptCompleted+ (made | unmade | trial)
//	made:           trouble? render ValidationCompleted verdict* ReconciliationCompleted
//	unmade:         verdict* render? trouble ReconciliationFailed
//	trial:          verdict* ReconciliationCompleted
//	render:         (ResourceRefused | ResourceAccepted)* TemplateRendered
//	trouble:        TemplateRenderFailed | ValidationFailed
//	verdict:        ResourceQuarantined | ResourceReleased
//
//	instance:       (deployment | check | DeploymentScheduled | InstanceDeploymentFailed | DeploymentUnfinished)*
//	deployment:     DeploymentStarted (InstanceDeployed | InstanceDeploymentFailed | DeploymentScheduled)?
//	check:          DriftPreventionTriggered (DriftRepaired | InstanceDeploymentFailed | DeploymentScheduled)?
//
//	revision:       ReconciliationCompleted told* DeploymentCompleted? told*
//	told:           DeploymentStarted | InstanceDeployed | InstanceDeploymentFailed | DeploymentScheduled | checked
//	checked:        DriftPreventionTriggered | DriftRepaired | DeploymentUnfinished
//
// The loop deploys a configuration to instances after its ReconciliationCompleted. The rule
// of a revision mixes the events of all instances. The rule "trial" is a failed try of
// quarantined or held-back resources: it makes nothing new. A held-back resource has no event
// of its own, and none when it is served again: ReconciliationCompleted counts it. If a context
// ends a reconciliation or a deployment, no event closes it. ReconciliationTriggered,
// InstancesChanged, InstanceReached, HAProxyChanged and CallbackFailed come at any time.
// IndexSynchronized comes before any ResourceIndexUpdated. A ResourceIndexUpdated comes before
// the ReconciliationTriggered that it leads to. Watchers publish both: those of
// [github.com/hapticsdk/haptic/reconcile/observe.NewGroup] and of settings.

// ReconciliationTriggered says that something asked for a reconciliation.
type ReconciliationTriggered struct {
	Reason string
}

func (e ReconciliationTriggered) Report() event.Report {
	return event.Report{Name: "reconciliation.triggered", Level: slog.LevelDebug, Fields: []slog.Attr{slog.String("reason", e.Reason)}}
}

// ReconciliationStarted opens a reconciliation. Reasons are all those given since the one
// before.
type ReconciliationStarted struct {
	ID      uint64
	Reasons []string
}

func (e ReconciliationStarted) Report() event.Report {
	return event.Report{Name: "reconciliation.started", Level: slog.LevelDebug, Reconciliation: e.ID,
		Fields: []slog.Attr{slog.Any("reasons", e.Reasons)}}
}

// AttemptCompleted says how one render and its validation went. Most reconciliations have
// one attempt; a search for resources at fault has several. At lets a trace show the
// attempt.
type AttemptCompleted struct {
	ID           uint64
	HeldBack     int       // resources that it read as they were before, or not at all: the quarantined ones, too
	At           time.Time // when it began
	RenderTook   time.Duration
	ValidateTook time.Duration // 0: nothing was rendered, or there is no validator
	Err          error         // nil: the configuration is valid
}

func (e AttemptCompleted) Report() event.Report {
	return event.Report{Name: "reconciliation.attempted", Level: slog.LevelDebug, Reconciliation: e.ID, Took: e.RenderTook + e.ValidateTook, Err: e.Err}
}

// TemplateRendered says what a render made.
type TemplateRendered struct {
	ID        uint64
	Hash      string // of the configuration and its files
	Sections  int
	Lines     int
	Files     int
	Refused   int            // resources, or parts of them, that were left out
	Resources map[string]int // read, by kind
	Took      time.Duration
}

func (e TemplateRendered) Report() event.Report {
	return event.Report{Name: "template.rendered", Level: slog.LevelDebug, Reconciliation: e.ID, Took: e.Took, Fields: []slog.Attr{hashField(e.Hash)},
		Metrics: []event.Metric{resourceCount(e.Resources), renderTime(e.Took)}}
}

// String reads "120 lines in 1 section and 2 files from 2 Ingress, 3 Service".
func (e TemplateRendered) String() string {
	s := phrase.Count(e.Lines, "line") + " in " + phrase.Count(e.Sections, "section") + " and " + phrase.Count(e.Files, "file")
	if len(e.Resources) > 0 {
		s += " from " + phrase.ByKind(e.Resources)
	}
	if e.Refused > 0 {
		s += ", " + strconv.Itoa(e.Refused) + " refused"
	}
	return s
}

func resourceCount(resources map[string]int) event.Metric {
	m := event.Metric{Kind: event.Gauge, Name: "resource_count", Help: "Resources that the newest render read, by type.", Label: "type", By: map[string]float64{}}
	for kind, n := range resources {
		m.By[kind] = float64(n)
	}
	return m
}

func renderTime(took time.Duration) event.Metric {
	return event.Metric{Kind: event.Seconds, Name: "render_duration_seconds", Help: "Time to render, in seconds.", Value: took.Seconds()}
}

// TemplateRenderFailed says why there is no new configuration. The deployed one stays.
type TemplateRenderFailed struct {
	ID   uint64
	Err  error
	Took time.Duration
}

func (e TemplateRenderFailed) Report() event.Report {
	return event.Report{Name: "template.render.failed", Level: slog.LevelDebug, Reconciliation: e.ID, Took: e.Took, Err: e.Err,
		Metrics: []event.Metric{renderTime(e.Took)}} // ReconciliationFailed says the sentence
}

// ValidationCompleted says that a configuration may be deployed.
type ValidationCompleted struct {
	ID   uint64
	Hash string
	Took time.Duration
}

func (e ValidationCompleted) Report() event.Report {
	return event.Report{Name: "validation.completed", Level: slog.LevelDebug, Reconciliation: e.ID, Took: e.Took, Fields: []slog.Attr{hashField(e.Hash)},
		Metrics: validationMetrics(e.Took, false)}
}

// ValidationFailed says why the loop will not deploy a configuration. The deployed one
// stays.
type ValidationFailed struct {
	ID   uint64
	Hash string
	Err  error
	Took time.Duration
}

func (e ValidationFailed) Report() event.Report {
	return event.Report{Name: "validation.failed", Level: slog.LevelDebug, Reconciliation: e.ID, Took: e.Took, Err: e.Err,
		Fields: []slog.Attr{hashField(e.Hash)}, Metrics: validationMetrics(e.Took, true)} // ReconciliationFailed says the sentence
}

func validationMetrics(took time.Duration, failed bool) []event.Metric {
	return []event.Metric{
		{Name: "validation_total", Help: "Validations of a rendered configuration.", Value: 1},
		{Name: "validation_errors_total", Help: "Validations that refused the configuration.", Value: event.One(failed)},
		{Kind: event.Seconds, Name: "validation_duration_seconds", Help: "Time to validate, in seconds.", Value: took.Seconds()},
	}
}

// ReconciliationCompleted closes a reconciliation that ended with a validated configuration, or
// a trial. Unchanged says that the configuration is the one before, so there is nothing to deploy.
type ReconciliationCompleted struct {
	ID        uint64
	Hash      string
	Unchanged bool
	Took      time.Duration
	Reasons   []string
	Rendered  TemplateRendered // the render of the configuration
	Attempts  int              // renders with their validations; several if something is at fault
	HeldBack  int              // resources set back until they are tried, since they changed together with one at fault
	Failures  int              // reconciliations that failed before this one, in a row
}

func (e ReconciliationCompleted) Report() event.Report {
	r := event.Report{Name: "reconciliation.completed", Level: slog.LevelInfo, Reconciliation: e.ID, Took: e.Took,
		Metrics: reconciliationMetrics(e.Took, false)}
	before := becauseOf(e.Reasons) + afterFailures(e.Failures)
	if e.Attempts > 1 {
		before += ", at attempt " + strconv.Itoa(e.Attempts)
	}
	if e.Unchanged {
		r.Sentence = "nothing to change" + before
		if e.Failures == 0 {
			r.Level = slog.LevelDebug
		}
		return r
	}
	if e.HeldBack > 0 {
		before = ", with " + phrase.Count(e.HeldBack, "resource") + " held back that changed with what is at fault and will be tried now" + before
	}
	r.Sentence = "new valid configuration of " + e.Rendered.String() + before
	r.Fields = []slog.Attr{hashField(e.Hash)}
	return r
}

// ReconciliationFailed closes a reconciliation without a new configuration.
type ReconciliationFailed struct {
	ID       uint64
	Err      error
	Took     time.Duration
	Reasons  []string
	Failures int // in a row, with this one
}

func (e ReconciliationFailed) Report() event.Report {
	return event.Report{Name: "reconciliation.failed", Level: slog.LevelError, Reconciliation: e.ID, Took: e.Took, Err: e.Err, Repeat: e.Failures,
		Sentence: fmt.Sprintf("the new configuration is not deployed, as it failed%s%s: %v", phrase.InARow(e.Failures), becauseOf(e.Reasons), e.Err),
		Metrics:  reconciliationMetrics(e.Took, true)}
}

func reconciliationMetrics(took time.Duration, failed bool) []event.Metric {
	return []event.Metric{
		{Name: "reconciliation_total", Help: "Reconciliations that ended, well or not.", Value: 1},
		{Name: "reconciliation_errors_total", Help: "Reconciliations that failed to render or to validate.", Value: event.One(failed)},
		{Kind: event.Seconds, Name: "reconciliation_duration_seconds", Help: "Time to render and validate, with all attempts, in seconds.", Value: took.Seconds()},
	}
}

// ResourceRefused says that the configuration lacks a resource, or a part of it, since this
// reconciliation. The loop publishes it once, not at each render. One event stands for all
// new refusals of a resource: More counts the others. One log line tells of all resources
// with the same cause.
type ResourceRefused struct {
	ID uint64
	Refusal
	Alike
}

func (e ResourceRefused) Report() event.Report {
	r := event.Report{Name: "resource.refused", Level: slog.LevelWarn, Reconciliation: e.ID, Fields: []slog.Attr{slog.String("resource", e.Resource)}}
	if !e.Told {
		r.Sentence = e.word() + ": " + e.Of(e.located()) + ": " + e.what()
	}
	return r
}

// ResourceAccepted takes a [ResourceRefused] back: the resource was mended or deleted. More
// counts its other refusals that ended.
type ResourceAccepted struct {
	ID uint64
	Refusal
	Alike
}

func (e ResourceAccepted) Report() event.Report {
	r := event.Report{Name: "resource.accepted", Level: slog.LevelInfo, Reconciliation: e.ID, Fields: []slog.Attr{slog.String("resource", e.Resource)}}
	if !e.Told {
		r.Sentence = map[bool]string{false: "no longer refused: ", true: "in order again: "}[e.Warning] +
			e.Of(strings.TrimSuffix(e.Resource+": "+e.Field, ": ")+andMore(e.More))
	}
	return r
}

// ResourceQuarantined says that the configuration is not valid with a resource. The loop
// serves its earlier version, or leaves it out. It publishes the event once for each version
// of the resource, and again when it serves another version. One log line tells of all
// resources with the same cause.
type ResourceQuarantined struct {
	ID uint64
	Quarantined
	Alike
}

func (e ResourceQuarantined) Report() event.Report {
	r := event.Report{Name: "resource.quarantined", Level: slog.LevelError, Reconciliation: e.ID, Fields: resourceFields(e.Resource)}
	if !e.Told {
		r.Sentence = "in quarantine, all others are served: " + e.Of(e.Resource.located()) + ": " + e.what()
	}
	return r
}

// ResourceReleased takes a [ResourceQuarantined] back, and says why.
type ResourceReleased struct {
	ID       uint64
	Resource Resource
	Reason   string
	Alike
}

func (e ResourceReleased) Report() event.Report {
	r := event.Report{Name: "resource.released", Level: slog.LevelInfo, Reconciliation: e.ID, Fields: resourceFields(e.Resource)}
	if !e.Told {
		r.Sentence = "released from quarantine: " + e.Of(e.Resource.String()) + ": " + e.Reason
	}
	return r
}

// CallbackFailed says that a function of the program panicked from which the loop needs no
// result, and that the loop went on without it. After a panic in Rendered.Accepted the renderer
// remembers nothing of the configuration.
type CallbackFailed struct {
	Callback string // "Rendered.Accepted", "Rendered.Deployed", "Settler.Settle", "Recorder.Event", "Target.Store", "Options.BeginTerm"
	Err      error  // a [*PanicError], which has the stack
	Failures int    // of this callback in a row, with this one
}

func (e CallbackFailed) Report() event.Report {
	return event.Report{Name: "callback.failed", Level: slog.LevelError, Err: e.Err, Repeat: e.Failures, Fields: []slog.Attr{slog.String("callback", e.Callback)},
		Sentence: fmt.Sprintf("%s of this program failed%s, and the loop goes on without it: %v", e.Callback, phrase.InARow(e.Failures), e.Err)}
}

// IndexSynchronized says that the stores hold all watched resources: once, and again when
// new settings watch others.
type IndexSynchronized struct {
	Resources map[string]int
	Took      time.Duration
}

func (e IndexSynchronized) Report() event.Report {
	return event.Report{Name: "index.synchronized", Level: slog.LevelInfo, Sentence: "watching " + phrase.ByKind(e.Resources), Took: e.Took,
		Metrics: []event.Metric{resourceCount(e.Resources)}}
}

// ResourceIndexUpdated says that objects of a watched resource changed. It comes after
// [IndexSynchronized], and before the reconciliation that it leads to. Each change counts
// once.
type ResourceIndexUpdated struct {
	Resource                   string // "ingresses", or the name in the settings
	Created, Modified, Deleted int
	Objects                    int // their number now
}

func (e ResourceIndexUpdated) Report() event.Report {
	return event.Report{Name: "resource.index.updated", Level: slog.LevelDebug, Fields: []slog.Attr{slog.String("resource", e.Resource),
		slog.Int("created", e.Created), slog.Int("modified", e.Modified), slog.Int("deleted", e.Deleted), slog.Int("objects", e.Objects)}}
}

// LeaderBecame and LeaderLost are about this process, LeaderObserved about any process.
type (
	LeaderBecame   struct{ Identity string }
	LeaderLost     struct{ Identity string }
	LeaderObserved struct{ Identity string }
)

func (e LeaderBecame) Report() event.Report {
	return event.Report{Name: "leader.became", Level: slog.LevelInfo, Sentence: "leads now and deploys, as " + e.Identity}
}

func (e LeaderLost) Report() event.Report {
	return event.Report{Name: "leader.lost", Level: slog.LevelWarn, Sentence: "leads no longer and begins no deployment, as " + e.Identity}
}

func (e LeaderObserved) Report() event.Report {
	return event.Report{Name: "leader.observed", Level: slog.LevelInfo, Sentence: "the leader is " + e.Identity}
}

// becauseOf says why a reconciliation began.
func becauseOf(reasons []string) string {
	const most = 3 // a storm of changes has one line, too
	reasons = slices.Compact(slices.Sorted(slices.Values(reasons)))
	switch {
	case len(reasons) == 0:
		return ""
	case len(reasons) > most:
		return fmt.Sprintf(", after %s and %d more", strings.Join(reasons[:most], ", "), len(reasons)-most)
	}
	return ", after " + strings.Join(reasons, ", ")
}
