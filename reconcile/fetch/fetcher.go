package fetch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hapticsdk/haptic/internal/late"
)

// Fetcher is the variable http of the templates in one render. Through it they read a [Store].
// Within one render, a URL has one content.
type Fetcher struct {
	store  *Store
	ctx    context.Context // of the render
	render uint64
	note   func(key, revision any)

	mu   sync.Mutex
	used map[key]*content
}

// Begin starts a render. ctx ends the fetches that the render waits for. A nil store refuses
// to fetch.
//
// A renderer that remembers texts passes note, to record each fetch: see [Store.Revision]. It
// may be nil.
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

// Format shows nothing of the fetched contents, for any verb.
func (f *Fetcher) Format(st fmt.State, _ rune) { _, _ = st.Write([]byte("HTTP fetcher")) }

var errNoStore = errors.New("http.Fetch: this controller fetches nothing: Templates.HTTP is not set")

// Fetch returns the content of a URL. The first render that fetches a URL waits for it, at
// most 10 s.
//
// An error ends the render. It has the position of the call and is an [*Error]: for example,
// the URL is not http or https, or the server has given no content yet. A server that fails
// later does no harm. Called from Go, Fetch panics with the error.
func (f *Fetcher) Fetch(url string) string { return f.FetchWith(url, nil) }

// FetchWith is Fetch with options:
//
//   - username and password, or token: the credentials; a token is a bearer token
//   - interval and timeout: durations, such as "30s", that replace the store's
//
// Credentials may also stand in the URL. The same URL with other credentials is another
// resource.
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

// Revision returns the revision that this render has for a noted key, or nil if the store has
// no content for it. From then on, the render uses that content.
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

// use returns the content of a URL in this render. If the store has none yet and options are
// given, it fetches. The caller holds f.mu.
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

// find returns a resource and its current content. If options are given, it creates a missing
// resource.
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
