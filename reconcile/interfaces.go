package reconcile

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/hapticsdk/haptic/dataplane"
)

// Renderer makes a configuration from what is known now. The loop calls it
// from one goroutine at a time.
//
// What the context says is to be left out (see [Excluding]) is not in the
// configuration. With an error there may be a Rendered that has Origins alone.
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
	Refused   []Refusal      // what was left out, so that it harms nobody else
	Resources map[string]int // resources read, by kind
	Origins   Origins        // what wrote each line; nil: nobody knows
}

// Refusal says that a resource, or the part of it that Field names, is not in
// the configuration, and why.
type Refusal struct {
	Resource string // kind and name: "Ingress shop/web"
	Source   string // where the resource was read, if that is known: "web.yaml:12"
	Field    string // "spec.rules[0].host"
	Reason   string
	Object   Resource `json:"object,omitzero"` // the resource, where a [Recorder] is to speak of it
}

// String reads as one line of a log.
func (r Refusal) String() string {
	s := r.Resource
	if r.Source != "" {
		s += " (" + r.Source + ")"
	}
	return s + ": " + r.what()
}

// what is what is left out, and why.
func (r Refusal) what() string {
	if r.Field != "" {
		return r.Field + ": " + r.Reason
	}
	return r.Reason
}

// still is the same for a resource that changes in another place.
func (r Refusal) still() Refusal {
	r.Object = Resource{APIVersion: r.Object.APIVersion, Kind: r.Object.Kind, Namespace: r.Object.Namespace, Name: r.Object.Name}
	return r
}

// Validator says whether a configuration may be deployed; nil says that it
// may. The loop calls it from one goroutine at a time.
type Validator interface {
	Validate(ctx context.Context, cfg *dataplane.Config) error
}

// ValidatorFunc is a [Validator] made of a function.
type ValidatorFunc func(ctx context.Context, cfg *dataplane.Config) error

// Validate calls f.
func (f ValidatorFunc) Validate(ctx context.Context, cfg *dataplane.Config) error { return f(ctx, cfg) }

// Target is one HAProxy: a [dataplane.Client] or a [dataplane.Local]. The loop
// makes one call at a time to each target, and calls several targets at once.
type Target interface {
	// Name tells targets apart, in events and metrics too.
	Name() string
	// DryRun says what Sync would do.
	DryRun(ctx context.Context, cfg *dataplane.Config) (*dataplane.Plan, error)
	// Sync makes the HAProxy have cfg. With [dataplane.WithoutReload] it applies what
	// it can at once, or nothing, and tells the rest as Left of the Result.
	Sync(ctx context.Context, cfg *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error)
}

// Prober is a [Target] that says what it is before anything is deployed to it,
// as [dataplane.Client] does. One that cannot be reached is probed again as a
// failed deployment is tried again; where its version does not fit (its error
// is [dataplane.ErrUnsupported]), or the credentials are wrong, after 5 s,
// doubling to 60 s. What it is stands in [InstanceState].
type Prober interface {
	Target
	Probe(ctx context.Context) (dataplane.Target, error)
}

// PanicError is a panic in a [Renderer], [Validator] or [Target], which the
// loop takes as a failure of that call.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// guard makes an error of a panic in f.
func guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
