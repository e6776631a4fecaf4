package observe

import (
	"context"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

// Entry is one event of a [History], in words.
type Entry struct {
	Time           time.Time `json:"time"` // when the history heard of it
	Seq            uint64    `json:"seq"`  // place in the order of the bus
	Level          string    `json:"level"`
	Reconciliation uint64    `json:"reconciliation,omitempty"`
	Endpoint       string    `json:"endpoint,omitempty"`
	Text           string    `json:"text"`
	Missed         uint64    `json:"missed,omitempty"` // events of the bus that were dropped before this one
}

// History keeps the newest remarks of a commentator, for a debug page.
type History struct{ ring *eventbus.Ring[Entry] }

// NewHistory subscribes to bus and keeps the last n remarks; n below 1 is 128.
// It is an observer of the lossy kind: behind by more than 1024 events, it
// drops the oldest of them and says so.
func NewHistory(bus *eventbus.Bus, n int) *History {
	h := &History{ring: eventbus.NewRing[Entry](n)}
	var c commentator
	var missed uint64
	eventbus.Subscribe(bus, eventbus.Lossy(1024), func(_ context.Context, d eventbus.Delivery[any]) {
		missed += d.Missed
		r, ok := c.record(d.Event)
		if !ok {
			return
		}
		e := Entry{Time: time.Now(), Seq: d.Seq, Level: r.level.String(), Text: r.text, Missed: missed}
		missed = 0
		for _, a := range r.attrs {
			switch a.Key {
			case "reconciliation":
				e.Reconciliation = a.Value.Uint64()
			case "endpoint":
				e.Endpoint = a.Value.String()
			}
		}
		h.ring.Add(e)
	})
	return h
}

// All returns what is kept, the oldest first.
func (h *History) All() []Entry { return h.ring.All() }

// Last returns the newest n, the oldest of them first.
func (h *History) Last(n int) []Entry { return h.ring.Last(n) }
