package eventbus_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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

// Who comes late may begin with what was published before.
func ExamplePolicy_From() {
	bus := eventbus.New(&eventbus.Options{History: 2})
	bus.Start()
	for _, name := range []string{"haproxy-0", "haproxy-1", "haproxy-2"} {
		eventbus.Publish(bus, PodReady{name})
	}
	last := eventbus.Subscribe(bus, eventbus.Lossless.From(eventbus.Last), func(_ context.Context, d eventbus.Delivery[PodReady]) {
		fmt.Println("last:", d.Event.Name)
	})
	for last.Stats().Delivered == 0 {
		runtime.Gosched()
	}
	eventbus.Subscribe(bus, eventbus.Lossless.From(eventbus.Everything), func(_ context.Context, d eventbus.Delivery[PodReady]) {
		fmt.Println("everything:", d.Event.Name, "missed", d.Missed)
	})
	_ = bus.Close(context.Background())
	// Output:
	// last: haproxy-2
	// everything: haproxy-1 missed 1
	// everything: haproxy-2 missed 0
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

type Settings struct{ Workers int }

type Findings []string

// Everyone who has to say something about settings is asked, at once.
func ExampleAsk() {
	bus := eventbus.New(nil)
	defer func() { _ = bus.Close(context.Background()) }()
	eventbus.Answer(bus, "limits", func(_ context.Context, s Settings) (Findings, error) {
		if s.Workers > 64 {
			return Findings{"more than 64 workers"}, nil
		}
		return nil, nil
	})
	eventbus.Answer(bus, "templates", func(ctx context.Context, s Settings) (Findings, error) {
		return nil, errors.New("haproxy.cfg: line 3: unexpected }")
	})

	answers, err := eventbus.Ask[Findings](context.Background(), bus, Settings{Workers: 100}, &eventbus.AskOptions{
		From: []string{"limits", "templates"},
	})
	fmt.Println(answers.Got["limits"])
	fmt.Println(err)
	fmt.Println(errors.Is(err, eventbus.ErrRejected))
	// Output:
	// [more than 64 workers]
	// eventbus: ask eventbus_test.Settings: 1 of 2 answers: templates: rejected: haproxy.cfg: line 3: unexpected }
	// true
}

// Two of three answers are enough; who still works on one is told to stop.
func ExampleAsk_quorum() {
	bus := eventbus.New(nil)
	defer func() { _ = bus.Close(context.Background()) }()
	for _, name := range []string{"a", "b"} {
		eventbus.Answer(bus, name, func(context.Context, PodReady) (bool, error) { return true, nil })
	}
	hung := eventbus.Answer(bus, "c", func(ctx context.Context, _ PodReady) (bool, error) {
		<-ctx.Done()
		return false, ctx.Err()
	})
	defer hung.Close()

	answers, err := eventbus.Ask[bool](context.Background(), bus, PodReady{"haproxy-0"}, &eventbus.AskOptions{Quorum: 2})
	fmt.Println(answers.Got, err)
	// Output: map[a:true b:true] <nil>
}

func ExampleAnswer() {
	bus := eventbus.New(nil)
	double := eventbus.Answer(bus, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	answers, err := eventbus.Ask[int](context.Background(), bus, 21, nil)
	fmt.Println(answers.Got["double"], err)

	double.Close()
	_, err = eventbus.Ask[int](context.Background(), bus, 21, &eventbus.AskOptions{From: []string{"double"}})
	fmt.Println(err)
	_ = bus.Close(context.Background())
	// Output:
	// 42 <nil>
	// eventbus: ask int: 0 of 1 answers: double: no such responder
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
