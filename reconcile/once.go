package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/phrase"
)

// Outcome is the result of Once or Preview for one instance.
type Outcome struct {
	Instance string
	Plan     *dataplane.Plan   // the differences; nil if they are not known
	Result   *dataplane.Result // nil after Preview
	Err      error
}

// Once renders, validates, and deploys to all targets at once, a single time. It waits for
// no interval and does not try again. It quarantines nothing because an instance refuses it.
// Otherwise it is one reconciliation of Run, with the same schedule. It probes a [Prober]
// first, and does not deploy to one that does not fit. It publishes all events, and
// [Loop.State] has each instance until Run begins. The error joins those of the instances;
// the outcomes are in the order of the targets. Only one of Run, Once and Preview runs at a
// time.
func (l *Loop) Once(ctx context.Context) ([]Outcome, error) {
	return l.alone(ctx, func(t Target, v *validated) Outcome {
		o := l.addWorkerOf(t).once(ctx)
		if o.Err != nil && ctx.Err() != nil {
			o.Err = fmt.Errorf("ended before revision %s was deployed: %w", phrase.Short(v.config.Hash()), o.Err)
		}
		return o
	})
}

// Preview renders, validates, and returns what Once would change at each target, without
// changing anything. It also probes a [Prober] first, so it fails where Once would.
func (l *Loop) Preview(ctx context.Context) ([]Outcome, error) {
	return l.alone(ctx, func(t Target, v *validated) (o Outcome) {
		w := &worker{loop: l, target: t}
		c := call{instance: t.Name(), want: v, deadline: time.Now().Add(l.live.Load().DeployTimeout)}
		_, o.Err = w.identify(ctx, c)
		if o.Err != nil {
			return o
		}
		c.deadline = time.Now().Add(l.live.Load().DeployTimeout)
		o.Err = w.call(ctx, c, func(ctx context.Context) (err error) {
			o.Plan, err = t.DryRun(ctx, v.config)
			return err
		})
		return o
	})
}

// alone reconciles while nothing else runs, and calls do for each target.
func (l *Loop) alone(ctx context.Context, do func(Target, *validated) Outcome) ([]Outcome, error) {
	l.mu.Lock()
	targets, running := l.targets, l.running
	l.running = true
	l.mu.Unlock()
	if running {
		return nil, errors.New("reconcile: the loop is running: Trigger it instead")
	}
	defer func() {
		l.mu.Lock()
		l.running = false
		l.mu.Unlock()
	}()
	l.beginTerm(ctx)
	v, _, err := l.reconcile(ctx)
	if err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, len(targets))
	var wg sync.WaitGroup
	for i, t := range targets {
		wg.Go(func() {
			outcomes[i] = do(t, v)
			outcomes[i].Instance = t.Name()
		})
	}
	wg.Wait()
	var errs []error
	for _, o := range outcomes {
		switch {
		case o.Err == nil:
		case strings.HasPrefix(o.Err.Error(), o.Instance+": "): // it names the instance itself
			errs = append(errs, o.Err)
		default:
			errs = append(errs, fmt.Errorf("%s: %w", o.Instance, o.Err))
		}
	}
	return outcomes, errors.Join(errs...)
}

// addWorkerOf returns the worker of a target, ready to be called at once. It reuses the worker of
// an earlier Once, which knows how often the target failed.
func (l *Loop) addWorkerOf(t Target) *worker {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.workers[t.Name()]
	if w == nil || w.target != t {
		w = l.addWorker(t)
		w.single = true
	}
	l.sched.hurry(t.Name())
	return w
}

// once follows the schedule until it has deployed to the instance.
func (w *worker) once(ctx context.Context) Outcome {
	for w.loop.leading() {
		c, _ := w.next()
		if c.what == stepWait {
			break
		}
		if o := w.do(ctx, c); c.what != stepProbe || o.Err != nil {
			return o
		}
	}
	w.loop.mu.Lock()
	defer w.loop.mu.Unlock()
	w.loop.sched.leads(false) // a new term begins when this process leads again
	return Outcome{Err: errNotLeading}
}
