// Package fetch gives templates contents that are fetched by HTTP.
//
// A [Store] holds the contents and looks for new ones, a [Fetcher] is what the
// templates of one render see of it. A new content is used by renders at once,
// but only the deployment of a valid configuration accepts it: a content that
// breaks the configuration is never deployed.
package fetch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hapticsdk/haptic/eventbus"
)

// Store holds what templates fetch by HTTP. The zero value is ready.
//
// The first fetch of a URL happens while the template is rendered. From then on
// [Store.Run] looks for a new content at every interval. A new content is
// pending: renders use it until [Store.Settle] says what became of the
// configuration. A deployment accepts it. A failed render or validation rejects
// all pending contents that the render used; the accepted ones are in use again,
// and the rejected ones are tried again about an interval later.
//
// The store speaks http and https only. It follows at most five redirects, none
// from https to http, and sends credentials to no other host. If templates take
// URLs from resources, the authors of these resources reach what this process
// reaches: set Allow.
//
// The fields must not change once the store is in use. Methods may be called
// from any goroutine.
type Store struct {
	Client   *http.Client  // nil: one that takes its proxy from the environment; redirects and time-outs are the store's
	Interval time.Duration // between two looks at a URL, at least one second; zero: 1 min
	Timeout  time.Duration // of one try; zero: 30 s
	Retries  int           // after a failure that may pass, 0.5 s later and doubling; zero: 3, negative: none
	MaxBytes int64         // of a content; zero: 10 MiB
	MaxURLs  int           // held at one time; zero: 1000

	// Allow says whether a URL may be fetched or redirected to. Its error must not
	// contain the URL, which may have credentials. Nil: all may.
	Allow func(*url.URL) error

	// OnChange is called when the next render would use another content. Call
	// Loop.Trigger there. It must not block.
	OnChange func(reason string)

	Bus *eventbus.Bus // gets [Events]; nil: none are published

	mu        sync.Mutex
	resources map[key]*resource
	renders   uint64       // begun
	client    *http.Client // made by the first render
}

const (
	defaultInterval = time.Minute
	minInterval     = time.Second // also how often Run looks for what is due
	defaultTimeout  = 30 * time.Second
	defaultRetries  = 3
	defaultMaxBytes = 10 << 20
	defaultMaxURLs  = 1000
	renderWait      = 10 * time.Second // for the first fetch, while a render waits
	maxAtOnce       = 8                // fetches in the background
)

// key tells resources apart. Contents that were fetched with one credential are
// not shown to those who have another.
type key struct {
	url        string // without credentials
	credential [sha256.Size]byte
}

// content is what a URL had at one time. It never changes.
type content struct {
	text string
	sum  [sha256.Size]byte
}

func (c *content) hash() string { return hex.EncodeToString(c.sum[:4]) }

// resource is a URL and its contents. A fetch holds busy; the store's mu guards the
// rest.
type resource struct {
	key     key
	display string // the URL as it may be printed
	busy    chan struct{}
	opts    options

	accepted   *content // deployed last; nil at first
	acceptedAt time.Time
	pending    *content          // newer than accepted; nil if there is none
	rejected   [sha256.Size]byte // sum of the content that was rejected last: its events are published once
	rejections int               // of different contents
	refused    error             // why the newest content is not used; nil: it is, or is pending for the first time

	etag, lastModified string // of the newest content, "" after it was rejected

	used     uint64 // by the render of that number
	err      error  // of the last fetch
	failures int    // in a row
	next     time.Time
	checked  time.Time // when the server answered last
}

// current returns what renders use now; nil before the first fetch.
func (r *resource) current() *content {
	if r.pending != nil {
		return r.pending
	}
	return r.accepted
}

// Run looks for new contents of all URLs that renders use, each at its interval
// and eight at a time, until ctx ends. It returns nil once all that it started
// has ended. After a failure it looks sooner: in 1 s, doubling to the interval.
func (s *Store) Run(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(maxAtOnce)
	tick := time.NewTicker(minInterval)
	defer tick.Stop()
	for {
		for _, r := range s.due(time.Now()) {
			g.Go(func() error {
				if changed, _ := s.refresh(ctx, r); changed && s.OnChange != nil { // r keeps the error
					s.OnChange("new content of " + r.display)
				}
				return nil
			})
		}
		select {
		case <-ctx.Done():
			return g.Wait()
		case <-tick.C:
		}
	}
}

// due returns the resources to look at now.
func (s *Store) due(now time.Time) (due []*resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.resources {
		if len(r.busy) == 0 && !r.next.IsZero() && !now.Before(r.next) {
			due = append(due, r)
		}
	}
	return due
}

// refresh fetches a resource that is due, once any other fetch of it has ended,
// and reports whether renders use another content now.
func (s *Store) refresh(ctx context.Context, r *resource) (changed bool, err error) {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return false, &Error{URL: r.display, Err: context.Cause(ctx)}
	}
	s.mu.Lock()
	asked := *r
	s.mu.Unlock()
	if time.Now().Before(asked.next) { // renders must not try a URL that failed in a loop
		return false, asked.err
	}
	a, err := s.ask(ctx, &asked)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case errors.Is(err, context.Canceled): // whoever asked has gone
	case err != nil:
		r.err = err
		r.next = now.Add(min(r.opts.interval, minInterval<<min(r.failures, 16)))
		r.failures++
	default:
		changed = s.arrived(r, a)
		r.err, r.failures, r.checked, r.next = nil, 0, now, now.Add(r.opts.interval)
	}
	return changed, err
}

