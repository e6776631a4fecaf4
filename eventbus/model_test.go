package eventbus_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/eventbus"
)

// FuzzModel runs operations against a bus and against a model that a reader
// can check, and compares all deliveries after each operation. Handlers return
// when the test lets them, so every mix of quick, slow and hanging subscribers
// comes up.
func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 2, 3, 10, 11, 14, 30, 12, 13, 35, 36, 37, 35, 36, 37})
	f.Add([]byte{0, 2, 3, 30, 10, 11, 10, 60, 11, 0, 35, 36, 37, 36, 37, 37, 50, 12, 60})
	f.Add([]byte{30, 3, 10, 60, 60, 35, 35, 35, 35, 2, 60, 60, 36, 36, 36, 51, 10})
	f.Add([]byte{10, 60, 0, 50, 3, 2, 60, 52, 30, 36, 36, 10})
	f.Add([]byte{30, 10, 11, 60, 12, 14, 64, 68, 72, 76, 80, 84, 35, 36, 37, 38, 39, 40, 60, 35, 36})
	f.Add([]byte{1, 30, 10, 11, 12, 13, 10, 14, 64, 68, 72, 35, 36, 37, 35, 36, 37})
	f.Add([]byte{255, 30, 10, 60, 60, 68, 69, 70, 71, 60, 35, 36, 37, 35, 36, 37})
	f.Fuzz(checkModel)
}

var modelSeeds = flag.Int("model.seeds", 300, "how many random sequences of operations TestModel runs")

// TestModel is FuzzModel with operations at random. To see one of them again,
// say -run 'TestModel/seed=N$'.
func TestModel(t *testing.T) {
	for seed := range *modelSeeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 6))
			ops := make([]byte, 10+r.IntN(50))
			for i := range ops {
				ops[i] = byte(r.IntN(65))
			}
			ops[r.IntN(10)] = 30 // mostly, the bus is started early
			checkModel(t, ops)
		})
	}
}

func checkModel(t *testing.T, ops []byte) {
	if len(ops) > 60 {
		ops = ops[:60]
	}
	synctest.Test(t, func(t *testing.T) {
		m := &model{t: t, bus: eventbus.New(nil)}
		defer m.release() // lets the bubble end where the test fails
		for i, op := range ops {
			what := m.apply(op)
			synctest.Wait()
			for j, s := range m.subs {
				if diff := cmp.Diff(s.want, s.got); diff != "" {
					t.Fatalf("operation %d (%s): subscriber %d (-model +bus):\n%s", i, what, j, diff)
				}
			}
		}
		m.finish()
	})
}

type modelEvent struct{ Key, N int }

type modelDelivery = eventbus.Delivery[modelEvent]

type model struct {
	t       *testing.T
	bus     *eventbus.Bus
	log     []modelEvent // Key below 0 is an event of another type
	started bool
	subs    []*modelSub
}

type modelSub struct {
	sub  *eventbus.Subscription
	step chan struct{} // lets the handler return
	once sync.Once     // closes step
	got  []modelDelivery

	busy, closed bool
	queue        []modelDelivery
	want         []modelDelivery
}

// apply performs one operation on both and says which one it was.
func (m *model) apply(op byte) string {
	switch {
	case op < 10:
		m.subscribe()
		return "subscribe"
	case op < 30:
		m.publish(int(op) % 5)
		return "publish"
	case op < 35:
		m.start()
		return "start"
	case op < 50:
		m.step(int(op))
		return "step"
	case op < 60:
		m.close(int(op))
		return "close subscription"
	default:
		for i := range 150 { // more than the log keeps of handled ones
			m.publish(i % 7)
		}
		return "burst"
	}
}

func (m *model) subscribe() {
	if len(m.subs) == 6 {
		return
	}
	s := &modelSub{step: make(chan struct{})}
	s.sub = eventbus.Subscribe(m.bus, func(_ context.Context, d modelDelivery) {
		s.got = append(s.got, d)
		<-s.step
	})
	m.subs = append(m.subs, s)
	if !m.started {
		for i, e := range m.log {
			s.offer(e, uint64(i+1))
		}
	}
}

func (m *model) publish(key int) {
	seq := uint64(len(m.log) + 1)
	e := modelEvent{Key: key, N: int(seq)}
	if key == 4 {
		e.Key = -1
		eventbus.Publish(m.bus, fmt.Sprint(seq))
	} else {
		eventbus.Publish(m.bus, e)
	}
	m.log = append(m.log, e)
	for _, s := range m.subs {
		s.offer(e, seq)
		if m.started && !s.busy {
			// An idle handler takes an event as soon as there is one; let it, so
			// that the model need not know which of a burst it got hold of.
			synctest.Wait()
			s.take()
		}
	}
}

func (m *model) start() {
	m.bus.Start()
	m.started = true
	for _, s := range m.subs {
		s.take()
	}
}

func (m *model) step(n int) {
	if len(m.subs) == 0 {
		return
	}
	if s := m.subs[n%len(m.subs)]; s.busy {
		s.step <- struct{}{}
		s.busy = false
		s.take()
	}
}

func (m *model) close(n int) {
	if len(m.subs) == 0 {
		return
	}
	s := m.subs[n%len(m.subs)]
	s.sub.Close()
	s.closed, s.queue = true, nil
}

func (s *modelSub) offer(e modelEvent, seq uint64) {
	if s.closed || e.Key < 0 {
		return
	}
	s.queue = append(s.queue, modelDelivery{Event: e, Seq: seq})
}

func (s *modelSub) take() {
	if s.busy || s.closed || len(s.queue) == 0 {
		return
	}
	d := s.queue[0]
	s.queue = s.queue[1:]
	s.busy = true
	s.want = append(s.want, d)
}

// release lets all handlers return from now on.
func (m *model) release() {
	for _, s := range m.subs {
		s.once.Do(func() { close(s.step) })
	}
	if m.t.Failed() {
		_ = m.bus.Close(context.Background())
	}
}

// finish closes the bus: all that waits is delivered, where it was started.
func (m *model) finish() {
	m.release()
	for _, s := range m.subs {
		if m.started {
			s.busy = false
			for s.take(); s.busy; s.take() {
				s.busy = false
			}
		}
	}
	require.NoError(m.t, m.bus.Close(m.t.Context()))
	for j, s := range m.subs {
		if diff := cmp.Diff(s.want, s.got); diff != "" {
			m.t.Fatalf("at the end: subscriber %d (-model +bus):\n%s", j, diff)
		}
		if !s.closed && m.started {
			if st := s.sub.Stats(); st.Pending != 0 || st.Delivered != uint64(len(s.want)) {
				m.t.Fatalf("at the end: subscriber %d: %+v, want %d delivered and none pending", j, st, len(s.want))
			}
		}
	}
}
