package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
)

// due is what Run finds when an interval is over.
func due(s *Store) []*resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*resource
	for _, r := range s.resources {
		r.next = time.Time{}
		all = append(all, r)
	}
	return all
}

// TestSettle is the life of a content, step by step.
func TestSettle(t *testing.T) {
	bad := errors.New("not valid")
	next := func(s *Store) { // what Run does when the interval is over
		for _, r := range due(s) {
			_, _ = s.refresh(t.Context(), r)
		}
	}
	setup := func() (*page, *Store) {
		p := &page{content: "one"}
		s := &Store{Client: &http.Client{Transport: &wire{answer: p.answer}}}
		f, content := fetch(t, s, "http://a.test/")
		require.Equal(t, "one", content)
		s.Settle(f, nil)
		return p, s
	}
	t.Run("promoted when deployed", func(t *testing.T) {
		p, s := setup()
		p.set("two")
		next(s)
		f, content := fetch(t, s, "http://a.test/")
		require.Equal(t, "two", content)
		require.True(t, s.Resources()[0].Pending)
		s.Settle(f, nil)
		require.False(t, s.Resources()[0].Pending)
	})
	t.Run("one render, one version", func(t *testing.T) {
		p, s := setup()
		f, _ := fetch(t, s, "http://a.test/")
		p.set("two")
		next(s)
		content, err := f.fetch("http://a.test/", nil)
		require.NoError(t, err)
		require.Equal(t, "one", content)
		s.Settle(f, nil) // it did not use the new one
		require.True(t, s.Resources()[0].Pending)
	})
	t.Run("rejected, and tried again", func(t *testing.T) {
		p, s := setup()
		p.set("two")
		next(s)
		f, _ := fetch(t, s, "http://a.test/")
		require.True(t, s.Settle(f, bad))
		g, content := fetch(t, s, "http://a.test/")
		require.Equal(t, "one", content)
		require.False(t, s.Settle(g, nil))
		require.Equal(t, 1, s.Resources()[0].Rejected)
		next(s) // the same content again: another fault may have been the reason
		h, content := fetch(t, s, "http://a.test/")
		require.Equal(t, "two", content)
		require.True(t, s.Settle(h, bad))
		require.Equal(t, 1, s.Resources()[0].Rejected, "counted once")
		next(s)
		i, content := fetch(t, s, "http://a.test/")
		require.Equal(t, "two", content)
		s.Settle(i, nil)
		require.False(t, s.Resources()[0].Pending)
	})
	t.Run("rejected, and taken back", func(t *testing.T) {
		p, s := setup()
		var told []any
		s.Bus = eventbus.New(nil)
		eventbus.Subscribe(s.Bus, func(_ context.Context, d eventbus.Delivery[any]) { told = append(told, d.Event) })
		p.set("two")
		next(s)
		f, _ := fetch(t, s, "http://a.test/")
		s.Settle(f, bad)
		require.Equal(t, "not valid", s.Resources()[0].Refused)
		p.set("one")
		next(s)
		next(s)
		require.Empty(t, s.Resources()[0].Refused)
		s.Bus.Start()
		require.NoError(t, s.Bus.Close(t.Context()))
		require.Len(t, told, 3)
		require.Equal(t, Withdrawn{URL: "http://a.test/"}, told[2])
	})
	t.Run("all of one render are rejected", func(t *testing.T) {
		p, s := setup()
		f, _ := fetch(t, s, "http://a.test/")
		_, err := f.fetch("http://b.test/", nil)
		require.NoError(t, err)
		s.Settle(f, nil)
		p.set("two")
		next(s)
		f, _ = fetch(t, s, "http://a.test/")
		_, err = f.fetch("http://b.test/", nil)
		require.NoError(t, err)
		require.True(t, s.Settle(f, bad))
		for _, url := range []string{"http://a.test/", "http://b.test/"} {
			_, content := fetch(t, s, url)
			require.Equal(t, "one", content)
		}
	})
	t.Run("no rejection without a pending content", func(t *testing.T) {
		_, s := setup()
		f, _ := fetch(t, s, "http://a.test/")
		require.False(t, s.Settle(f, bad))
	})
	t.Run("revision", func(t *testing.T) {
		p, s := setup()
		var key, revision any
		_, err := s.Begin(t.Context(), func(k, r any) { key, revision = k, r }).fetch("http://a.test/", nil)
		require.NoError(t, err)
		require.Equal(t, revision, s.Revision(s.Begin(t.Context(), nil), key))
		p.set("two")
		next(s)
		f := s.Begin(t.Context(), nil)
		require.NotEqual(t, revision, s.Revision(f, key))
		s.Settle(f, nil)
		require.False(t, s.Resources()[0].Pending, "the render used it")
		require.Nil(t, s.Revision(s.Begin(t.Context(), nil), 7))
	})
	t.Run("the first has nothing to fall back to", func(t *testing.T) {
		s := &Store{Client: &http.Client{Transport: &wire{answer: (&page{content: "x"}).answer}}}
		f, _ := fetch(t, s, "http://a.test/")
		require.False(t, s.Settle(f, bad))
		_, content := fetch(t, s, "http://a.test/")
		require.Equal(t, "x", content)
	})
	t.Run("taken back by the server", func(t *testing.T) {
		p, s := setup()
		p.set("two")
		next(s)
		p.set("one")
		next(s)
		_, content := fetch(t, s, "http://a.test/")
		require.Equal(t, "one", content)
		require.False(t, s.Resources()[0].Pending)
	})
	t.Run("an older render that is deployed late", func(t *testing.T) {
		p, s := setup()
		old, _ := fetch(t, s, "http://a.test/")
		p.set("two")
		next(s)
		f, _ := fetch(t, s, "http://a.test/")
		s.Settle(f, nil)
		s.Settle(old, nil)
		_, content := fetch(t, s, "http://a.test/")
		require.Equal(t, "two", content)
	})
	t.Run("unused URLs are forgotten", func(t *testing.T) {
		_, s := setup()
		f, _ := fetch(t, s, "http://b.test/")
		require.Len(t, s.Resources(), 2)
		s.Settle(f, errors.New("no")) // what is not deployed says nothing
		require.Len(t, s.Resources(), 2)
		g, _ := fetch(t, s, "http://b.test/")
		s.Settle(g, nil)
		require.Len(t, s.Resources(), 1)
	})
	t.Run("bounded", func(t *testing.T) {
		_, s := setup()
		s.MaxURLs = 1
		_, err := s.Begin(t.Context(), nil).fetch("http://b.test/", nil)
		require.ErrorContains(t, err, "1 URLs are held already")
	})
}

