// Package eventbus is a typed publish/subscribe bus inside one process. Every
// subscriber gets every event of its type, in one order.
//
// The Go type of an event is its topic. There are no topic names, and an event
// implements no interface.
//
//	bus := eventbus.New(nil)
//	eventbus.Subscribe(bus, func(ctx context.Context, d eventbus.Delivery[Deployed]) {
//		fmt.Println(d.Event.Endpoint)
//	})
//	bus.Start()
//	eventbus.Publish(bus, Deployed{Endpoint: "10.0.0.7:5555"})
//	err := bus.Close(ctx) // delivers the rest; the error names unfinished handlers
//
// A subscription to an interface type receives every event that implements it. A
// subscription to any receives everything, for logs, metrics and histories.
//
// # Order and concurrency
//
// Any goroutine may call [Publish], and a handler may, too. Publish never waits for a
// subscriber. Events that a slow subscriber has not handled stay in memory;
// [SubscriberStats] counts them, and [Options].MaxPending bounds them. All events of a
// bus have one order, whatever their type; [Delivery].Seq is an event's place in it.
// Each subscription has its own goroutine, so its handler never runs twice at once.
// Subscriptions do not wait for each other.
//
// The bus hands events over by assignment. Subscribers share the values that an event
// points to: do not write to them after Publish.
//
// # Start
//
// The bus delivers nothing before [Bus.Start]. It keeps the events published before
// Start and delivers them to every subscriber present at Start. Components may
// therefore subscribe in any order. A later subscriber receives the events published
// after it subscribed. A [Ring] keeps the newest values for later readers.
//
// # Questions
//
// [Ask] puts a question of any type to every responder that called [Answer] for it.
// Each responder runs in its own goroutine, and only the caller gets the answers. An
// absent responder fails at once. A responder that is late, panics or returns an error
// fails with that reason: see [AskError]. Questions need no Start and fail once the bus
// is closed.
package eventbus
