package eventbus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
)

type candidate struct{ Name string }

type verdict struct{ OK bool }

var errTooLong = errors.New("too long")

// How a responder of TestAsk behaves.
func behave(ctx context.Context, how string) (verdict, error) {
	switch how {
	case "ok":
		return verdict{true}, nil
	case "slow":
		select {
		case <-time.After(time.Minute): // of the bubble: takes no time
			return verdict{true}, nil
		case <-ctx.Done():
			return verdict{}, ctx.Err()
		}
	case "late":
		<-time.After(time.Hour)
		return verdict{true}, nil
	case "reject":
		return verdict{}, errTooLong
	case "panic":
		panic(errTooLong)
	case "exit":
		runtime.Goexit()
	}
	panic("unknown: " + how)
}

func TestAsk(t *testing.T) {
	for _, c := range []struct {
		name       string
		responders string // name=behaviour
		from       string
		timeout    time.Duration
		took       time.Duration
		got        string
		err        string // "" for none
		is         []error
	}{
		{name: "everyone answers", responders: "a=ok b=slow c=ok", took: time.Minute, got: "a b c"},
		{name: "nobody there", err: "no such responder", is: []error{eventbus.ErrAbsent}},
		{name: "absent fails at once", responders: "a=slow", from: "tls a dns",
			err: "dns: no such responder; tls: no such responder", is: []error{eventbus.ErrAbsent}},
		{name: "named twice", responders: "a=ok", from: "a b a b", err: "b: no such responder"},
		{name: "those not named are asked as well", responders: "a=ok b=ok", from: "a", got: "a b"},
		{name: "all failures are collected", responders: "a=reject b=slow c=panic d=exit", took: time.Minute, got: "b",
			err: "a: rejected: too long; c: panicked: too long; d: no answer: the responder ended its goroutine",
			is:  []error{eventbus.ErrRejected, eventbus.ErrPanicked, eventbus.ErrMissing, errTooLong}},
		{name: "time-out", responders: "a=ok b=late c=slow", timeout: time.Second, took: time.Second, got: "a",
			err: "b: no answer: context deadline exceeded; c: no answer: context deadline exceeded",
			is:  []error{eventbus.ErrMissing, context.DeadlineExceeded}},
		{name: "no time at all", responders: "a=ok", timeout: -1, err: "context deadline exceeded", is: []error{context.DeadlineExceeded}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := eventbus.New(nil) // not started
				defer closeBusIn(t, b, 2*time.Hour)
				for _, r := range strings.Fields(c.responders) {
					name, how, _ := strings.Cut(r, "=")
					eventbus.Answer(b, name, func(ctx context.Context, q candidate) (verdict, error) { return behave(ctx, how) })
				}
				ctx := t.Context()
				if c.timeout != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.timeout)
					defer cancel()
				}
				start := time.Now()
				answers, err := eventbus.Ask[verdict](ctx, b, candidate{"x"}, strings.Fields(c.from)...)
				if took := time.Since(start); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if got := strings.Join(slices.Sorted(maps.Keys(answers)), " "); got != c.got {
					t.Errorf("got answers of %q, want %q", got, c.got)
				}
				checkAskError(t, err, c.err, c.is)
			})
		})
	}
}

func checkAskError(t *testing.T, err error, text string, is []error) {
	t.Helper()
	if text == "" {
		require.NoError(t, err)
		return
	}
	var ae *eventbus.AskError
	require.ErrorAs(t, err, &ae)
	require.Equal(t, "eventbus: ask eventbus_test.candidate: "+text, err.Error())
	for _, target := range is {
		require.ErrorIs(t, err, target)
	}
}

func closeBusIn(t *testing.T, b *eventbus.Bus, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	require.NoError(t, b.Close(ctx))
}

// A panic of a responder is logged with its stack, whether or not the asker hears of it.
func TestPanicsOfRespondersAreLogged(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(context.Context, candidate) (verdict, error)
		leaves bool // while it is asked
		err    error
	}{
		"heard": {func(context.Context, candidate) (verdict, error) { panic(errTooLong) }, false, errTooLong},
		"late": {func(ctx context.Context, _ candidate) (verdict, error) {
			<-ctx.Done()
			<-time.After(time.Second)
			panic(errTooLong)
		}, false, eventbus.ErrMissing},
		"left": {func(ctx context.Context, _ candidate) (verdict, error) { <-ctx.Done(); panic(errTooLong) }, true, eventbus.ErrAbsent},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				b := eventbus.New(&eventbus.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				r := eventbus.Answer(b, "a", tt.answer)
				eventbus.Answer(b, "other", func(ctx context.Context, _ candidate) (verdict, error) { return behave(ctx, "ok") })
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if tt.leaves {
					go func() { synctest.Wait(); r.Close() }()
				}
				_, err := eventbus.Ask[verdict](ctx, b, candidate{})
				var failed *eventbus.AnswerError
				require.ErrorAs(t, err, &failed)
				require.Equal(t, "a", failed.Responder)
				require.ErrorIs(t, err, tt.err)
				require.Equal(t, name == "heard", errors.Is(err, eventbus.ErrPanicked))
				closeBus(t, b)
				for _, want := range []string{"responder panicked", "too long", "responder=a", "ask_test.go:"} {
					require.Contains(t, log.String(), want)
				}
			})
		})
	}
}

