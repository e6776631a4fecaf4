package eventbus

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
)

// hidden returns how many events subscribers cannot see without the lock.
func hidden(b *Bus) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count - b.published.Load()
}

// collector is a lossless subscriber whose first call returns when it is told to.
type collector struct {
	sub  *Subscription
	hang chan struct{}
	got  []int
}

func collect(b *Bus) *collector {
	c := &collector{hang: make(chan struct{})}
	c.sub = Subscribe(b, Lossless, func(_ context.Context, d Delivery[int]) {
		<-c.hang
		c.got = append(c.got, d.Event)
	})
	return c
}

func publishUpTo(b *Bus, n int) (all []int) {
	for i := range n {
		Publish(b, i)
		all = append(all, i)
	}
	return all
}

// The end of a burst is not revealed to subscribers that are busy with its
// beginning. They get it all the same, at every length of the burst.
func TestEndOfABurst(t *testing.T) {
	for n := 1; n <= 2*stride+1; n++ {
		synctest.Test(t, func(t *testing.T) {
			b := New(nil)
			c := collect(b)
			b.Start()
			synctest.Wait() // it sleeps
			want := publishUpTo(b, 1)
			synctest.Wait() // it is busy
			for i := 1; i < n; i++ {
				Publish(b, i)
				want = append(want, i)
			}
			if n > 1 && n%stride != 0 && hidden(b) == 0 {
				t.Errorf("%d events: nothing is hidden", n)
			}
			if st := c.sub.Stats(); st.Pending != uint64(n) || st.Watermark != uint64(n) || b.Stats().Published != uint64(n) {
				t.Errorf("figures do not count what is hidden: %+v", st)
			}
			close(c.hang)
			synctest.Wait()
			if !slices.Equal(c.got, want) {
				t.Errorf("%d events: got %v", n, c.got)
			}
			if err := b.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Close delivers what is hidden, and Start what was published before it.
func TestHiddenAtStartAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(nil)
		c := collect(b)
		want := publishUpTo(b, stride+3)
		if hidden(b) != 3 {
			t.Errorf("%d hidden before Start, want 3", hidden(b))
		}
		b.Start()
		synctest.Wait()
		for i := range 5 {
			Publish(b, i)
			want = append(want, i)
		}
		if hidden(b) == 0 {
			t.Error("nothing is hidden before Close")
		}
		close(c.hang)
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.got, want) {
			t.Errorf("got %v, want %v", c.got, want)
		}
	})
}

// A bounded subscription sees all that was published before Start at once.
func TestHiddenBeforeABoundedSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(nil)
		publishUpTo(b, stride+3)
		var got []int
		Subscribe(b, Lossy(2), func(_ context.Context, d Delivery[int]) { got = append(got, d.Event) })
		b.Start()
		synctest.Wait()
		if want := []int{stride + 1, stride + 2}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// Who comes in the middle of a burst begins behind it, and with a bounded policy
// on the bus nothing is hidden any more: what waits decides what is dropped.
func TestNothingIsHiddenFromBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(nil)
		c := collect(b)
		b.Start()
		publishUpTo(b, 3)
		synctest.Wait()
		publishUpTo(b, 3)
		var late []int
		hang := make(chan struct{})
		sub := Subscribe(b, Lossy(2), func(_ context.Context, d Delivery[int]) {
			<-hang
			late = append(late, d.Event)
		})
		Publish(b, 100)
		synctest.Wait() // it has 100
		for i := 101; i < 110; i++ {
			if Publish(b, i); hidden(b) != 0 {
				t.Errorf("%d: hidden from a bounded subscription", i)
			}
		}
		close(hang)
		synctest.Wait()
		if want := []int{100, 108, 109}; !slices.Equal(late, want) {
			t.Errorf("lossy(2) got %v, want %v", late, want)
		}
		sub.Close()
		synctest.Wait()
		publishUpTo(b, 3)
		if hidden(b) == 0 {
			t.Error("all is revealed after the last bounded subscription has left")
		}
		close(c.hang)
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(c.got) != 3+3+10+3 {
			t.Errorf("lossless got %d events: %v", len(c.got), c.got)
		}
	})
}

// Two handlers answer each other's events: one that slept, or went on, without
// having seen the last event would end the game.
func TestNoWakeIsLost(t *testing.T) {
	type ping int
	type pong int
	const rounds = 5_000
	b := New(nil)
	over := make(chan struct{})
	Subscribe(b, Lossless, func(_ context.Context, d Delivery[ping]) { Publish(b, pong(d.Event)) })
	Subscribe(b, Lossless, func(_ context.Context, d Delivery[pong]) {
		if d.Event == rounds {
			close(over)
			return
		}
		Publish(b, ping(d.Event+1))
	})
	b.Start()
	Publish(b, ping(1))
	<-over
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := b.Stats(); st.Published != 2*rounds {
		t.Errorf("%d published, want %d", st.Published, 2*rounds)
	}
}
