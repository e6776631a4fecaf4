package reconcile

import (
	"context"
	"sync"
	"time"
)

// Run looks for new versions of all URLs that renders use, each at its interval
// and a few at a time, until ctx ends; it returns nil when all that it started
// has ended. After a failure it looks sooner: in 1 s, doubling to the interval.
func (s *HTTPStore) Run(ctx context.Context) error {
	s.init()
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, maxHTTPAtOnce)
	for ctx.Err() == nil {
		due, next := s.due(time.Now())
		for _, r := range due {
			wg.Go(func() {
				select {
				case slots <- struct{}{}:
					defer func() { <-slots }()
					if s.refresh(ctx, r) {
						s.changed("new content of " + r.display)
					}
				case <-ctx.Done():
					s.abandon(r)
				}
			})
		}
		s.wait(ctx, next)
	}
	return nil
}

func (s *HTTPStore) wait(ctx context.Context, next time.Time) {
	var timer <-chan time.Time
	if !next.IsZero() {
		t := time.NewTimer(time.Until(next))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
	case <-s.wake:
	case <-timer:
	}
}

// due marks what is to be fetched now and says when the next is due; zero:
// nothing is known yet, or all are being fetched.
func (s *HTTPStore) due(now time.Time) (due []*httpResource, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.sorted() {
		switch {
		case r.fetching != nil || r.next.IsZero(): // refresh wakes Run at its end
		case !now.Before(r.next):
			r.fetching = make(chan struct{})
			due = append(due, r)
		case next.IsZero() || r.next.Before(next):
			next = r.next
		}
	}
	return due, next
}

// abandon undoes the mark of due.
func (s *HTTPStore) abandon(r *httpResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(r.fetching)
	r.fetching = nil
}
