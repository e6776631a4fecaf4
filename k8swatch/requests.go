package k8swatch

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const (
	minPause = 200 * time.Millisecond
	maxPause = 2 * time.Second
	// pageSize is that of client-go.
	pageSize = 500
	// relist is the interval between lists of a resource whose watch is forbidden.
	relist = 10 * time.Second
	// streamDeadline is how long a streaming list may stand still. Some proxies and
	// servers never send its last bookmark (kubernetes#135895).
	streamDeadline = 10 * time.Second
	// overdue is the time after which a request without an answer counts as failing.
	overdue = time.Second
	// rewatchErrors is how long the watcher resumes a watch that broke in the middle of
	// an answer, for example through a lost connection. After that it lists everything
	// again, with pauses.
	rewatchErrors = 100 * time.Millisecond
)

// pauses are the pauses between requests: 0.2 s, then twice as long each time up to 2 s. A
// random part of up to half is subtracted, so that many watchers do not come back at once.
// client-go's own reflector waits up to a minute: far too long after a restart of the server.
func pauses() wait.Backoff { return backoff(minPause/2, maxPause/2, 1) }

// backoff begins with first and doubles up to the bound. It adds up to jitter times as
// much at random.
func backoff(first, bound time.Duration, jitter float64) wait.Backoff {
	return wait.Backoff{Duration: first, Factor: 2, Cap: bound, Jitter: jitter, Steps: math.MaxInt32}
}

// requests is the list-watch that the reflector sees. It repeats requests that may succeed
// later, so that the reflector's own back-off never begins. It lists page by page and keeps
// only the trimmed objects. All requests end with the round of the watcher. The context of
// the reflector never ends: if it did, the reflector would return and leave a list running.
type requests struct {
	inner    cache.ListerWatcherWithContext
	health   *health
	prepare  func(obj any) *prepared
	round    context.Context // set before the reflector begins, as number
	number   int
	noStream atomic.Bool    // no streaming lists
	stops    sync.WaitGroup // watches that are stopping

	mu    sync.Mutex
	stall *time.Timer // ends a streaming list that stands still; nil when none is open
}

var errNoStream = errors.New("streaming lists are off")

var errNoAnswer = errors.New("no answer yet")

// temporary reports whether the same request can succeed later. The reflector handles
// the other errors itself. After an expired or too large resource version it lists
// again, and after a refused streaming list it sends a plain one.
func temporary(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return (code == 429 || code >= 500) && !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// outdated reports whether another request helps the reflector: a new list, or one
// without a stream.
func outdated(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err)
}

// attempt makes a request until it succeeds, until again rejects the error, or until
// the round ends.
func attempt[T any](r *requests, verb string, again func(error) bool, request func() (T, error)) (T, error) {
	pause := pauses()
	for {
		answered := r.awaitAnswer(verb)
		got, err := request()
		answered()
		if err == nil {
			return got, nil
		}
		if r.round.Err() == nil {
			if !outdated(err) {
				r.health.failed(verb, err)
			}
			if !again(err) {
				return got, err
			}
			sleep(r.round, pause.Step())
		}
		if r.round.Err() != nil {
			return got, r.round.Err() // on some other errors the reflector would wait
		}
	}
}

// awaitAnswer marks the watcher as failing after a second, unless answered is called
// before: a hanging connection takes long to fail.
func (r *requests) awaitAnswer(verb string) (answered func()) {
	reported := make(chan struct{})
	t := time.AfterFunc(overdue, func() {
		r.health.failed(verb, errNoAnswer)
		close(reported)
	})
	return func() {
		if !t.Stop() {
			<-reported
		}
	}
}

// ListWithContext implements cache.ListerWatcherWithContext. It lists the latest state.
// With a resource version the API server would answer from its watch cache, in one
// piece whatever the limit.
func (r *requests) ListWithContext(_ context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	opts.ResourceVersion, opts.ResourceVersionMatch, opts.Limit = "", "", pageSize
	all := &internalversion.List{}
	for {
		page, err := attempt(r, verbList, temporary, func() (runtime.Object, error) { return r.inner.ListWithContext(r.round, opts) })
		if err != nil && opts.Continue != "" && apierrors.IsResourceExpired(err) {
			// The server has forgotten the state of the first pages.
			all.Items, opts.Continue, opts.Limit = nil, "", 0
			continue
		}
		if err != nil {
			return nil, err
		}
		m, err := meta.ListAccessor(page)
		if err != nil {
			return nil, err
		}
		err = meta.EachListItemWithAlloc(page, func(obj runtime.Object) error {
			all.Items = append(all.Items, r.prepare(obj))
			return nil
		})
		if err != nil {
			return nil, err
		}
		all.ResourceVersion = m.GetResourceVersion()
		opts.Continue = m.GetContinue()
		if opts.Continue == "" {
			return all, nil
		}
	}
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (r *requests) WatchWithContext(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	stream := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if stream && r.noStream.Load() {
		return nil, errNoStream
	}
	begun := time.Now()
	again := func(err error) bool {
		// Without this, a forbidden watch would list all objects several times a
		// second. That gains nothing and costs the server much.
		return temporary(err) || !stream && !outdated(err) && time.Since(begun) < relist
	}
	if stream {
		opts.ResourceVersion = "" // the latest state, as in a list
	}
	ctx, cancel := context.WithCancel(r.round)
	w, err := attempt(r, verbWatch, again, func() (watch.Interface, error) { return r.inner.WatchWithContext(ctx, opts) })
	if err != nil {
		cancel()
		return nil, err
	}
	if stream {
		r.beginStream(cancel)
	} else {
		r.health.well(verbWatch)
	}
	r.stops.Add(1)
	pending := context.AfterFunc(ctx, func() { w.Stop(); r.stops.Done() })
	return &roundWatch{Interface: w, release: func() {
		if pending() {
			r.stops.Done()
		}
		if stream {
			r.endStream()
		}
		cancel()
	}}, nil
}

// roundWatch is a watch that stops with its round.
type roundWatch struct {
	watch.Interface
	release func() // stops waiting for the end of the round
}

// Stop implements watch.Interface.
func (w *roundWatch) Stop() {
	w.Interface.Stop()
	w.release()
}

// beginStream cancels a streaming list that stands still. From then on the watcher uses
// plain lists.
func (r *requests) beginStream(cancel func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stall = time.AfterFunc(streamDeadline, func() {
		r.noStream.Store(true)
		cancel()
	})
}

// progress is called for each object of a streaming list.
func (r *requests) progress() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stall != nil {
		r.stall.Reset(streamDeadline)
	}
}

// endStream reports whether a streaming list was open.
func (r *requests) endStream() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stall == nil {
		return false
	}
	r.stall.Stop()
	r.stall = nil
	return true
}

// listed is called when a list is in the store. A streaming list goes on as the watch.
func (r *requests) listed() {
	r.health.well(verbList)
	if r.endStream() {
		r.health.well(verbWatch)
	}
	r.health.listed(r.number)
}

// List implements the older half of cache.ListerWatcher.
func (r *requests) List(opts metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(r.round, opts)
}

// Watch implements the older half of cache.ListerWatcher.
func (r *requests) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return r.WatchWithContext(r.round, opts)
}
