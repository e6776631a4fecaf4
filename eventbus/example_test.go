package eventbus_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
)

type PodReady struct{ Name string }

type PodGone struct{ Name string }

func Example() {
	bus := eventbus.New(nil)
	eventbus.Publish(bus, PodReady{"haproxy-0"}) // kept until Start

	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[PodReady]) {
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
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[any]) {
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

func ExampleBus_Stats() {
	bus := eventbus.New(nil)
	eventbus.Subscribe(bus, func(context.Context, eventbus.Delivery[PodReady]) {})
	eventbus.Publish(bus, PodReady{"haproxy-0"})
	eventbus.Publish(bus, PodReady{"haproxy-1"})

	st := bus.Stats() // nothing is delivered before Start
	s := st.Subscribers[0]
	fmt.Println(st.Published, "published;", s.Event, s.Pending, "pending")
	_ = bus.Close(context.Background())
	// Output:
	// 2 published; eventbus_test.PodReady 2 pending
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

	answers, err := eventbus.Ask[Findings](context.Background(), bus, Settings{Workers: 100}, "limits", "templates")
	fmt.Println(answers["limits"])
	fmt.Println(err)
	fmt.Println(errors.Is(err, eventbus.ErrRejected))
	// Output:
	// [more than 64 workers]
	// eventbus: ask eventbus_test.Settings: templates: rejected: haproxy.cfg: line 3: unexpected }
	// true
}

func ExampleAnswer() {
	bus := eventbus.New(nil)
	double := eventbus.Answer(bus, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	answers, err := eventbus.Ask[int](context.Background(), bus, 21)
	fmt.Println(answers["double"], err)

	double.Close()
	_, err = eventbus.Ask[int](context.Background(), bus, 21, "double")
	fmt.Println(err)
	_ = bus.Close(context.Background())
	// Output:
	// 42 <nil>
	// eventbus: ask int: double: no such responder
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
