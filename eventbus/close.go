package eventbus

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Close refuses further events, delivers all events published before, and returns when
// all handlers have returned. Questions fail with [ErrClosed] at once; Close waits for
// the responders that were asked.
//
// If ctx ends first, Close cancels the context of the running handlers and delivers
// nothing more. It returns a [*CloseError] that names the unfinished subscribers and
// responders. Their goroutines end when their functions return; call Close again to
// wait for that. A bus that was never started delivers nothing. A handler or responder
// must not call Close: it would wait for itself.
func (b *Bus) Close(ctx context.Context) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shut()
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.changed.Broadcast()
	})
	defer stop()
	for b.working(ctx.Err() == nil) {
		b.changed.Wait()
	}
	return b.unfinished(context.Cause(ctx))
}

// shut refuses events and questions from now on. The caller holds mu.
func (b *Bus) shut() {
	if b.closed {
		return
	}
	b.closed = true
	b.changed.Broadcast()
	for _, r := range b.responders {
		r.cancel(ErrClosed)
	}
	if b.started {
		return
	}
	for _, s := range b.subs {
		s.closed = true
		s.end()
	}
}

// working reports whether Close must still wait. It always waits for a subscriber that
// has handled everything, because that one ends by itself. It waits for the others only
// with patience. The caller holds mu.
func (b *Bus) working(patience bool) bool {
	return slices.ContainsFunc(b.subs, func(s *Subscription) bool { return !s.ended && (patience || s.pending() == 0) }) ||
		patience && slices.ContainsFunc(b.responders, func(r *Responder) bool { return r.running > 0 })
}

// unfinished stops all running subscribers. It returns the ones that did not finish, as
// an error, or nil. The caller holds mu.
func (b *Bus) unfinished(cause error) error {
	e := &CloseError{Err: cause}
	for _, s := range b.subs {
		s.cancel()
		if !s.ended || !s.closed && s.pending() > 0 {
			e.Subscribers = append(e.Subscribers, s.stats())
		}
	}
	for _, r := range b.responders {
		if r.running > 0 {
			e.Responders = append(e.Responders, r.name)
		}
	}
	if len(e.Subscribers)+len(e.Responders) == 0 {
		return nil
	}
	return e
}

// CloseError names the subscribers and responders that were unfinished when the context
// of [Bus.Close] ended.
type CloseError struct {
	Subscribers []SubscriberStats // had not seen all events, or their handler had not returned
	Responders  []string          // names; a call of theirs had not returned
	Err         error             // why Close stopped waiting; nil if only an earlier Close did
}

func (e *CloseError) Error() string {
	var who []string
	for _, s := range e.Subscribers {
		who = append(who, fmt.Sprintf("subscriber %s (%d pending)", s.Name, s.Pending))
	}
	for _, name := range e.Responders {
		who = append(who, "responder "+name)
	}
	text := "eventbus: close: did not finish: " + strings.Join(who, ", ")
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *CloseError) Unwrap() error { return e.Err }
