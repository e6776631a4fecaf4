package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// Outcome is what Once and Preview found for one instance.
type Outcome struct {
	Instance string
	Plan     *dataplane.Plan   // what differed; nil if that could not be found out
	Result   *dataplane.Result // nil after Preview
	Err      error
}

// Once renders, validates, and deploys to all targets, all of it once and at
// once: it waits for no interval, tries nothing again, and leaves nothing out for
// what an instance refuses. For the rest it is one reconciliation of Run, through
// the same schedule: a [Prober] is probed first, and one that does not fit is not
// deployed to; events tell of it all, and [Loop.State] of each instance, until Run
// begins. Its error joins those of the instances; the outcomes are in the order of
// the targets. One of Run, Once and Preview runs at a time.
func (l *Loop) Once(ctx context.Context) ([]Outcome, error) {
	return l.alone(ctx, func(_ *validated, targets []Target) (workers []*worker) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dropWorkers(targets)
		for _, t := range targets {
			w := l.workers[t.Name()]
			if w == nil {
				w = l.addWorker(t)
				w.single = true
			}
			l.sched.hurry(t.Name())
			workers = append(workers, w)
		}
		return workers
	}, func(w *worker, _ *validated) Outcome { return w.once(ctx) })
}

// once follows the schedule until the instance has been deployed to.
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
	return Outcome{Err: errNotLeading}
}

// Preview renders, validates, and says what Once would change at each target,
// without changing anything. A [Prober] is probed first here, too, so that it fails
// where Once would.
func (l *Loop) Preview(ctx context.Context) ([]Outcome, error) {
	return l.alone(ctx, func(_ *validated, targets []Target) (workers []*worker) {
		for _, t := range targets {
			workers = append(workers, &worker{loop: l, target: t})
		}
		return workers
	}, func(w *worker, v *validated) (o Outcome) {
		c := call{instance: w.target.Name(), want: v, deadline: time.Now().Add(l.live.Load().DeployTimeout)}
		if _, o.Err = w.identify(ctx, c); o.Err != nil {
			return o
		}
		c.deadline = time.Now().Add(l.live.Load().DeployTimeout)
		o.Err = w.call(ctx, c, func(ctx context.Context) (err error) {
			o.Plan, err = w.target.DryRun(ctx, v.config)
			return err
		})
		return o
	})
}

// alone reconciles while nothing else runs, and has a worker do something for each
// target.
func (l *Loop) alone(ctx context.Context, hire func(*validated, []Target) []*worker, do func(*worker, *validated) Outcome) ([]Outcome, error) {
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
	v, _, err := l.reconcile(ctx)
	if err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, len(targets))
	var wg sync.WaitGroup
	for i, w := range hire(v, targets) {
		wg.Go(func() {
			outcomes[i] = do(w, v)
			outcomes[i].Instance = w.target.Name()
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
