// Package eventbus is a typed, in-process publish/subscribe bus: every
// subscriber gets every event of its type, in one order.
//
// The Go type of an event is its topic: there are no names to spell and no
// event interface to implement.
//
//	bus := eventbus.New(nil)
//	eventbus.Subscribe(bus, func(ctx context.Context, d eventbus.Delivery[Deployed]) {
//		fmt.Println(d.Event.Endpoint)
//	})
//	bus.Start()
//	eventbus.Publish(bus, Deployed{Endpoint: "10.0.0.7:5555"})
//	err := bus.Close(ctx) // delivers the rest, names who did not finish
//
// A subscription to an interface type receives every event that implements it.
// A subscription to any receives everything, for logs, metrics and histories.
//
// # Order and concurrency
//
// [Publish] may be called from any goroutine, handlers included. It never waits
// for a subscriber: events that a slow one has yet to see stay in memory, and
// [SubscriberStats] tells how many there are. All events of a bus are in one
// order, whatever their type; [Delivery].Seq is the place of an event in it.
// Each subscription has one goroutine, so its handler is never called twice at
// once. Subscriptions do not wait for each other.
//
// Events are handed over by assignment: subscribers share the values that an
// event points to, and nobody may write to them after Publish.
//
// # Start
//
// Nothing is delivered before [Bus.Start]. The bus keeps all events published
// before it and delivers them to every subscriber that is there at Start, so the
// order in which components are wired up does not matter. A subscriber that
// comes later receives the events published from then on. A [Ring] keeps the
// newest of them for those who look later.
//
// # Questions
//
// [Ask] puts a question, of any type, to all who [Answer] it, each in a goroutine
// of its own, and returns their answers to the caller alone. A responder that is
// absent fails at once; one that is late, panics or returns an error fails with
// that: see [AskError]. Questions need no Start and fail when the bus is closed.
package eventbus
