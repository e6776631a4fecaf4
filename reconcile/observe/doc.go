// Package observe shows what a [reconcile.Loop] does: as Prometheus metrics, as
// log lines for people, and on a debug server. Everything here listens to the
// events of the loop on its bus; nothing here has an influence on it.
//
//	bus := eventbus.New(nil)
//	metrics := observe.NewMetrics(bus)
//	observe.Comment(bus, slog.Default())
//	history := observe.NewHistory(bus, 200)
//	loop, err := reconcile.New(reconcile.Options{Bus: bus, ...})
//
//	server := &observe.Server{
//		Metrics: metrics.Registry(),
//		Ready:   func() error { return observe.Ready(loop.State()) },
//	}
//	server.Register("state", func() any { return loop.State() })
//	server.Register("events", func() any { return history.All() })
//	bus.Start()
//	err = server.Run(ctx) // http://127.0.0.1:9090/debug/vars/state
//
// Subscribe before [eventbus.Bus.Start], as above, and nothing is missed.
//
// No secret goes into any of it, because none goes into the events and the
// state of a loop: certificates show by name, credentials not at all. What a
// program registers with a [Server] on its own is its own responsibility.
package observe