// arrived takes an answer, and reports whether renders use another content now.
// The caller holds s.mu.
func (s *Store) arrived(r *resource, a *answer) bool {
	if a.unchanged {
		return false
	}
	r.etag, r.lastModified = a.etag, a.lastModified
	sum := sha256.Sum256([]byte(a.text))
	before := r.current()
	if r.accepted != nil && r.accepted.sum == sum { // the server took the new one back, if there was one
		if r.pending = nil; r.refused != nil {
			r.refused, r.rejected = nil, [sha256.Size]byte{}
			eventbus.Publish(s.Bus, Withdrawn{URL: r.display})
		}
		return before != r.accepted
	}
	if before != nil && before.sum == sum {
		return false
	}
	r.pending = &content{text: a.text, sum: sum}
	if sum != r.rejected {
		eventbus.Publish(s.Bus, Updated{URL: r.display, Bytes: len(a.text), Hash: r.pending.hash()})
	}
	return true
}

// Settle says what became of the configuration that was made with what a render
// fetched: it is deployed or, with an error, it could not be made or is not
// valid. After an error it reports whether contents were rejected, so that
// another render, made at once, may do better.
func (s *Store) Settle(f *Fetcher, err error) (again bool) {
	if s == nil || f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	var rejected []*resource
	for k, c := range f.used {
		if r := s.resources[k]; r != nil && s.settle(r, c, err) {
			rejected = append(rejected, r)
		}
	}
	for _, r := range rejected {
		if len(rejected) > 1 { // tried apart, so that a bad one does not hold up the others for ever
			r.next = time.Now().Add(r.opts.interval/2 + rand.N(r.opts.interval))
		}
	}
	for k, r := range s.resources {
		if err == nil && r.used < f.render && len(r.busy) == 0 { // no template uses it any more
			delete(s.resources, k)
		}
	}
	return len(rejected) > 0
}

// settle accepts or rejects a content that a render used, and reports whether it
// was rejected. The caller holds s.mu.
func (s *Store) settle(r *resource, c *content, err error) (rejected bool) {
	switch {
	case err == nil && (c == r.pending || r.accepted == nil): // no older one, nor one that was rejected
		r.accepted, r.acceptedAt = c, time.Now()
		if r.pending == c {
			r.pending = nil
		}
		r.rejected, r.refused = [sha256.Size]byte{}, nil
		eventbus.Publish(s.Bus, Accepted{URL: r.display, Hash: c.hash()})
	case err != nil && r.pending == c && r.accepted != nil:
		r.pending, r.etag, r.lastModified = nil, "", "" // so that the server gives it again
		r.refused = err
		if r.rejected != c.sum {
			r.rejected = c.sum
			r.rejections++
			eventbus.Publish(s.Bus, Rejected{URL: r.display, Hash: c.hash(), Err: err})
		}
		return true
	}
	return false
}

// Resource is what a [Store] knows of one URL. It has no credential, no value of
// a query, and no content.
type Resource struct {
	URL        string    `json:"url"`
	Bytes      int       `json:"bytes"`               // of the content in use
	Hash       string    `json:"hash,omitempty"`      // of it, shortened
	Pending    bool      `json:"pending,omitempty"`   // it is not deployed yet
	AcceptedAt time.Time `json:"acceptedAt,omitzero"` // when the accepted content was deployed
	CheckedAt  time.Time `json:"checkedAt,omitzero"`  // when the server answered last
	NextAt     time.Time `json:"nextAt,omitzero"`     // when it is asked again
	Rejected   int       `json:"rejected,omitempty"`  // contents, since the URL is known
	Error      string    `json:"error,omitempty"`     // of the last fetch; empty if it did well
	Failures   int       `json:"failures,omitempty"`  // in a row
	Refused    string    `json:"refused,omitempty"`   // why the newest content is not used, but the one accepted before
}

// Resources returns what is known of every URL, sorted by it: for a debug page.
func (s *Store) Resources() []Resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []Resource{}
	for _, r := range s.resources {
		out := Resource{URL: r.display, AcceptedAt: r.acceptedAt, CheckedAt: r.checked, NextAt: r.next, Rejected: r.rejections, Failures: r.failures}
		if c := r.current(); c != nil {
			out.Bytes, out.Hash, out.Pending = len(c.text), c.hash(), c == r.pending
		}
		if r.err != nil {
			out.Error = r.err.Error()
		}
		if r.refused != nil {
			out.Refused = r.refused.Error()
		}
		all = append(all, out)
	}
	slices.SortFunc(all, func(a, b Resource) int { return cmp.Or(cmp.Compare(a.URL, b.URL), cmp.Compare(a.Hash, b.Hash)) })
	return all
}

// Format says how many URLs there are, for every verb, and nothing of them.
func (s *Store) Format(st fmt.State, _ rune) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(st, "HTTP store with %d URLs", len(s.resources))
}
