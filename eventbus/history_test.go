package eventbus_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/hapticsdk/haptic/eventbus"
)

// seqs subscribes and returns the places of what was delivered, and what the
// first delivery said it missed.
func seqs[E any](b *eventbus.Bus, p eventbus.Policy) func() ([]uint64, uint64) {
	var mu sync.Mutex
	var got []uint64
	var missed uint64
	eventbus.Subscribe(b, p, func(_ context.Context, d eventbus.Delivery[E]) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, d.Seq)
		missed += d.Missed
	})
	return func() ([]uint64, uint64) {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(got), missed
	}
}

func TestLateSubscribers(t *testing.T) {
	perEndpoint := eventbus.Latest(func(d deployed) string { return d.Endpoint })
	for _, c := range []struct {
		name    string
		history int
		policy  eventbus.Policy
		any     bool // subscribe to any, else to deployed
		want    []uint64
		missed  uint64
	}{
		// Before it come: 1 deployed a, 2 text, 3 deployed b, 4 deployed a (as an
		// interface), 5 text. After it: 6 deployed c.
		{name: "now", history: eventbus.Unlimited, policy: eventbus.Lossless, want: []uint64{6}},
		{name: "now, said so", history: eventbus.Unlimited, policy: eventbus.Lossless.From(eventbus.Now), want: []uint64{6}},
		{name: "last", policy: eventbus.Lossless.From(eventbus.Last), want: []uint64{4, 6}},
		{name: "last of a long history", history: eventbus.Unlimited, policy: eventbus.Lossless.From(eventbus.Last), want: []uint64{4, 6}},
		{name: "last of each type", policy: eventbus.Lossless.From(eventbus.Last), any: true, want: []uint64{4, 5, 6}},
		{name: "everything", history: eventbus.Unlimited, policy: eventbus.Lossless.From(eventbus.Everything), want: []uint64{1, 3, 4, 6}},
		{name: "everything of all types", history: eventbus.Unlimited, policy: eventbus.Lossless.From(eventbus.Everything), any: true, want: []uint64{1, 2, 3, 4, 5, 6}},
		{name: "more than there is", history: 100, policy: eventbus.Lossless.From(eventbus.Everything), want: []uint64{1, 3, 4, 6}},
		{name: "as much as there is", history: 3, policy: eventbus.Lossless.From(eventbus.Everything), want: []uint64{1, 3, 4, 6}},
		{name: "less than there is", history: 2, policy: eventbus.Lossless.From(eventbus.Everything), want: []uint64{3, 4, 6}, missed: 1},
		{name: "no history", policy: eventbus.Lossless.From(eventbus.Everything), want: []uint64{4, 6}, missed: 2},
		{name: "no history of all types", policy: eventbus.Lossless.From(eventbus.Everything), any: true, want: []uint64{4, 5, 6}, missed: 3},
		{name: "lossy", history: eventbus.Unlimited, policy: eventbus.Lossy(2).From(eventbus.Everything), want: []uint64{3, 4, 6}, missed: 1},
		{name: "last of each key", history: eventbus.Unlimited, policy: perEndpoint.From(eventbus.Everything), want: []uint64{4, 3, 6}, missed: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := eventbus.New(&eventbus.Options{History: c.history})
				eventbus.Publish(b, deployed{"a", 1}) // also what was there before Start
				eventbus.Publish(b, "text")
				b.Start()
				eventbus.Publish(b, deployed{"b", 3})
				eventbus.Publish[located](b, deployed{"a", 4})
				eventbus.Publish(b, "text")
				var got func() ([]uint64, uint64)
				if c.any {
					got = seqs[any](b, c.policy)
				} else {
					got = seqs[deployed](b, c.policy)
				}
				synctest.Wait()
				eventbus.Publish(b, deployed{"c", 6})
				closeBus(t, b)
				seen, missed := got()
				if diff := cmp.Diff(c.want, seen); diff != "" || missed != c.missed {
					t.Errorf("missed %d, want %d; deliveries (-want +got):\n%s", missed, c.missed, diff)
				}
			})
		})
	}
}

// From changes nothing for those who are there at Start, so that the order in
// which components are wired up does not matter.
func TestFromBeforeStart(t *testing.T) {
	b := eventbus.New(nil)
	eventbus.Publish(b, 1)
	eventbus.Publish(b, 2)
	got := seqs[int](b, eventbus.Lossless.From(eventbus.Last))
	b.Start()
	closeBus(t, b)
	if seen, _ := got(); !slices.Equal(seen, []uint64{1, 2}) {
		t.Errorf("got %v, want all", seen)
	}
}

// History and live events meet without a gap and without a duplicate, while
// several publish and several subscribe.
func TestHandOver(t *testing.T) {
	const publishers, each, subscribers = 3, 1500, 12
	b := eventbus.New(&eventbus.Options{History: eventbus.Unlimited})
	b.Start()
	var wg sync.WaitGroup
	for p := range publishers {
		wg.Go(func() {
			for n := range each {
				if n%2 == 0 {
					eventbus.Publish(b, deployed{"a", p})
				} else {
					eventbus.Publish(b, p)
				}
			}
		})
	}
	var everything, last []func() ([]uint64, uint64)
	wg.Go(func() {
		for range subscribers {
			everything = append(everything, seqs[any](b, eventbus.Lossless.From(eventbus.Everything)))
			last = append(last, seqs[any](b, eventbus.Lossy(publishers*each).From(eventbus.Last)))
		}
	})
	wg.Wait()
	closeBus(t, b)
	for i, got := range everything {
		seen, missed := got()
		for j, seq := range seen {
			if seq != uint64(j+1) {
				t.Fatalf("everything, subscriber %d: delivery %d has place %d", i, j, seq)
			}
		}
		if len(seen) != publishers*each || missed != 0 {
			t.Errorf("everything, subscriber %d: %d deliveries, %d missed, want %d and 0", i, len(seen), missed, publishers*each)
		}
	}
	for i, got := range last {
		seen, missed := got()
		// The last of one type lies anywhere before the last of the other; from
		// that on all follow.
		live := seen[min(1, len(seen)):]
		for j, seq := range live {
			if seq != live[0]+uint64(j) {
				t.Fatalf("last, subscriber %d: %d follows %d", i, seq, live[j-1])
			}
		}
		if len(live) > 0 && live[len(live)-1] != publishers*each || missed != 0 || !slices.IsSorted(seen) {
			t.Errorf("last, subscriber %d: %d missed, sorted %v", i, missed, slices.IsSorted(seen))
		}
	}
}

// A late subscriber that hangs over its backlog is stopped like any other.
func TestCloseDuringBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := eventbus.New(&eventbus.Options{History: 500})
		b.Start()
		for i := range 1000 {
			eventbus.Publish(b, i)
		}
		synctest.Wait()
		var got []uint64
		sub := eventbus.Subscribe(b, eventbus.Lossless.From(eventbus.Everything), func(ctx context.Context, d eventbus.Delivery[int]) {
			got = append(got, d.Seq)
			<-ctx.Done()
		})
		synctest.Wait()
		if st := sub.Stats(); st.Pending != 500 || st.Watermark != 500 || st.Missed != 500 {
			t.Errorf("stats: %+v, want 500 pending, watermark 500, 500 missed", st)
		}
		sub.Close()
		<-sub.Done()
		if !slices.Equal(got, []uint64{501}) {
			t.Errorf("delivered %v, want the first of the backlog", got)
		}
		closeBus(t, b)
	})
}
