package fetch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hapticsdk/haptic/internal/late"
)

// Fetcher is what the templates of one render see of a [Store], as the variable
// http. All that one render fetches of a URL is the same content.
type Fetcher struct {
	store  *Store
	ctx    context.Context // of the render
	render uint64
	note   func(key, revision any)

	mu   sync.Mutex
	used map[key]*content
}

// Begin starts a render. Fetches that the render has to wait for end with ctx. A
// nil store refuses to fetch.
//
// A renderer that remembers texts gives a function that takes note of each fetch:
// see [Store.Revision]. It may be nil.
func (s *Store) Begin(ctx context.Context, note func(key, revision any)) *Fetcher {
	f := &Fetcher{store: s, ctx: ctx, note: note, used: map[key]*content{}}
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.resources == nil {
			s.resources, s.client = map[key]*resource{}, s.newClient()
		}
		s.renders++
		f.render = s.renders
	}
	return f
}

// Format tells nothing of what was fetched, for any verb.
func (f *Fetcher) Format(st fmt.State, _ rune) { _, _ = st.Write([]byte("HTTP fetcher")) }

var errNoStore = errors.New("http.Fetch: this controller fetches nothing: Templates.HTTP is not set")

// Fetch returns the content of a URL. The first render that fetches a URL waits
// for it, 10 s at most.
//
// An error ends the render, with the position of the call and an [*Error]: the
// URL is not http or https, or the server gave no content yet. A server that fails
// later does no harm. Called from Go, Fetch panics with that error.
func (f *Fetcher) Fetch(url string) string { return f.FetchWith(url, nil) }

// FetchWith is Fetch with options:
//
//   - username and password, or token: credentials; a token is a bearer's
//   - interval and timeout: durations, such as "30s", in place of the store's
//
// Credentials may also stand in the URL. The same URL with other credentials is
// another resource.
func (f *Fetcher) FetchWith(url string, options map[string]any) string {
	text, err := f.fetch(url, options)
	if err != nil {
		panic(err)
	}
	return text
}

func (f *Fetcher) fetch(raw string, options map[string]any) (string, error) {
	if f == nil || f.store == nil {
		return "", errNoStore
	}
	k, opts, err := f.store.parse(raw, options)
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.use(k, &opts)
	if err != nil {
		return "", err
	}
	if f.note != nil {
		f.note(k, c)
	}
	return c.text, nil
}

// Revision returns what a fetch with a key that was noted would be noted with in
// this render, nil if that is not known. The render then uses that content.
func (s *Store) Revision(f *Fetcher, noted any) any {
	k, ok := noted.(key)
	if s == nil || !ok {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, _ := f.use(k, nil); c != nil {
		return c
	}
	return nil
}

// use returns what the render uses of a URL, and fetches it where nothing is
// known of it yet and options are given. The caller holds f.mu.
func (f *Fetcher) use(k key, opts *options) (*content, error) {
	if c := f.used[k]; c != nil {
		return c, nil
	}
	r, c, err := f.store.find(k, opts, f.render)
	if err == nil && c == nil && opts != nil {
		ctx, cancel := late.Context(f.ctx, "no answer", renderWait)
		defer cancel()
		if _, err = f.store.refresh(ctx, r); err == nil {
			c = f.store.current(r)
		}
	}
	if c != nil {
		f.used[k] = c
	}
	return c, err
}

// find returns a resource, made where it is missing and options are given, and
// what renders use of it now.
func (s *Store) find(k key, opts *options, render uint64) (*resource, *content, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, most := s.resources[k], orDefault(s.MaxURLs, defaultMaxURLs)
	switch {
	case r == nil && opts == nil:
		return nil, nil, nil
	case r == nil && len(s.resources) >= most:
		return nil, nil, &Error{URL: display(k.url), Err: fmt.Errorf("%d URLs are held already, and there is no room for more", most)}
	case r == nil:
		r = &resource{key: k, display: display(k.url), busy: make(chan struct{}, 1)}
		s.resources[k] = r
	}
	if opts != nil {
		r.opts = *opts
	}
	r.used = max(r.used, render)
	return r, r.current(), nil
}

func (s *Store) current(r *resource) *content {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.current()
}
