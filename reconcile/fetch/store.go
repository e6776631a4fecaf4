// Package fetch lets templates use contents that it fetches by HTTP.
//
// A [Store] holds the contents and looks for new ones. A [Fetcher] reads them for the
// templates of one render. Renders use a new content at once. The store accepts it when a
// valid configuration with it is deployed. A content that breaks the configuration is never
// deployed.
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

// Store holds the contents that templates fetch by HTTP. The zero value is ready.
//
// The first render with a URL fetches it. From then on, [Store.Run] looks for a new content at
// every interval. A new content is pending: renders use it until [Store.Settle] reports the
// outcome of the configuration. A deployment accepts the content. After a failed render or
// validation, the store rejects every pending content of the render that has an accepted
// predecessor. The predecessor is in use again. The store tries a rejected content again about
// an interval later.
//
// The store speaks http and https only. It follows at most five redirects, none from https to
// http, and sends credentials to no other host. If templates take URLs from resources, the
// authors of these resources reach everything that this process reaches: set Allow.
//
// Do not change the fields once the store is in use. Any goroutine may call the methods.
type Store struct {
	Client   *http.Client  // nil: a client with the proxy of the environment; redirects and time-outs are always the store's
	Interval time.Duration // between two looks at a URL, at least 1 s; zero: 1 min
	Timeout  time.Duration // of one try; zero: 30 s
	Retries  int           // after a failure that may pass; the first after 0.5 s, doubling; zero: 3, negative: none
	MaxBytes int64         // of a content; zero: 10 MiB
	MaxURLs  int           // kept at one time; zero: 1000

	// Allow says whether the store may fetch a URL or follow a redirect to it. Its error must
	// not contain the URL, which may have credentials. Nil allows all.
	Allow func(*url.URL) error

	// OnChange is called when the next render would use another content. Call Loop.Trigger in
	// it. It must not block.
	OnChange func(reason string)

	Bus *eventbus.Bus // gets [Events]; if nil, no events are published

	mu        sync.Mutex
	resources map[key]*resource
	renders   uint64       // number of renders begun
	client    *http.Client // made by the first render
}

const (
	defaultInterval = time.Minute
	minInterval     = time.Second // also how often Run looks for due resources
	defaultTimeout  = 30 * time.Second
	defaultRetries  = 3
	defaultMaxBytes = 10 << 20
	defaultMaxURLs  = 1000
	renderWait      = 10 * time.Second // for the first fetch, while a render waits
	maxAtOnce       = 8                // fetches in the background
)

// key identifies a resource. A content fetched with one credential is not shown to users of
// another.
type key struct {
	url        string // without credentials
	credential [sha256.Size]byte
}

// content is the content of a URL at one time. It never changes.
type content struct {
	text string
	sum  [sha256.Size]byte
}

func (c *content) hash() string { return hex.EncodeToString(c.sum[:4]) }

// resource is a URL and its contents. A fetch holds busy; the store's mu guards the rest.
type resource struct {
	key     key
	display string // printable form of the URL
	busy    chan struct{}
	opts    options

	accepted   *content // deployed last; nil at first
	acceptedAt time.Time
	pending    *content          // newer than accepted; nil if there is none
	rejected   [sha256.Size]byte // sum of the last rejected content: its events are published once
	rejections int               // contents rejected, not counting repetitions in a row
	refused    error             // why the newest content is not used; nil: it is in use, or pending for the first time

	etag, lastModified string // of the newest content; "" after a rejection

	used     uint64 // number of the newest render that used it
	err      error  // of the last fetch
	failures int    // in a row
	next     time.Time
	checked  time.Time // when the server answered last
}

// current returns the content that renders use now; nil before the first fetch.
func (r *resource) current() *content {
	if r.pending != nil {
		return r.pending
	}
	return r.accepted
}

// Run looks for new contents of all URLs in use, until ctx ends. It looks at each URL at its
// interval, and at eight URLs at a time. It returns nil when everything that it started has
// ended. After a failure it looks again in 1 s, doubling up to the interval.
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

// refresh waits for any other fetch of a resource, then fetches it if it is due. It reports
// whether renders now use another content.
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
	if time.Now().Before(asked.next) { // so that renders in a loop do not hammer a URL that failed
		return false, asked.err
	}
	a, err := s.ask(ctx, &asked)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case errors.Is(err, context.Canceled): // the caller has gone
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

// arrived takes an answer. It reports whether renders now use another content. The caller
// holds s.mu.
func (s *Store) arrived(r *resource, a *answer) bool {
	if a.unchanged {
		return false
	}
	r.etag, r.lastModified = a.etag, a.lastModified
	sum := sha256.Sum256([]byte(a.text))
	before := r.current()
	if r.accepted != nil && r.accepted.sum == sum { // the server returned to the accepted content
		r.pending = nil
		if r.refused != nil {
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

// Settle reports the outcome of the configuration made with the fetches of a render. A nil
// error means that it is deployed; otherwise it could not be made or is not valid. Settle
// returns true if it rejected contents: then render again at once, which may do better.
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
		if len(rejected) > 1 { // try them apart, so that a bad one does not block the others
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

// settle accepts or rejects a content that a render used. It reports whether it rejected the
// content. The caller holds s.mu.
func (s *Store) settle(r *resource, c *content, err error) (rejected bool) {
	switch {
	case err == nil && (c == r.pending || r.accepted == nil): // not an older or rejected content
		r.accepted, r.acceptedAt = c, time.Now()
		if r.pending == c {
			r.pending = nil
		}
		r.rejected, r.refused = [sha256.Size]byte{}, nil
		eventbus.Publish(s.Bus, Accepted{URL: r.display, Hash: c.hash()})
	case err != nil && r.pending == c && r.accepted != nil:
		r.pending, r.etag, r.lastModified = nil, "", "" // without them the server sends the content again
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

// Resource describes one URL of a [Store], without credentials, query and content.
type Resource struct {
	URL        string    `json:"url"`
	Bytes      int       `json:"bytes"`               // of the content in use
	Hash       string    `json:"hash,omitempty"`      // of that content, shortened
	Pending    bool      `json:"pending,omitempty"`   // that content is not deployed yet
	AcceptedAt time.Time `json:"acceptedAt,omitzero"` // when the accepted content was deployed
	CheckedAt  time.Time `json:"checkedAt,omitzero"`  // when the server answered last
	NextAt     time.Time `json:"nextAt,omitzero"`     // when the store asks next
	Rejected   int       `json:"rejected,omitempty"`  // rejected contents since the first fetch
	Error      string    `json:"error,omitempty"`     // of the last fetch; empty if it succeeded
	Failures   int       `json:"failures,omitempty"`  // in a row
	Refused    string    `json:"refused,omitempty"`   // why the accepted content is used and not the newest
}

// Resources describes every URL, sorted by URL, for a debug page.
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

// Format shows only the number of URLs, for every verb.
func (s *Store) Format(st fmt.State, _ rune) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(st, "HTTP store with %d URLs", len(s.resources))
}
