package kit

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

// patience is how long parts may take to end before the log names them. It doubles with each
// line.
const patience = time.Second

// Group runs the parts of a program and logs the parts that do not end. Only one goroutine may
// call its methods.
type Group struct {
	Log *slog.Logger // nil: slog.Default()

	// Run calls OnStop once, when the end begins: with the error of the first failed part, or
	// with nil and the cause of the end of ctx. If all parts end by themselves without an
	// error, Run does not call it.
	OnStop func(failed, cause error)

	parts []part
}

type part struct {
	name string
	run  func(context.Context) error
}

// Go adds a part. run must return after its context ends, and only when everything that it
// started has ended. An error of one part ends all others.
func (g *Group) Go(name string, run func(ctx context.Context) error) {
	g.parts = append(g.parts, part{name, run})
}

// Run runs all parts until ctx ends or one fails, and returns when all have ended. If they
// take longer than a second to end, the log names them. Run returns the first error, or nil if
// ctx ended.
func (g *Group) Run(ctx context.Context) error { return g.run(ctx, g.parts, g.OnStop) }

// Until runs all parts until f returns. It returns the error of f, or the first error of a
// part.
func (g *Group) Until(ctx context.Context, f func(ctx context.Context) error) error {
	done := errors.New("done")
	last := part{"the deployment", func(ctx context.Context) error { return cmp.Or(f(ctx), done) }}
	err := g.run(ctx, append(slices.Clone(g.parts), last), nil)
	if errors.Is(err, done) {
		return nil
	}
	return cmp.Or(err, context.Cause(ctx)) // ctx ended before f did
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
				return nil // it ended as asked
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

// sayWaiting logs the parts that have not ended, until all have.
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

// running holds the parts that have not ended, in the order of Go.
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
