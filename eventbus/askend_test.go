package eventbus_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

// several is an error that cannot be compared with ==.
type several []error

func (s several) Error() string { return errors.Join(s...).Error() }

// Responders that return the end of their context race with the asker, who sees
// that end too, and with each other. The error is the same, whoever comes first.
func TestUnheardAnswersReadTheSame(t *testing.T) {
	stop := errors.New("stop")
	closeBus := func(b *eventbus.Bus, _ []*eventbus.Responder, _ context.CancelCauseFunc) {
		_ = b.Close(context.Background())
	}
	leave := func(_ *eventbus.Bus, rs []*eventbus.Responder, _ context.CancelCauseFunc) {
		for _, r := range rs {
			r.Close()
		}
	}
	giveUp := func(cause error) func(*eventbus.Bus, []*eventbus.Responder, context.CancelCauseFunc) {
		return func(_ *eventbus.Bus, _ []*eventbus.Responder, cancel context.CancelCauseFunc) { cancel(cause) }
	}
	for _, tc := range []struct {
		name       string
		responders string
		end        func(*eventbus.Bus, []*eventbus.Responder, context.CancelCauseFunc)
		want       string
		is         []error // the last is the cause that the responders see
	}{
		{"the bus closes", "a", closeBus, "a: no answer: the bus is closed", []error{eventbus.ErrMissing, eventbus.ErrClosed}},
		{"the responder leaves", "a", leave, "a: no such responder", []error{eventbus.ErrAbsent}},
		{"the asker gives up", "a", giveUp(stop), "a: no answer: stop", []error{eventbus.ErrMissing, stop}},
		{"the asker gives up for several reasons", "a", giveUp(several{stop}), "a: no answer: stop", nil},
		{"the bus closes, and it has its own words", "own words", closeBus, "own words: no answer: the bus is closed", []error{eventbus.ErrClosed}},
		{"the responder leaves with its own words", "own words", leave, "own words: no such responder", []error{eventbus.ErrAbsent}},
		{"the bus closes on several", "a, b, c", closeBus,
			"a: no answer: the bus is closed; b: no answer: the bus is closed; c: no answer: the bus is closed", []error{eventbus.ErrClosed}},
		{"the asker of several gives up", "a, b, c", giveUp(stop),
			"a: no answer: stop; b: no answer: stop; c: no answer: stop", []error{eventbus.ErrMissing, stop}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range 150 {
				b := eventbus.New(nil)
				b.Start()
				names := strings.Split(tc.responders, ", ")
				asked, causes := make(chan struct{}, len(names)), make(chan error, len(names))
				var responders []*eventbus.Responder
				for _, name := range names {
					responders = append(responders, eventbus.Answer(b, name, func(ctx context.Context, q candidate) (verdict, error) {
						asked <- struct{}{}
						<-ctx.Done()
						causes <- context.Cause(ctx)
						if name == "own words" {
							return verdict{}, errors.New("so be it")
						}
						return verdict{}, ctx.Err()
					}))
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for range names {
						<-asked
					}
					tc.end(b, responders, cancel)
				}()
				_, err := eventbus.Ask[verdict](ctx, b, candidate{})
				checkAskError(t, err, tc.want, tc.is)
				<-ended
				cancel(nil)
				closeBusIn(t, b, time.Minute)
				for range names {
					if cause := <-causes; len(tc.is) > 0 && !errors.Is(cause, tc.is[len(tc.is)-1]) {
						t.Fatalf("a responder was told %v", cause)
					}
				}
			}
		})
	}
}
