package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHTTPVersions is the life of a version, step by step.
func TestHTTPVersions(t *testing.T) {
	bad := errors.New("not valid")
	next := func(s *HTTPStore) { // what Run does when the interval is over
		due, _ := s.due(time.Now().Add(time.Hour))
		for _, r := range due {
			s.refresh(t.Context(), r)
		}
	}
	setup := func() (*page, *HTTPStore) {
		p := &page{content: "one"}
		s := &HTTPStore{Client: &http.Client{Transport: &wire{answer: p.answer}}}
		f, content := fetch(t, s, "http://a.test/")
		require.Equal(t, "one", content)
		f.Settle(nil)
		return p, s
	}
	t.Run("promoted when deployed", func(t *testing.T) {
		p, s := setup()
		p.set("two")
		next(s)
		f, content := fetch(t, s, "http://a.test/")
		require.Equal(t, "two", content)
		require.True(t, s.Resources()[0].Pending)
		f.Settle(nil)
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
		f.Settle(nil) // it did not use the new one
		require.True(t, s.Resources()[0].Pending)
	})
	t.Run("rejected when only it fails", func(t *testing.T) {
		p, s := setup()
		p.set("two")
		next(s)
		f, _ := fetch(t, s, "http://a.test/")
		require.True(t, f.Settle(bad))
		require.True(t, s.Resources()[0].Suspect)
		g, content := fetch(t, s, "http://a.test/")
		require.Equal(t, "one", content)
		g.Settle(nil)
		require.Equal(t, 1, s.Resources()[0].Rejected)
		next(s) // the same content again
		_, content = fetch(t, s, "http://a.test/")
		require.Equal(t, "one", content, "it is not tried again")
		p.set("three")
		next(s)
		_, content = fetch(t, s, "http://a.test/")
		require.Equal(t, "three", content)
	})
	t.Run("not to blame for what fails without it", func(t *testing.T) {
		p, s := setup()
		p.set("two")
		next(s)
		f, _ := fetch(t, s, "http://a.test/")
		require.True(t, f.Settle(bad))
		g, _ := fetch(t, s, "http://a.test/")
		require.False(t, g.Settle(bad))
		h, content := fetch(t, s, "http://a.test/")
		require.Equal(t, "two", content)
		h.Settle(nil)
		require.False(t, s.Resources()[0].Pending)
	})
	t.Run("the first has nothing to fall back to", func(t *testing.T) {
		s := &HTTPStore{Client: &http.Client{Transport: &wire{answer: (&page{content: "x"}).answer}}}
		f, _ := fetch(t, s, "http://a.test/")
		require.False(t, f.Settle(bad))
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
		f.Settle(nil)
		old.Settle(nil)
		_, content := fetch(t, s, "http://a.test/")
		require.Equal(t, "two", content)
	})
	t.Run("unused URLs are forgotten", func(t *testing.T) {
		_, s := setup()
		f, _ := fetch(t, s, "http://b.test/")
		require.Len(t, s.Resources(), 2)
		f.Settle(errors.New("no")) // what is not deployed says nothing
		require.Len(t, s.Resources(), 2)
		g, _ := fetch(t, s, "http://b.test/")
		g.Settle(nil)
		require.Len(t, s.Resources(), 1)
	})
	t.Run("bounded", func(t *testing.T) {
		_, s := setup()
		s.MaxURLs = 1
		_, err := s.Begin(t.Context()).fetch("http://b.test/", nil)
		require.ErrorContains(t, err, "1 URLs are held already")
		for range httpUnusedRenders {
			s.Begin(t.Context())
		}
		_, err = s.Begin(t.Context()).fetch("http://b.test/", nil)
		require.NoError(t, err, "what no render has used for long gives way")
	})
}

// TestHTTPSuspectsTogether: one of several new contents is bad; the others are
// accepted, whatever their order.
func TestHTTPSuspectsTogether(t *testing.T) {
	for bad := range 4 {
		pages := map[string]*page{}
		w := &wire{answer: func(n int, r *http.Request) (*http.Response, error) { return pages[r.URL.Host].answer(n, r) }}
		triggered := 0
		s := &HTTPStore{Client: &http.Client{Transport: w}, OnChange: func(string) { triggered++ }}
		var hosts []string
		for i := range 4 {
			host := fmt.Sprintf("h%d.test", i)
			hosts = append(hosts, host)
			pages[host] = &page{content: "old"}
		}
		render := func() (valid bool, all string) { // as the loop does it
			f := s.Begin(t.Context())
			for _, host := range hosts {
				content, err := f.fetch("http://"+host+"/", nil)
				require.NoError(t, err)
				all += content + " "
			}
			if strings.Contains(all, "bad") {
				if f.Settle(errors.New("not valid")) {
					triggered++ // the loop renders at once
				}
				return false, all
			}
			f.Settle(nil)
			return true, all
		}
		valid, _ := render()
		require.True(t, valid)
		for i, host := range hosts {
			pages[host].set("new")
			if i == bad {
				pages[host].set("bad")
			}
		}
		due, _ := s.due(time.Now().Add(time.Hour))
		for _, r := range due {
			s.refresh(t.Context(), r)
		}
		renders, all := 0, ""
		for triggered = 1; triggered > 0; renders++ {
			triggered--
			_, all = render()
			require.Less(t, renders, 20)
		}
		want := []string{"new", "new", "new", "new"}
		want[bad] = "old"
		require.Equal(t, strings.Join(want, " ")+" ", all)
		for _, r := range s.Resources() {
			require.False(t, r.Pending || r.Suspect, "%+v", r)
		}
	}
}

func TestHTTPConcurrently(t *testing.T) {
	var n atomic.Int64
	w := &wire{answer: func(int, *http.Request) (*http.Response, error) {
		return response(200, fmt.Sprint(n.Add(1))), nil
	}}
	s := &HTTPStore{Client: &http.Client{Transport: w}, Interval: time.Second, OnChange: func(string) {}}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx) })
	var renders sync.WaitGroup
	for i := range 8 {
		renders.Go(func() {
			for k := range 100 {
				f := s.Begin(t.Context())
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
				f.Settle(failed)
				due, _ := s.due(time.Now().Add(time.Hour))
				for _, r := range due {
					s.refresh(t.Context(), r)
				}
				s.Resources()
			}
		})
	}
	renders.Wait()
	cancel()
	wg.Wait()
}
