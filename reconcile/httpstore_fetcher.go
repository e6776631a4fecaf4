package reconcile

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

// HTTPFetcher is what the templates of one render fetch with: one version of
// each URL. [Templates] gives it to them as the variable http ([HostVars]).
type HTTPFetcher struct {
	store *HTTPStore
	ctx   context.Context // of the render
	id    uint64

	mu    sync.Mutex
	used  map[httpKey]*httpVersion
	notes *notes // of what is rendered now
}

// Format tells nothing of what was fetched, for any verb.
func (f *HTTPFetcher) Format(st fmt.State, _ rune) { _, _ = st.Write([]byte("HTTP fetcher")) }

var errNoHTTP = errors.New("http.Fetch: this controller fetches nothing: Templates.HTTP is not set")

// Fetch returns the content of a URL. The first render that fetches a URL waits
// for it, 10 s at most.
//
// What is wrong ends the render, with the position of the call and an
// [*HTTPError]: a URL that is not http or https, and one of which there is no
// content yet because the server does not give it. A server that fails later
// on does no harm. Called from Go it panics with that error.
func (f *HTTPFetcher) Fetch(url string) string { return f.FetchWith(url, nil) }

// FetchWith is Fetch with options, of which the zero values of the store hold
// for what is not given:
//
//   - username and password, or token: credentials; a token is a bearer's
//   - interval and timeout: durations, such as "30s"
//
// Credentials may also stand in the URL. The same URL with other credentials is
// another resource.
func (f *HTTPFetcher) FetchWith(url string, options map[string]any) string {
	content, err := f.fetch(url, options)
	if err != nil {
		panic(err)
	}
	return content
}

func (f *HTTPFetcher) fetch(raw string, options map[string]any) (string, error) {
	if f == nil || f.store == nil {
		return "", errNoHTTP
	}
	key, opts, err := f.store.parse(raw, options)
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.used[key]
	if v == nil {
		if v, err = f.store.version(f.ctx, key, opts, f.id); err != nil {
			return "", err
		}
		f.used[key] = v
	}
	f.notes.fetch(key, v)
	return v.content, nil
}

func (f *HTTPFetcher) begin(n *notes) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = n
}

// same reports whether a fetch in this render gives that version. If so, the
// render has used it.
func (f *HTTPFetcher) same(key httpKey, v *httpVersion) bool {
	if f.store == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.used[key]
	if now == nil {
		now = f.store.use(key, f.id)
	}
	if now != v {
		return false
	}
	f.used[key] = v
	return true
}

// Settle says what became of the configuration that was made with what this
// render fetched: it is deployed or, with an error, it could not be made or is
// not valid. After an error it reports whether a render without pending
// versions may do better; that render is to be made at once.
func (f *HTTPFetcher) Settle(err error) (again bool) {
	if f == nil || f.store == nil {
		return false
	}
	f.mu.Lock()
	used := make(map[httpKey]*httpVersion, len(f.used))
	for key, v := range f.used {
		used[key] = v
	}
	f.mu.Unlock()
	if err != nil {
		return f.store.failed(f.id, used, err)
	}
	f.store.deployed(f.id, used)
	return false
}

// failed suspects the pending versions of a render that failed. Where it had
// none, what is under suspicion is not to blame.
func (s *HTTPStore) failed(id uint64, used map[httpKey]*httpVersion, err error) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var suspects []*httpResource
	for key, v := range used {
		r := s.resources[key]
		if r != nil && r.pending == v && r.accepted != nil && !r.trial.suspect {
			suspects = append(suspects, r)
		}
	}
	for _, r := range suspects {
		r.trial = trial{suspect: true, alone: len(suspects) == 1, since: s.renders, why: err}
	}
	if len(suspects) > 0 {
		return true
	}
	for _, r := range s.resources {
		if r.trial.suspect && id > r.trial.since {
			r.trial = trial{}
		}
	}
	return false
}

// deployed accepts the versions of a render, decides about those that it was
// made without, and forgets the URLs that nobody uses any more.
func (s *HTTPStore) deployed(id uint64, used map[httpKey]*httpVersion) {
	now := time.Now()
	s.mu.Lock()
	for key, v := range used {
		if r := s.resources[key]; r != nil {
			s.accept(r, v, now)
		}
	}
	retry := s.judge(id)
	for key, r := range s.resources {
		if r.used < id && r.fetching == nil {
			delete(s.resources, key)
		}
	}
	s.mu.Unlock()
	if retry != "" {
		s.changed(retry)
	}
}

// accept takes the place of an older version. The caller holds s.mu.
func (s *HTTPStore) accept(r *httpResource, v *httpVersion, now time.Time) {
	if r.accepted != nil && v.number <= r.accepted.number {
		return
	}
	r.accepted, r.acceptedAt = v, now
	if r.pending == v {
		r.pending, r.trial = nil, trial{}
	}
	eventbus.Publish(s.Bus, HTTPResourceAccepted{URL: r.display, Hash: v.hash()})
}

// judge rejects suspects that failed on their own, now that a render without
// them did well, and releases one of those that failed together: they are tried
// one at a time. It returns a reason for another render if there is one. The
// caller holds s.mu.
func (s *HTTPStore) judge(id uint64) (reason string) {
	for _, r := range s.sorted() {
		t := r.trial
		switch {
		case !t.suspect || id <= t.since:
		case t.alone:
			eventbus.Publish(s.Bus, HTTPResourceRejected{URL: r.display, Hash: r.pending.hash(), Err: t.why})
			r.pending, r.trial = nil, trial{}
			r.rejected++
		case reason == "":
			r.trial = trial{}
			reason = "the new content of " + r.display + " is tried on its own"
		default:
			r.trial.since = s.renders // decided after that one
		}
	}
	return reason
}
