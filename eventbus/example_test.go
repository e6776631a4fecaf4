package eventbus_test

import (
	"context"
	"fmt"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

type PodReady struct{ Name string }

type PodGone struct{ Name string }

func Example() {
	bus := eventbus.New(nil)
	eventbus.Publish(bus, PodReady{"haproxy-0"}) // kept until Start

	eventbus.Subscribe(bus, eventbus.Lossless, func(_ context.Context, d eventbus.Delivery[PodReady]) {
		fmt.Println("ready:", d.Event.Name)
	})
	bus.Start()
	eventbus.Publish(bus, PodGone{"haproxy-0"}) // of another type: not for this subscriber
	eventbus.Publish(bus, PodReady{"haproxy-1"})

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := bus.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ready: haproxy-0
	// ready: haproxy-1
}

// A subscription to any sees everything, in the order of the bus.
func ExampleSubscribe_everything() {
	bus := eventbus.New(nil)
	eventbus.Subscribe(bus, eventbus.Lossless, func(_ context.Context, d eventbus.Delivery[any]) {
		fmt.Printf("%d %T\n", d.Seq, d.Event)
	})
	bus.Start()
	eventbus.Publish(bus, PodReady{"haproxy-0"})
	eventbus.Publish(bus, PodGone{"haproxy-0"})
	_ = bus.Close(context.Background())
	// Output:
	// 1 eventbus_test.PodReady
	// 2 eventbus_test.PodGone
}

type Load struct {
	Pod     string
	Percent int
}

// Only the newest value of each pod is of interest. Before Start all events
// wait, so here each pod is delivered once.
func ExampleLatest() {
	bus := eventbus.New(nil)
	byPod := eventbus.Latest(func(l Load) string { return l.Pod })
	eventbus.Subscribe(bus, byPod, func(_ context.Context, d eventbus.Delivery[Load]) {
		fmt.Printf("%s %d%%, replaced %d\n", d.Event.Pod, d.Event.Percent, d.Missed)
	})
	for i := range 3 {
		eventbus.Publish(bus, Load{"haproxy-0", 10 * i})
		eventbus.Publish(bus, Load{"haproxy-1", 5 * i})
	}
	bus.Start()
	_ = bus.Close(context.Background())
	// Output:
	// haproxy-0 20%, replaced 2
	// haproxy-1 10%, replaced 2
}

// An observer that falls behind is told how much it did not see.
func ExampleLossy() {
	bus := eventbus.New(nil)
	eventbus.Subscribe(bus, eventbus.Lossy(2), func(_ context.Context, d eventbus.Delivery[int]) {
		fmt.Println(d.Event, "missed", d.Missed)
	})
	for i := range 10 {
		eventbus.Publish(bus, i)
	}
	bus.Start()
	_ = bus.Close(context.Background())
	// Output:
	// 8 missed 8
	// 9 missed 0
}

func ExampleBus_Stats() {
	bus := eventbus.New(nil)
	eventbus.Subscribe(bus, eventbus.Lossless, func(context.Context, eventbus.Delivery[PodReady]) {})
	eventbus.Publish(bus, PodReady{"haproxy-0"})
	eventbus.Publish(bus, PodReady{"haproxy-1"})

	st := bus.Stats() // nothing is delivered before Start
	s := st.Subscribers[0]
	fmt.Println(st.Published, "published;", s.Event, s.Policy, s.Pending, "pending")
	_ = bus.Close(context.Background())
	// Output:
	// 2 published; eventbus_test.PodReady lossless 2 pending
}

func ExampleRing() {
	history := eventbus.NewRing[string](3)
	for _, e := range []string{"rendered", "validated", "deployed", "rendered"} {
		history.Add(e)
	}
	fmt.Println(history.All())
	fmt.Println(history.Last(2))
	// Output:
	// [validated deployed rendered]
	// [deployed rendered]
}
