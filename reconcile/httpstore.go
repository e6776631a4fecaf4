package reconcile

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

// HTTPStore has what templates fetch by HTTP: http.Fetch(url). The zero value is
// ready.
//
// The first fetch of a URL happens while the template is rendered. From then on
// [HTTPStore.Run] looks for a new version at every interval. A new version is
// pending: renders use it, but only when a configuration made with it has been
// deployed is it accepted. If it makes the render or the validation fail while
// the accepted version does not, it is rejected: the accepted version stays in
// use, and the rejected one is not tried again until the server has another.
// All that one render fetches is one set of versions.
//
// Only http and https are spoken; at most five redirects are followed, none from
// https to http, and credentials go to no other host. A template that takes URLs
// from resources lets their authors reach what this process reaches: Allow is
// for that.
//
// The fields must not change once the store is in use. Methods may be called
// from any goroutine.
type HTTPStore struct {
	Client   *http.Client  // zero: one that takes its proxy from the environment; redirects and time-outs are the store's
	Interval time.Duration // between two looks at a URL, at least one second; zero: 1 min
	Timeout  time.Duration // of one try; zero: 30 s
	Retries  int           // after a failure that may pass, 0.5 s later and doubling; zero: 3, negative: none
	MaxBytes int64         // of a content; zero: 10 MiB
	MaxURLs  int           // held at one time; zero: 1000

	// Allow says whether a URL may be fetched or redirected to. It must not
	// print the URL: it may have credentials. Zero: all may.
	Allow func(*url.URL) error

	// OnChange is called when a render would find something else than the one
	// before: [Loop.Trigger] is to be called there. It must not block.
	OnChange func(reason string)

	Bus *eventbus.Bus // gets HTTPResourceUpdated, -Accepted and -Rejected; nil: nobody hears them

	once   sync.Once
	client *http.Client
	wake   chan struct{} // of size 1: another URL, or an earlier time

	mu        sync.Mutex
	resources map[httpKey]*httpResource
	renders   uint64 // begun
	versions  uint64 // fetched
}

// The defaults of an [HTTPStore].
const (
	defaultHTTPInterval = time.Minute
	minHTTPInterval     = time.Second
	defaultHTTPTimeout  = 30 * time.Second
	defaultHTTPRetries  = 3
	defaultHTTPMaxBytes = 10 << 20
	defaultHTTPMaxURLs  = 1000

	httpRetryBase    = 500 * time.Millisecond // first wait between two tries; doubles
	httpRenderWait   = 10 * time.Second       // for the first fetch, while a render waits
	maxHTTPRedirects = 5
	maxHTTPAtOnce    = 8 // fetches in the background

	httpUnusedRenders = 100 // after which a URL gives way to another, whatever was deployed
)

// HTTPResourceUpdated says that a URL has a new content, which is pending from
// here on. No event has a credential, nor the values of a query.
type HTTPResourceUpdated struct {
	URL   string
	Bytes int
	Hash  string // of the content, shortened
}

// HTTPResourceAccepted says that a configuration made with that content has been
// deployed.
type HTTPResourceAccepted struct {
	URL  string
	Hash string
}

// HTTPResourceRejected says that no valid configuration could be made with that
// content, and that the one accepted before stays in use.
type HTTPResourceRejected struct {
	URL  string
	Hash string
	Err  error
}

// HTTPError says why a URL could not be fetched. It never has a credential, nor
// the values of a query.
type HTTPError struct {
	URL    string // "https://host/path?key=..."
	Status int    // of the answer; 0 if there was none
	Err    error
}

