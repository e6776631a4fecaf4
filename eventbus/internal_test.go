package eventbus

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"weak"
)

// Chunks that all cursors have left must be collectable: also those that a
// bounded subscriber has yet to handle while its handler hangs.
func TestChunksAreFreed(t *testing.T) {
	none := func(context.Context, Delivery[*[64]byte]) {}
	for _, c := range []struct {
		name      string
		subscribe func(b *Bus, hang <-chan struct{})
	}{
		{"no subscriber", func(*Bus, <-chan struct{}) {}},
		{"quick", func(b *Bus, _ <-chan struct{}) {
			Subscribe(b, Lossless, none)
			Subscribe(b, Lossy(3), none)
			Subscribe(b, Lossless, func(context.Context, Delivery[string]) {})
		}},
		{"hanging lossy", func(b *Bus, hang <-chan struct{}) {
			Subscribe(b, Lossy(3), func(context.Context, Delivery[*[64]byte]) { <-hang })
		}},
		{"hanging latest", func(b *Bus, hang <-chan struct{}) {
			one := Latest(func(*[64]byte) int { return 1 })
			Subscribe(b, one, func(context.Context, Delivery[*[64]byte]) { <-hang })
		}},
		{"subscription closed, its handle kept", func(b *Bus, hang <-chan struct{}) {
			sub := Subscribe(b, Lossless, none)
			sub.Close()
			go func() { <-hang; sub.Close() }()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(nil)
				hang := make(chan struct{})
				c.subscribe(b, hang)
				b.Start()
				event := weak.Make(publishEach(b, 1))
				synctest.Wait()
				publishEach(b, 5*chunkSize)
				synctest.Wait()
				runtime.GC()
				runtime.GC()
				if n := chunksHeld(b); n > 2 {
					t.Errorf("the bus holds %d chunks", n)
				}
				// A hanging handler holds the event that it was given.
				if event.Value() != nil && c.name != "hanging lossy" && c.name != "hanging latest" {
					t.Error("the first event is still there")
				}
				close(hang)
				if err := b.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func chunksHeld(b *Bus) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 1
	for c := b.head; c != b.tail; c = c.next {
		n++
	}
	return n
}

func publishEach(b *Bus, n int) *[64]byte {
	var last *[64]byte
	for range n {
		last = new([64]byte)
		Publish(b, last)
	}
	return last
}

// Of a rare type, only the last event outlives its chunk, and as many more as the
// history is told to keep.
func TestRareEventsAreFreed(t *testing.T) {
	for _, keep := range []int{0, 1, 3} {
		checkRareEventsAreFreed(t, keep)
	}
}

func checkRareEventsAreFreed(t *testing.T, keep int) {
	b := New(&Options{History: keep})
	b.Start()
	type rare struct{ p *[64]byte }
	var contents []weak.Pointer[[64]byte]
	for range 10 {
		e := rare{new([64]byte)}
		Publish(b, e)
		contents = append(contents, weak.Make(e.p))
	}
	publishEach(b, 2*chunkSize)
	runtime.GC()
	for i, content := range contents {
		if want := i >= 10-max(1, keep); (content.Value() != nil) != want {
			t.Errorf("history of %d: event %d is there: %v, want %v", keep, i, !want, want)
		}
	}
	if st := b.Stats(); st.Kept != 2*uint64(max(1, keep)) {
		t.Errorf("history of %d: keeps %d events of two types", keep, st.Kept)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The sweeper and the subscriber both move events to the queue of a bounded
// subscription. When the sweeper does, between a look into the queue and going
// to sleep, the subscriber must not sleep on them.
func TestNobodySleepsOnAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(nil)
		s := Subscribe(b, Lossy(9), func(context.Context, Delivery[int]) {}).s // no goroutine before Start
		if s.one() {
			t.Fatal("delivered something before anything was published")
		}
		Publish(b, 1)
		s.fill() // as the sweeper does
		awake := make(chan bool, 1)
		go func() { awake <- s.sleep() }()
		synctest.Wait()
		select {
		case more := <-awake:
			if !more || !s.one() {
				t.Error("the event is not delivered")
			}
		default:
			t.Error("went to sleep with an event in the queue")
		}
		if err := b.Close(t.Context()); err != nil { // wakes it where it sleeps
			t.Fatal(err)
		}
	})
}

// A slow lossless subscriber does keep the log: this is what proves that the
// test above can fail.
func TestChunksAreKeptForLossless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(nil)
		hang := make(chan struct{})
		n := 0
		Subscribe(b, Lossless, func(context.Context, Delivery[*[64]byte]) { <-hang; n++ })
		b.Start()
		publishEach(b, 5*chunkSize)
		synctest.Wait()
		if n := chunksHeld(b); n != 5 {
			t.Errorf("the bus holds %d chunks, want 5: they are not delivered", n)
		}
		close(hang)
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n != 5*chunkSize {
			t.Errorf("%d of %d delivered", n, 5*chunkSize)
		}
	})
}
