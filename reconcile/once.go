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

// Outcome is what Once and Preview found for one endpoint.
type Outcome struct {
	Endpoint string
	Plan     *dataplane.Plan   // what differed; nil if that could not be found out
	Result   *dataplane.Result // nil after Preview
	Err      error
}

// Once renders, validates, and deploys to all targets, all of it once and at
// once: no debounce, no minimum interval, no retry. Its error joins those of
// the endpoints; the outcomes are in the order of the targets.
func (l *Loop) Once(ctx context.Context) ([]Outcome, error) {
	return l.each(ctx, func(ctx context.Context, t Target, v *validated) Outcome {
		start := time.Now()
		if !l.leading() {
			return Outcome{Err: errNotLeading}
		}
		result, err := t.Sync(l.fenced(ctx), v.config)
		if err != nil {
			err = l.explain(ctx, v, err)
			eventbus.Publish(l.bus, InstanceDeploymentFailed{ID: v.id, Endpoint: t.Name(), Result: result,
				Err: err, Failures: 1, Took: time.Since(start)})
			return Outcome{Result: result, Err: err}
		}
		l.settled(v.rendered(), nil)
		eventbus.Publish(l.bus, InstanceDeployed{ID: v.id, Endpoint: t.Name(), Result: result, Took: time.Since(start)})
		return Outcome{Plan: result.Plan, Result: result}
	})
}

// Preview renders, validates, and says what Once would change at each target,
// without changing anything. It is not for a loop that runs.
func (l *Loop) Preview(ctx context.Context) ([]Outcome, error) {
	return l.each(ctx, func(ctx context.Context, t Target, v *validated) Outcome {
		plan, err := t.DryRun(ctx, v.config)
		return Outcome{Plan: plan, Err: err}
	})
}

func (l *Loop) each(ctx context.Context, do func(context.Context, Target, *validated) Outcome) ([]Outcome, error) {
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
			ctx, cancel := context.WithTimeout(ctx, l.live.Load().deployTimeout)
			defer cancel()
			err := guard(func() error {
				outcomes[i] = do(ctx, t, v)
				return outcomes[i].Err
			})
			outcomes[i].Endpoint, outcomes[i].Err = t.Name(), err
		})
	}
	wg.Wait()
	var errs []error
	for _, o := range outcomes {
		if o.Err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.Endpoint, o.Err))
		}
	}
	return outcomes, errors.Join(errs...)
}
