package dataplane

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Syncer is what [SyncAll] deploys to. [*Client] and [*Local] are Syncers; they
// may be mixed.
type Syncer interface {
	// Name says in errors and results which HAProxy it is.
	Name() string

	// Sync brings the HAProxy to the desired configuration. It returns soon
	// after ctx ends.
	Sync(ctx context.Context, desired *Config) (*Result, error)
}

// Deployment is one configuration for one HAProxy.
type Deployment struct {
	To      Syncer
	Desired *Config
}

// DeployTo makes the deployments of one configuration to many endpoints. They
// must all have the [Layout] that the configuration was rendered with.
func DeployTo[S Syncer](desired *Config, endpoints ...S) []Deployment {
	deployments := make([]Deployment, len(endpoints))
	for i, to := range endpoints {
		deployments[i] = Deployment{To: to, Desired: desired}
	}
	return deployments
}

// SyncAllOptions change how [SyncAll] works. The zero value, like nil, is
// recommended.
type SyncAllOptions struct {
	// Timeout is what each endpoint gets, counted from when its own Sync
	// begins. Zero means two minutes.
	Timeout time.Duration

	// Parallel bounds how many endpoints are worked on at the same time, to
	// spare memory and the network. The others wait, in order, and their time
	// does not run meanwhile. An endpoint that hangs holds its place for
	// Timeout at most; as long as fewer than Parallel of them hang, the others
	// pass by. Zero means no bound: all begin at once, and one that hangs
	// changes nobody else's time.
	Parallel int

	// Done, if set, hears of each endpoint as soon as that has ended, in any
	// order, so that nobody has to wait for the slowest. It is called from one
	// goroutine at a time; as long as it runs, no other outcome is told.
	Done func(Outcome)
}

// Outcome is how the deployment to one endpoint ended.
type Outcome struct {
	Index    int           // of the deployment, counted from 0
	Endpoint string        // name of the endpoint
	Result   *Result       // what was done; may come with an error, and is nil where nothing began
	Err      error         // nil if the endpoint has the desired configuration
	Duration time.Duration // of its Sync, without the wait for its turn
}

// Outcomes are the outcomes of all deployments, in the order of these.
type Outcomes []Outcome

// Err joins the errors of all endpoints that failed, each of which names its
// endpoint. It is nil if there is none.
func (o Outcomes) Err() error {
	var errs []error
	for _, one := range o {
		errs = append(errs, one.Err)
	}
	return errors.Join(errs...)
}

// SyncAll deploys to many endpoints at the same time, and returns one outcome
// for each, in the order of the deployments, when the last has ended. Each
// succeeds or fails by itself, within its own deadline: who fails, hangs or
// panics changes nothing for the others.
//
// When ctx ends, deployments under way are given up and others do not begin;
// their errors wrap that of ctx. Every error is or wraps an [*Error] that names
// the endpoint, and [Retryable] says which of them are worth another call with
// the same deployments: those that are done cost one request then.
//
// Deployments to the same endpoint run one after the other, in no particular
// order; give each endpoint once.
func SyncAll(ctx context.Context, deployments []Deployment, options *SyncAllOptions) Outcomes {
	var opts SyncAllOptions
	if options != nil {
		opts = *options
	}
	if opts.Timeout <= 0 {
		opts.Timeout = 2 * time.Minute
	}
	if opts.Parallel <= 0 || opts.Parallel > len(deployments) {
		opts.Parallel = len(deployments)
	}
	outcomes := make(Outcomes, len(deployments))
	turns := make(chan struct{}, max(opts.Parallel, 1))
	var telling sync.Mutex
	var wg sync.WaitGroup
	for i, d := range deployments {
		o := &outcomes[i]
		o.Index = i
		turns <- struct{}{} // not longer than others take, whose ctx is this one
		wg.Go(func() {
			defer func() {
				<-turns
				if opts.Done != nil {
					telling.Lock()
					defer telling.Unlock()
					opts.Done(*o)
				}
			}()
			o.sync(ctx, d, opts.Timeout)
		})
	}
	wg.Wait()
	return outcomes
}

// sync carries one deployment out.
func (o *Outcome) sync(ctx context.Context, d Deployment, timeout time.Duration) {
	fail := func(stage string, err error) {
		o.Err = &Error{Endpoint: o.Endpoint, Stage: stage, Err: err}
	}
	start := time.Now()
	defer func() {
		o.Duration = time.Since(start)
		if p := recover(); p != nil {
			o.Err = &Error{Endpoint: o.Endpoint, Stage: "sync", Err: fmt.Errorf("panic: %v", p), Output: string(debug.Stack())}
		}
	}()
	if d.To == nil {
		fail("options", fmt.Errorf("deployment %d has no endpoint", o.Index))
		return
	}
	o.Endpoint = d.To.Name()
	switch {
	case d.Desired == nil:
		fail("options", fmt.Errorf("%w: there is none for this endpoint", ErrInvalidConfig))
		return
	case ctx.Err() != nil:
		fail("wait", context.Cause(ctx))
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done within %v: %w", timeout, context.DeadlineExceeded))
	defer cancel()
	result, err := d.To.Sync(ctx, d.Desired)
	o.Result = result
	var e *Error
	switch {
	case err == nil:
	case errors.As(err, &e):
		o.Err = err
	default:
		fail("sync", err) // of a Syncer that is not ours
	}
}
