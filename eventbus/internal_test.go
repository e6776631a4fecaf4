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
		{"subscription closed", func(b *Bus, _ <-chan struct{}) {
			Subscribe(b, Lossless, none).Close()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(nil)
				hang := make(chan struct{})
				c.subscribe(b, hang)
				b.Start()
				b.mu.Lock()
				first := weak.Make(b.tail)
				b.mu.Unlock()
				event := weak.Make(publishEach(b, 1))
				synctest.Wait()
				publishEach(b, 5*chunkSize)
				synctest.Wait()
				runtime.GC()
				runtime.GC()
				if first.Value() != nil {
					t.Error("the first chunk is still there")
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

func publishEach(b *Bus, n int) *[64]byte {
	var last *[64]byte
	for range n {
		last = new([64]byte)
		Publish(b, last)
	}
	return last
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
		first := weak.Make(b.tail)
		publishEach(b, 5*chunkSize)
		synctest.Wait()
		runtime.GC()
		if first.Value() == nil {
			t.Error("the first chunk is gone, though it was not delivered")
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
