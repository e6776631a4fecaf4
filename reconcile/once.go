package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
)

// Outcome is what Once and Preview found for one instance.
type Outcome struct {
	Instance string
	Plan     *dataplane.Plan   // what differed; nil if that could not be found out
	Result   *dataplane.Result // nil after Preview
	Err      error
}

// Once renders, validates, and deploys to all targets, all of it once and at
// once: no debounce, no minimum interval, no retry, and nothing is left out for
// what an instance refuses. For the rest it is what one reconciliation of Run is: a
// [Prober] is probed first, and one that does not fit is not deployed to; events
// tell of it all, and [Loop.State] of each instance, until Run begins. Its error
// joins those of the instances; the outcomes are in the order of the targets.
func (l *Loop) Once(ctx context.Context) ([]Outcome, error) {
	return l.each(ctx, (*worker).once)
}

// Preview renders, validates, and says what Once would change at each target,
// without changing anything. A [Prober] is probed first here, too, so that it fails
// where Once would. It is not for a loop that runs.
func (l *Loop) Preview(ctx context.Context) ([]Outcome, error) {
	return l.each(ctx, (*worker).preview)
}

func (l *Loop) each(ctx context.Context, do func(*worker, context.Context, *validated) Outcome) ([]Outcome, error) {
	l.mu.Lock()
	targets, running := l.targets, l.running
	l.mu.Unlock()
	if running {
		return nil, errors.New("reconcile: the loop is running: Trigger it instead")
	}
	v, _, err := l.reconcile(ctx)
	if err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() {
			outcomes[i] = do(&worker{loop: l, target: t}, ctx, v)
			outcomes[i].Instance = t.Name()
		})
	}
	wg.Wait()
	var errs []error
	for _, o := range outcomes {
		if o.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.Instance, o.Err))
		}
	}
	return outcomes, errors.Join(errs...)
}

// singly is a call of its own, outside of any schedule.
func (w *worker) singly(v *validated) call {
	return call{instance: w.target.Name(), want: v, deadline: time.Now().Add(w.loop.timing().deployTimeout)}
}

// preview is Preview for one target.
func (w *worker) preview(ctx context.Context, v *validated) (o Outcome) {
	if _, o.Err = w.identify(ctx, w.singly(v)); o.Err != nil {
		return o
	}
	o.Err = w.call(ctx, w.singly(v), func(ctx context.Context) (err error) {
		o.Plan, err = w.target.DryRun(ctx, v.config)
		return err
	})
	return o
}

// once is Once for one target.
func (w *worker) once(ctx context.Context, v *validated) Outcome {
	start, name := time.Now(), w.target.Name()
	if !w.loop.leading() {
		return Outcome{Err: errNotLeading}
	}
	w.public = w.loop.instanceAtRest(w.target)
	is, err := w.identify(ctx, w.singly(v))
	if err != nil {
		return w.onceFailed(ctx, v, nil, err, start, errors.Is(err, dataplane.ErrUnsupported))
	}
	if _, ok := w.target.(Prober); ok {
		w.public.identified(is)
	}
	eventbus.Publish(w.loop.bus, DeploymentStarted{ID: v.id, Instance: name})
	result, err := w.sync(ctx, w.singly(v))
	if err != nil {
		return w.onceFailed(ctx, v, result, err, start, false)
	}
	w.loop.settled(v.rendered(), nil)
	p := &w.public
	p.Hash, p.DeployedAt, p.Last = v.config.Hash(), time.Now(), result
	p.Reloads += uint64(result.Reloads)
	p.Commands += uint64(result.Commands)
	failures := p.Failures
	p.StaleSince, p.Error, p.Failures = time.Time{}, "", 0
	w.loop.rests(w)
	eventbus.Publish(w.loop.bus, InstanceDeployed{ID: v.id, Instance: name, Result: result, Took: time.Since(start), Failures: failures})
	return Outcome{Plan: result.Plan, Result: result}
}

// onceFailed reports what failed; nobody tries it again.
func (w *worker) onceFailed(ctx context.Context, v *validated, result *dataplane.Result, err error, start time.Time, unfit bool) Outcome {
	if errors.Is(err, dataplane.ErrInvalid) {
		w.loop.settled(v.rendered(), err)
	}
	err = w.loop.explain(ctx, v, err)
	p := &w.public
	p.Error, p.Failures = err.Error(), p.Failures+1
	if unfit {
		p.Unfit = err.Error()
	}
	if result != nil {
		p.Reloads += uint64(result.Reloads)
		p.Commands += uint64(result.Commands)
	}
	if p.StaleSince.IsZero() {
		p.StaleSince = time.Now()
	}
	w.loop.rests(w)
	eventbus.Publish(w.loop.bus, InstanceDeploymentFailed{ID: v.id, Instance: p.Name, Result: result, Err: err,
		Failures: p.Failures, Took: time.Since(start)})
	return Outcome{Result: result, Err: err}
}

// rests keeps what Once found of an instance.
func (l *Loop) rests(w *worker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.atRest == nil {
		l.atRest = map[Target]InstanceState{}
	}
	l.atRest[w.target] = w.public
}

// instanceAtRest is what is known of an instance that has no worker.
func (l *Loop) instanceAtRest(t Target) InstanceState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restingAs(t)
}

// restingAs is instanceAtRest for a caller that holds l.mu.
func (l *Loop) restingAs(t Target) InstanceState {
	p, ok := l.atRest[t]
	if !ok {
		p.Name = t.Name()
	}
	if v := l.sched.newest; v != nil && p.StaleSince.IsZero() && p.Hash != v.config.Hash() {
		p.StaleSince = v.at
	}
	return p
}