// Types tell questions apart: what is asked as well as what is answered.
func TestAskIsByType(t *testing.T) {
	b := eventbus.New(nil)
	defer closeBus(t, b)
	eventbus.Answer(b, "a", func(context.Context, candidate) (int, error) { return 1, nil })
	eventbus.Answer(b, "a", func(context.Context, candidate) (string, error) { return "one", nil })
	eventbus.Answer(b, "a", func(context.Context, *candidate) (int, error) { return 2, nil })
	eventbus.Answer(b, "a", func(context.Context, any) (int, error) { return 3, nil })
	ctx := t.Context()
	n, err1 := eventbus.Ask[int](ctx, b, candidate{})
	s, err2 := eventbus.Ask[string](ctx, b, candidate{})
	p, err3 := eventbus.Ask[int](ctx, b, &candidate{})
	a, err4 := eventbus.Ask[int, any](ctx, b, candidate{})
	require.NoError(t, errors.Join(err1, err2, err3, err4))
	if n["a"] != 1 || s["a"] != "one" || p["a"] != 2 || a["a"] != 3 {
		t.Errorf("got %v %v %v %v", n, s, p, a)
	}
	require.ErrorIs(t, errOf(eventbus.Ask[bool](ctx, b, candidate{})), eventbus.ErrAbsent, "an answer nobody gives")
}

func TestAskOnNilBus(t *testing.T) {
	r := eventbus.Answer(nil, "a", func(context.Context, candidate) (verdict, error) { return verdict{}, nil })
	answers, err := eventbus.Ask[verdict](t.Context(), nil, candidate{})
	require.ErrorIs(t, err, eventbus.ErrAbsent)
	require.NotNil(t, answers)
	r.Close()
	r.Close()
}

func TestWrongAnswers(t *testing.T) {
	b := eventbus.New(nil)
	defer closeBus(t, b)
	ok := func(context.Context, candidate) (verdict, error) { return verdict{}, nil }
	first := eventbus.Answer(b, "a", ok)
	for want, use := range map[string]func(){
		"without a function or":                             func() { eventbus.Answer[candidate, verdict](b, "a", nil) },
		"without a function or a name":                      func() { eventbus.Answer(b, "", ok) },
		"two responders named a to eventbus_test.candidate": func() { eventbus.Answer(b, "a", ok) },
	} {
		func() {
			defer func() {
				if msg, _ := recover().(string); !strings.Contains(msg, want) {
					t.Errorf("panic %q, want one about %q", msg, want)
				}
			}()
			use()
		}()
	}
	first.Close()
	second := eventbus.Answer(b, "a", ok)
	first.Close() // is not the second
	require.NoError(t, errOf(eventbus.Ask[verdict](t.Context(), b, candidate{})))
	second.Close()
	require.ErrorIs(t, errOf(eventbus.Ask[verdict](t.Context(), b, candidate{})), eventbus.ErrAbsent, "after it left")
}

// The values of the asker's context reach the responders.
func TestAskContext(t *testing.T) {
	type key struct{}
	b := eventbus.New(nil)
	defer closeBus(t, b)
	eventbus.Answer(b, "a", func(ctx context.Context, q candidate) (verdict, error) {
		return verdict{ctx.Value(key{}) == 1}, nil
	})
	ctx := context.WithValue(t.Context(), key{}, 1)
	answers, err := eventbus.Ask[verdict](ctx, b, candidate{})
	if err != nil || len(answers) != 1 || !answers["a"].OK {
		t.Errorf("got %+v, %v", answers, err)
	}
}

func TestResponderLeavesWhileAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := eventbus.New(nil)
		b.Start()
		release := make(chan struct{})
		var ctxErr error
		r := eventbus.Answer(b, "deaf", func(ctx context.Context, q candidate) (verdict, error) {
			<-release
			ctxErr = context.Cause(ctx)
			return verdict{true}, nil
		})
		go func() {
			synctest.Wait()
			r.Close()
		}()
		_, err := eventbus.Ask[verdict](t.Context(), b, candidate{})
		checkAskError(t, err, "deaf: no such responder", []error{eventbus.ErrAbsent})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var ce *eventbus.CloseError
		if err := b.Close(ctx); !errors.As(err, &ce) || len(ce.Responders) != 1 || ce.Responders[0] != "deaf" ||
			err.Error() != "eventbus: close: did not finish: responder deaf: context deadline exceeded" {
			t.Errorf("Close: %v, want the one who still runs", err)
		}
		close(release)
		closeBus(t, b)
		require.ErrorIs(t, ctxErr, eventbus.ErrAbsent, "cause of its context")
	})
}

// Close of the bus fails questions that wait, and those that a handler asks
// while the bus drains.
func TestCloseFailsQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := eventbus.New(nil)
		b.Start()
		eventbus.Answer(b, "polite", func(ctx context.Context, q candidate) (verdict, error) {
			<-ctx.Done()
			return verdict{}, ctx.Err()
		})
		eventbus.Answer(b, "ready", func(ctx context.Context, q candidate) (verdict, error) { return verdict{true}, nil })
		asked := make(chan error, 2)
		go func() {
			_, err := eventbus.Ask[verdict](context.Background(), b, candidate{})
			asked <- err
		}()
		eventbus.Subscribe(b, func(context.Context, eventbus.Delivery[int]) {
			_, err := eventbus.Ask[verdict](context.Background(), b, candidate{})
			asked <- err
		})
		eventbus.Publish(b, 1)
		synctest.Wait()
		closeBus(t, b)
		for range 2 {
			if err := <-asked; !errors.Is(err, eventbus.ErrClosed) || !errors.Is(err, eventbus.ErrMissing) {
				t.Errorf("got %v, want that the bus is closed", err)
			}
		}
		r := eventbus.Answer(b, "later", func(context.Context, candidate) (verdict, error) { return verdict{}, nil })
		require.ErrorIs(t, errOf(eventbus.Ask[verdict](t.Context(), b, candidate{})), eventbus.ErrClosed, "after Close")
		r.Close()
		closeBus(t, b)
	})
}

// Responders that ask, publish and close themselves lock nothing up.
func TestRespondersUseTheBus(t *testing.T) {
	b := eventbus.New(nil)
	b.Start()
	events := record[string](b)
	eventbus.Answer(b, "leaf", func(_ context.Context, n int) (int, error) { return n * n, nil })
	var self *eventbus.Responder
	self = eventbus.Answer(b, "root", func(ctx context.Context, q candidate) (int, error) {
		eventbus.Publish(b, "asked")
		answers, err := eventbus.Ask[int](ctx, b, 7)
		self.Close()
		return answers["leaf"], err
	})
	answers, err := eventbus.Ask[int](t.Context(), b, candidate{})
	// Either is right: it closed itself before it answered.
	require.False(t, err == nil && answers["root"] != 49, "got %v, %v", answers, err)
	require.False(t, err != nil && !errors.Is(err, eventbus.ErrAbsent), "got %v, %v", answers, err)
	closeBus(t, b)
	require.Equal(t, []string{"asked"}, events(), "published")
}

// Many questions at once, with responders that come and go and a bus that
// closes in between: no question hangs and no goroutine is left.
func TestAskUnderChange(t *testing.T) {
	for range 20 {
		b := eventbus.New(&eventbus.Options{Logger: slog.New(slog.DiscardHandler)})
		b.Start()
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for n := range 50 {
					r := eventbus.Answer(b, fmt.Sprint("r", i), func(ctx context.Context, q int) (int, error) {
						if q%7 == 0 {
							panic(q)
						}
						return q + 1, nil
					})
					if n%2 == 0 {
						runtime.Gosched()
					}
					r.Close()
				}
			})
			wg.Go(func() {
				for n := range 100 {
					answers, err := eventbus.Ask[int](t.Context(), b, n, []string{"r0", "r1"}[:n%3]...)
					for name, got := range answers {
						if got != n+1 {
							t.Errorf("%s answered %d to %d", name, got, n)
						}
					}
					if need := max(1, n%3); err == nil && len(answers) < need {
						t.Errorf("%d of %d answers and no error", len(answers), need)
					}
				}
			})
		}
		wg.Go(func() { closeBus(t, b) })
		wg.Wait()
	}
}
