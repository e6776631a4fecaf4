package command

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// patience is how long parts may take to end before the log names them. The time
// doubles with each line.
const patience = time.Second

// Group runs the parts of a program, and says which have not ended. Its methods are
// for one goroutine.
type Group struct {
	Log *slog.Logger // nil: slog.Default()

	// OnStop is called once by Run, when the end begins: with the error of the part that
	// failed first, or with nil and the cause for which ctx ended.
	OnStop func(failed, cause error)

	parts []part
}

type part struct {
	name string
	run  func(context.Context) error
}

// Go adds a part. It ends when its context ends, and returns when everything that it
// started has ended. A part that returns an error ends all others.
func (g *Group) Go(name string, run func(ctx context.Context) error) {
	g.parts = append(g.parts, part{name, run})
}

// Run runs all parts until ctx ends or one fails, and returns when all have ended. If
// they take longer than a second, the log names them. It returns the first error; nil
// where ctx ended.
func (g *Group) Run(ctx context.Context) error { return g.run(ctx, g.parts, g.OnStop) }

// Until runs all parts until f has returned, and returns its error, or the first one
// of a part.
func (g *Group) Until(ctx context.Context, f func(ctx context.Context) error) error {
	done := errors.New("done")
	last := part{"the deployment", func(ctx context.Context) error { return cmp.Or(f(ctx), done) }}
	err := g.run(ctx, append(slices.Clone(g.parts), last), nil)
	if errors.Is(err, done) {
		return nil
	}
	return cmp.Or(err, context.Cause(ctx)) // which ended before f did
}

func (g *Group) run(ctx context.Context, parts []part, onStop func(failed, cause error)) error {
	all, inner := errgroup.WithContext(ctx)
	running := running{names: map[int]string{}}
	for i, p := range parts {
		running.names[i] = p.name
	}
	for i, p := range parts {
		all.Go(func() error {
			defer running.ended(i)
			err := p.run(inner)
			if inner.Err() != nil && errors.Is(err, context.Canceled) {
				return nil // as it was told
			}
			return err
		})
	}
	ended, said := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(said)
		<-inner.Done()
		switch cause := context.Cause(inner); {
		case onStop == nil:
		case ctx.Err() != nil:
			onStop(nil, context.Cause(ctx))
		case !errors.Is(cause, context.Canceled): // all parts ended by themselves
			onStop(cause, nil)
		}
		g.sayWaiting(ended, &running)
	}()
	err := all.Wait()
	close(ended)
	<-said
	return err
}

// sayWaiting names the parts that have not ended, as long as there are any.
func (g *Group) sayWaiting(ended <-chan struct{}, running *running) {
	log := g.Log
	if log == nil {
		log = slog.Default()
	}
	began := time.Now()
	for wait := patience; ; wait *= 2 {
		select {
		case <-ended:
			return
		case <-time.After(wait):
			log.Warn("the end waits", "for", running.String(), "since", time.Since(began).Round(time.Second).String())
		}
	}
}

// running are the parts that have not ended, in the order in which they were added.
type running struct {
	mu    sync.Mutex
	names map[int]string
}

func (r *running) ended(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.names, i)
}

func (r *running) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for i := 0; len(names) < len(r.names); i++ {
		if name, ok := r.names[i]; ok {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}