func (e *HTTPError) Error() string {
	if e.Status != 0 && e.Err == nil {
		return fmt.Sprintf("http.Fetch %s: status %d %s", e.URL, e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("http.Fetch %s: %v", e.URL, e.Err)
}

// Unwrap returns the cause.
func (e *HTTPError) Unwrap() error { return e.Err }

// httpKey tells resources apart. What was fetched with one credential is not
// shown to who has another.
type httpKey struct {
	url        string // without credentials
	credential [sha256.Size]byte
}

func (k httpKey) compare(o httpKey) int {
	return cmp.Or(cmp.Compare(k.url, o.url), slices.Compare(k.credential[:], o.credential[:]))
}

// httpVersion is one content of a URL. It never changes.
type httpVersion struct {
	number  uint64 // of the store
	content string
	sum     [sha256.Size]byte
	at      time.Time
}

func (v *httpVersion) hash() string { return hex.EncodeToString(v.sum[:4]) }

// httpResource is a URL and its versions. The store's mu guards it.
type httpResource struct {
	key     httpKey
	display string // the URL as it may be printed
	opts    fetchOptions

	accepted   *httpVersion // the newest that was deployed; nil at first
	acceptedAt time.Time
	pending    *httpVersion // fetched later than that; nil if there is none
	trial      trial        // of pending

	newest       [sha256.Size]byte // sum of the last content, also of one rejected
	any          bool              // there was one
	etag         string
	lastModified string

	used     uint64 // the last render that used it
	fetching chan struct{}
	err      error // of the last fetch
	failures int   // in a row
	next     time.Time
	checked  time.Time // the server was asked last
	rejected int
}

// trial is what is thought of a pending version after a failure.
type trial struct {
	suspect bool   // renders go without it
	alone   bool   // it was the only pending one of a render that failed
	since   uint64 // the last render that had begun by then
	why     error
}

func (s *HTTPStore) init() {
	s.once.Do(func() {
		s.wake = make(chan struct{}, 1)
		s.resources = map[httpKey]*httpResource{}
		s.client = s.newClient()
	})
}

// choose returns what renders use now; nil before the first fetch.
func (r *httpResource) choose() *httpVersion {
	if r.pending != nil && (r.accepted == nil || !r.trial.suspect) {
		return r.pending
	}
	return r.accepted
}

// Begin starts a render. A nil store refuses to fetch. Fetches that the render
// has to wait for end with ctx.
func (s *HTTPStore) Begin(ctx context.Context) *HTTPFetcher {
	f := &HTTPFetcher{store: s, ctx: ctx, used: map[httpKey]*httpVersion{}}
	if s != nil {
		s.init()
		s.mu.Lock()
		s.renders++
		f.id = s.renders
		s.mu.Unlock()
	}
	return f
}

// HTTPResource is what an [HTTPStore] knows of one URL. It has no credential,
// no value of a query, and no content.
type HTTPResource struct {
	URL        string    `json:"url"`
	Bytes      int       `json:"bytes"`               // of the content in use
	Hash       string    `json:"hash,omitempty"`      // of it, shortened
	Pending    bool      `json:"pending,omitempty"`   // it is not deployed yet
	Suspect    bool      `json:"suspect,omitempty"`   // a newer one made a configuration that is not valid
	AcceptedAt time.Time `json:"acceptedAt,omitzero"` // when the accepted content was deployed
	CheckedAt  time.Time `json:"checkedAt,omitzero"`  // when the server answered last
	NextAt     time.Time `json:"nextAt,omitzero"`     // when it is asked again
	Rejected   int       `json:"rejected,omitempty"`  // contents, since the URL is known
	Error      string    `json:"error,omitempty"`     // of the last fetch; empty if it did well
	Failures   int       `json:"failures,omitempty"`  // in a row
}

// Resources returns what is known of every URL, sorted: for a debug page.
func (s *HTTPStore) Resources() []HTTPResource {
	s.init()
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []HTTPResource{}
	for _, r := range s.sorted() {
		out := HTTPResource{URL: r.display, Suspect: r.trial.suspect, AcceptedAt: r.acceptedAt, CheckedAt: r.checked,
			NextAt: r.next, Rejected: r.rejected, Failures: r.failures}
		if v := r.choose(); v != nil {
			out.Bytes, out.Hash, out.Pending = len(v.content), v.hash(), v != r.accepted
		}
		if r.err != nil {
			out.Error = r.err.Error()
		}
		all = append(all, out)
	}
	return all
}

// sorted returns all resources in an order that does not change. The caller
// holds s.mu.
func (s *HTTPStore) sorted() []*httpResource {
	all := make([]*httpResource, 0, len(s.resources))
	for _, r := range s.resources {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *httpResource) int { return a.key.compare(b.key) })
	return all
}

// String says how many URLs there are; the store prints nothing of them.
func (s *HTTPStore) String() string {
	s.init()
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("HTTP store with %d URLs", len(s.resources))
}

// Format is String for every verb, so that %+v shows no URL either.
func (s *HTTPStore) Format(st fmt.State, _ rune) { _, _ = st.Write([]byte(s.String())) }

func (s *HTTPStore) changed(reason string) {
	if s.OnChange != nil {
		s.OnChange(reason)
	}
}

func (s *HTTPStore) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