// TestSettleApart: of several new contents that are rejected together one is
// bad. The others come through, and the bad one never.
func TestSettleApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages, urls := map[string]*page{}, []string{"http://a.test/", "http://b.test/", "http://c.test/"}
		for _, url := range urls {
			pages[url] = &page{content: "old"}
		}
		w := &wire{answer: func(n int, r *http.Request) (*http.Response, error) { return pages[r.URL.String()].answer(n, r) }}
		changes := make(chan string, 100)
		s := &Store{Client: &http.Client{Transport: w}, OnChange: func(reason string) { changes <- reason }}
		deployed := map[string]string{}
		render := func() error { // as the loop does it
			f, made := s.Begin(t.Context(), nil), map[string]string{}
			for _, url := range urls {
				content, err := f.fetch(url, nil)
				require.NoError(t, err)
				if content == "bad" {
					failed := errors.New("not valid")
					require.True(t, s.Settle(f, failed))
					return failed
				}
				made[url] = content
			}
			deployed = made
			s.Settle(f, nil)
			return nil
		}
		require.NoError(t, render())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		pages[urls[0]].set("new")
		pages[urls[1]].set("bad")
		pages[urls[2]].set("new")
		for deadline := time.Now().Add(time.Hour); time.Now().Before(deadline); {
			synctest.Wait()
			for ; len(changes) > 0; <-changes {
				for range 2 {
					if render() == nil {
						break
					}
				}
			}
			time.Sleep(time.Second)
		}
		cancel()
		require.NoError(t, <-done)
		require.Equal(t, map[string]string{urls[0]: "new", urls[1]: "old", urls[2]: "new"}, deployed)
		require.LessOrEqual(t, w.count(), 3*61+10, "no URL is asked more often than its interval")
	})
}

func TestConcurrently(t *testing.T) {
	var n atomic.Int64
	w := &wire{answer: func(int, *http.Request) (*http.Response, error) {
		return response(200, fmt.Sprint(n.Add(1))), nil
	}}
	s := &Store{Client: &http.Client{Transport: w}, Interval: time.Second, OnChange: func(string) {}}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx) })
	var renders sync.WaitGroup
	for i := range 8 {
		renders.Go(func() {
			for k := range 100 {
				f := s.Begin(t.Context(), nil)
				url := fmt.Sprintf("http://h%d.test/", (i+k)%5)
				a, err := f.fetch(url, nil)
				b, _ := f.fetch(url, nil)
				if err != nil || a != b {
					t.Errorf("%q, %q, %v", a, b, err)
				}
				var failed error
				if k%3 == 0 {
					failed = errors.New("no")
				}
				s.Settle(f, failed)
				for _, r := range due(s) {
					_, _ = s.refresh(t.Context(), r)
				}
				s.Resources()
			}
		})
	}
	renders.Wait()
	cancel()
	wg.Wait()
}
