package reconcile

import (
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// The events below are what a [Loop] publishes on its bus. They report and
// never steer: losing one changes nothing that is deployed. All are values
// that nobody changes after they were published. ID is the number of the
// reconciliation that an event belongs to; numbers grow by one.

// ReconciliationTriggered says that something asked for a reconciliation.
type ReconciliationTriggered struct {
	Reason string
}

// ReconciliationStarted opens a reconciliation; Reasons are all that were
// given since the one before.
type ReconciliationStarted struct {
	ID      uint64
	Reasons []string
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

// TemplateRenderFailed says why no configuration was made. What is deployed
// stays.
type TemplateRenderFailed struct {
	ID   uint64
	Err  error
	Took time.Duration
}

// ValidationCompleted says that a configuration may be deployed.
type ValidationCompleted struct {
	ID   uint64
	Hash string
	Took time.Duration
}

// ValidationFailed says why a configuration will not be deployed. What is
// deployed stays.
type ValidationFailed struct {
	ID   uint64
	Hash string
	Err  error
	Took time.Duration
}

// ReconciliationCompleted closes a reconciliation that ended in a validated
// configuration. Unchanged says that it equals the one before, so that there
// is nothing to deploy.
type ReconciliationCompleted struct {
	ID        uint64
	Hash      string
	Unchanged bool
	Took      time.Duration
}

// ReconciliationFailed closes a reconciliation that made nothing to deploy.
type ReconciliationFailed struct {
	ID   uint64
	Err  error
	Took time.Duration
}

// ResourceRefused says that a resource, or a part of it, is left out of the
// configuration since this reconciliation. It is published once, not at each
// render.
type ResourceRefused struct {
	ID uint64
	Refusal
}

// ResourceAccepted takes a [ResourceRefused] back: the resource was mended or
// deleted.
type ResourceAccepted struct {
	ID uint64
	Refusal
}

// ResourceQuarantined says that the configuration is not valid with a resource,
// which is therefore left out of it as a whole. It is published once for each
// version of the resource.
type ResourceQuarantined struct {
	ID uint64
	Quarantined
}

// ResourceReleased takes a [ResourceQuarantined] back, and says why.
type ResourceReleased struct {
	ID       uint64
	Resource Resource
	Reason   string
}

// DeploymentScheduled says that an instance gets a configuration later, because
// its last reload was less than the minimum interval ago. Changes without a reload
// are applied already.
type DeploymentScheduled struct {
	ID       uint64
	Instance string
	At       time.Time
	Applied  *dataplane.Result // Left has what waits
}

// DeploymentStarted opens a deployment to one instance.
type DeploymentStarted struct {
	ID       uint64
	Instance string
}

// InstanceDeployed says that an instance has the configuration.
type InstanceDeployed struct {
	ID       uint64
	Instance string
	Result   *dataplane.Result
	Took     time.Duration
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

// DriftRepaired says that an idle instance no longer had what was deployed to
// it, and that it has again.
type DriftRepaired struct {
	ID       uint64
	Instance string
	Result   *dataplane.Result
}

// InstancesChanged says which instances are deployed to from now on.
type InstancesChanged struct {
	Instances []string
	Added     []string
	Removed   []string
}

// IndexSynchronized says that all watched resources are in their stores.
type IndexSynchronized struct {
	Resources map[string]int
	Took      time.Duration
}

// LeaderBecame and LeaderLost tell of this process, LeaderObserved of any.
type (
	LeaderBecame   struct{ Identity string }
	LeaderLost     struct{ Identity string }
	LeaderObserved struct{ Identity string }
)

// SourceFailed says that resources could not be read, such as a manifest that
// does not parse; what was read before stays in use.
type SourceFailed struct {
	Err error
}
