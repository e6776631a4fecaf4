package reconcile

import (
	"context"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/rendering"
)

// Renderer makes a configuration from the current resources. The loop calls it from one
// goroutine at a time.
//
// It reads the objects of [Options.View]. Together with an error it may return a Rendered that
// has only Origins.
type Renderer interface {
	Render(ctx context.Context) (*Rendered, error)
}

// RendererFunc is a [Renderer] made of a function.
type RendererFunc func(ctx context.Context) (*Rendered, error)

// Render calls f.
func (f RendererFunc) Render(ctx context.Context) (*Rendered, error) { return f(ctx) }

// Rendered is the outcome of a render.
type Rendered struct {
	Config    *dataplane.Config
	Refused   []Refusal      // resources, or parts of them, that are left out
	Resources map[string]int // resources read, by kind
	Origins   Origins        // what wrote each line; nil: not known

	// Accepted is called before the next render, once the configuration is the newest valid
	// one; it may be nil. A [Renderer] with a memory updates it here, because a search
	// renders many configurations that the loop never uses.
	Accepted func()

	// Deployed is called when an instance has the configuration, in the process that leads;
	// it may be nil. The term is that of [Loop.Term]. It is called for each instance and each
	// check for drift, so often again, and may come after that of a later render. If renders
	// make the same configuration, it is called for the newest one. Any goroutine may call it.
	Deployed func(term uint64)
}

// Settler is an optional interface of a [Renderer]. Through it the loop reports whether
// configurations were deployed or refused. Any goroutine may call it, also during a render.
type Settler interface {
	// Settle says that a target has the configuration or, with an error, that the
	// configuration is not valid. In a process that does not lead, a valid one counts as
	// deployed. After an error it returns true if a render right now may do better.
	Settle(cfg *dataplane.Config, err error) (again bool)
}

// Validator decides whether a configuration may be deployed: nil means yes. The loop calls
// it from one goroutine at a time.
type Validator interface {
	Validate(ctx context.Context, cfg *dataplane.Config) error
}

// ValidatorFunc is a [Validator] made of a function.
type ValidatorFunc func(ctx context.Context, cfg *dataplane.Config) error

// Validate calls f.
func (f ValidatorFunc) Validate(ctx context.Context, cfg *dataplane.Config) error { return f(ctx, cfg) }

// Target is one instance: a [dataplane.Client] or a [dataplane.Local]. The loop
// makes one call at a time to each target, and calls several targets at once.
type Target interface {
	// Name tells targets apart, in events and metrics too.
	Name() string
	// DryRun returns the plan that Sync would carry out.
	DryRun(ctx context.Context, cfg *dataplane.Config) (*dataplane.Plan, error)
	// Sync brings the instance to cfg. With [dataplane.WithoutReload] it applies what needs
	// no reload, or nothing, and returns the rest as Left of the Result.
	Sync(ctx context.Context, cfg *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error)
}

// Prober is a [Target] that finds out its versions before the first deployment, as
// [dataplane.Client] does. [InstanceState] shows them. If an instance cannot be reached, the
// loop probes it again with the back-off of a failed deployment. If the version does not fit
// (the error is [dataplane.ErrUnsupported]) or the credentials are wrong, it probes again
// after 5 s, doubling to 60 s.
type Prober interface {
	Target
	Probe(ctx context.Context) (dataplane.Target, error)
}

// View is what renders read: all objects at one instant. A k8swatch.View is one; a
// k8swatch.Feed gives what it shows to a graph of derive. The loop chooses the instant, and
// holds objects back in it.
type View = rendering.View

// Leader says whether this process may deploy. The loop asks it before every call that
// changes an instance. It must return false as soon as another process may lead, even if
// this process was frozen in between.
//
// Nothing else keeps two processes apart. A process that was frozen in the middle of a
// deployment makes no further changing call. A call already on its way may still arrive. The
// instance refuses it only if it is a configuration, because its version is old by then. If
// a wrong clock makes two processes lead, they undo each other's deployments in turns.
type Leader interface {
	Leading() bool
}

// forgetter is a [Target] that remembers its last deployment, as [dataplane.Client] does.
// The loop calls Forget before the first deployment of a term, since another process may
// have deployed before. It also does so before each check for drift.
type forgetter interface {
	Forget()
}
