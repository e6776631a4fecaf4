package k8swatch

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const (
	minPause = 200 * time.Millisecond
	maxPause = 2 * time.Second
	// relist is how often a resource is listed that may not be watched.
	relist = 10 * time.Second
	// streamDeadline is how long a streaming list may stand still. Some proxies
	// and servers never send its last bookmark (kubernetes#135895).
	streamDeadline = 10 * time.Second
	// answerDeadline is when a list that has no answer counts as failing, and
	// rewatchDeadline when a watch: the server answers that before it has anything
	// to send.
	answerDeadline  = 1500 * time.Millisecond
	rewatchDeadline = 750 * time.Millisecond
	// rewatchErrors is for how long a watch that broke in the middle of an answer,
	// as one does whose connection is lost, is begun again from where it was. When
	// it goes on breaking, everything is listed anew, with pauses.
	rewatchErrors = 100 * time.Millisecond
)

// backoff waits 0.2 s, then twice as long each time up to 2 s, less up to half
// of it at random so that many watchers do not come back at once. client-go's
// own reflector waits up to a minute: far too long after a restart of the server.
type backoff struct{ next time.Duration }

func (b *backoff) reset() { b.next = 0 }

func (b *backoff) wait(ctx context.Context) {
	b.next = min(max(2*b.next, minPause), maxPause)
	t := time.NewTimer(b.next - rand.N(b.next/2))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// retrier is the list-watch that the reflector sees. What may pass is retried
// here, so that the reflector's own back-off never begins.
type retrier struct {
	inner    cache.ListerWatcherWithContext
	health   *health
	intake   *intake
	deadline time.Duration
	noStream atomic.Bool // streaming lists are off
	refused  atomic.Bool // the server does not let us watch

	mu     sync.Mutex
	timer  *time.Timer // the vigil over the open streaming list; nil when there is none
	cancel func()      // ends the last streaming list
}

// temporary reports whether the same request can succeed later. The reflector
// itself deals with the rest: expired and too large resource versions by listing
// anew, a streaming list that is refused by a plain one.
func temporary(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return !errors.Is(err, errNoStream)
	}
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return false
	}
	code := status.Status().Code
	return code == 429 || code >= 500
}

var errNoStream = errors.New("streaming lists are off")

// ListWithContext implements cache.ListerWatcherWithContext.
func (r *retrier) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	r.endVigil() // a list follows a stream that has failed
	list, err := attempt(ctx, r, verbList, answerDeadline, func() (runtime.Object, error) { return r.inner.ListWithContext(ctx, opts) })
	if err != nil {
		r.refused.Store(false) // no list, no load
	}
	return list, err
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (r *retrier) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	stream := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if stream && r.noStream.Load() {
		return nil, errNoStream
	}
	if stream {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		w, err := r.watch(ctx, opts)
		if err != nil {
			cancel()
			return nil, err
		}
		r.vigil(ctx, cancel)
		return w, nil
	}
	w, err := r.watch(ctx, opts)
	if err == nil {
		r.health.well(verbWatch)
	}
	return w, err
}

func (r *retrier) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	w, err := attempt(ctx, r, verbWatch, rewatchDeadline, func() (watch.Interface, error) { return r.inner.WatchWithContext(ctx, opts) })
	r.refused.Store(err != nil && !passes(err))
	return w, err
}

func attempt[T any](ctx context.Context, r *retrier, verb string, deadline time.Duration, f func() (T, error)) (T, error) {
	var pause backoff
	for {
		answered := r.overdue(verb, deadline)
		got, err := f()
		answered()
		if err == nil || ctx.Err() != nil {
			return got, err
		}
		if !passes(err) {
			r.health.failed(verb, err)
		}
		if !temporary(err) {
			return got, err
		}
		pause.wait(ctx)
		if ctx.Err() != nil {
			return got, err
		}
	}
}

// passes reports whether the reflector gets by with another request: a new list,
// or one that is no stream.
func passes(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err)
}

// overdue makes a request that nobody answers show in the state, until answered
// is called: a connection that hangs takes long to fail. That holds for a long
// list too: while it is under way nothing is watched.
func (r *retrier) overdue(verb string, deadline time.Duration) (answered func()) {
	var mu sync.Mutex
	done := false
	t := time.AfterFunc(deadline, func() {
		mu.Lock()
		defer mu.Unlock()
		if !done {
			r.health.failed(verb, errNoAnswer)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		done = true
		t.Stop()
	}
}

var errNoAnswer = errors.New("no answer yet")

// vigil cancels a streaming list in which nothing moves for the deadline; plain
// lists are used from then on. The stream before it has ended.
func (r *retrier) vigil(ctx context.Context, cancel context.CancelFunc) {
	begun := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.cancel != nil {
		r.cancel()
	}
	r.cancel = cancel
	var timer *time.Timer
	timer = time.AfterFunc(r.deadline, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if ctx.Err() != nil || r.timer != timer {
			return
		}
		last := r.intake.lastProgress()
		if last.Before(begun) {
			last = begun
		}
		if idle := time.Since(last); idle < r.deadline {
			timer.Reset(r.deadline - idle)
			return
		}
		r.noStream.Store(true)
		cancel()
	})
	r.timer = timer
}

// synced is called when a list is in the store: the stream, if it was one, goes
// on as the watch.
func (r *retrier) synced() {
	if r.endVigil() {
		r.health.well(verbList, verbWatch)
	} else {
		r.health.well(verbList)
	}
}

// endVigil reports whether a streaming list was open.
func (r *retrier) endVigil() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	open := r.timer != nil
	if open {
		r.timer.Stop()
		r.timer = nil
	}
	return open
}

// await waits for as long as the server refuses to let us watch, at most until
// the next list is due: there is nothing to gain from all objects several times a
// second, and much to lose for the server.
func (r *retrier) await(ctx context.Context, version string) {
	due := time.Now().Add(relist)
	for pause := (backoff{}); r.refused.Load() && time.Now().Before(due); {
		if pause.wait(ctx); ctx.Err() != nil {
			return
		}
		w, err := r.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err == nil {
			w.Stop() // the reflector opens its own
		}
	}
}

// List implements the older half of cache.ListerWatcher.
func (r *retrier) List(opts metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(context.Background(), opts)
}

// Watch implements the older half of cache.ListerWatcher.
func (r *retrier) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return r.WatchWithContext(context.Background(), opts)
}
