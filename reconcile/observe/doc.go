// Package observe shows what a [reconcile.Loop] does: as Prometheus metrics, as
// log lines for people, and on a debug server. Everything here listens to the
// events of the loop on its bus; nothing here has an influence on it.
//
//	bus := eventbus.New(nil)
//	loop, err := reconcile.New(reconcile.Options{Bus: bus, ...})
//	observer := observe.New(bus, observe.Subject{Loop: loop}, slog.Default())
//	observe.Trace(bus, provider) // where there is one
//	bus.Start()
//	err = observer.Server().Run(ctx) // http://127.0.0.1:9090/
//
// [New] is everything in one call; [NewMetrics], [Comment], [NewHistory], [Trace]
// and [Health] also stand alone.
//
// Subscribe before [eventbus.Bus.Start], as above, and nothing is missed.
//
// No secret goes into any of it, because none goes into the events and the
// state of a loop: certificates show by name, credentials not at all, and in the
// text of a configuration all that follows a word such as password is masked. What a
// program registers with a [Server] on its own is its own responsibility.
package observe
