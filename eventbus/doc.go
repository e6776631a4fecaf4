// Package eventbus is a typed, in-process publish/subscribe bus with one total
// order and a loss policy for each subscription.
//
// The Go type of an event is its topic: there are no names to spell and no
// event interface to implement.
//
//	bus := eventbus.New(nil)
//	eventbus.Subscribe(bus, eventbus.Lossless, func(ctx context.Context, d eventbus.Delivery[Deployed]) {
//		fmt.Println(d.Event.Endpoint)
//	})
//	bus.Start()
//	eventbus.Publish(bus, Deployed{Endpoint: "10.0.0.7:5555"})
//	err := bus.Close(ctx) // delivers what is left, names who did not finish
//
// A subscription to an interface type receives every event that implements it;
// a subscription to any receives everything, which is what logs, metrics and
// histories want.
//
// # Policies
//
//   - [Lossless], the zero value, never drops and never holds up a publisher.
//     What a slow subscriber has yet to see stays in memory; how far it ever
//     fell behind is its watermark ([SubscriberStats]).
//   - [Latest] is for state: of events with the same key that wait, only the
//     newest is delivered.
//   - [Lossy] is for observers: at most n events wait, the oldest goes first,
//     and the next delivery says how many were missed.
//
// There is no blocking policy. A publisher that waits for its subscribers is
// how buses deadlock.
//
// # Order and concurrency
//
// [Publish] may be called from any goroutine, handlers included. All events of
// a bus are in one order, whatever their type, and [Delivery.Seq] is the place
// of an event in it. Each subscription has one goroutine, so its handler is
// never called twice at once; different subscriptions run independently.
//
// Events are handed over by assignment: whatever they point to is shared by
// all subscribers and must not be written to after it was published.
//
// # Start
//
// Nothing is delivered before [Bus.Start]. What was published before it is
// kept without a bound and then goes to every subscriber that is there at
// Start, so that the order in which components are wired up does not matter. A
// subscriber that comes later receives what is published from then on, or, with
// [Policy.From], begins with the last value or with everything the bus keeps
// ([Options].History): by default the last event of each type.
//
// # Questions
//
// Events tell; [Ask] wants to know. It puts a question, of any type, to all who
// [Answer] it, each in a goroutine of its own, and returns their answers, or a
// quorum of them, to the caller alone. A responder that is absent fails at once,
// one that is late, panics or returns an error fails with that; see [AskError].
// Questions need no Start, have no place in the order of events, and fail when
// the bus is closed. To have them seen, publish them as well.
//
// # How it works
//
// The bus is an append-only log of fixed-size chunks, linked forward. A
// subscriber is a cursor into that log; replay at Start is a cursor at its
// first chunk. Publishing stores the event once and wakes those who sleep.
// Subscribers that are busy come to see a burst in strides of 16 events, and the
// rest of it when they have dealt with these; on a bus with a bounded policy,
// one by one. Chunks that every cursor has left are cleared and written to again,
// so a bus whose subscribers keep up allocates nothing; up to two chunks of
// delivered events (128 each) stay in memory, and beside them the history of
// each type.
// Subscribers with a bounded policy are moved along while their handler runs,
// so a hung observer does not keep the log alive.
//
// Package eventbustest helps to test components that publish or subscribe.
package eventbus
