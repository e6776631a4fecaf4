// Package observe shows what a [reconcile.Loop] does: as Prometheus metrics, as
// log lines for people, as traces, and on a debug server. Everything here listens
// to the events of the loop on its bus; nothing here has an influence on it.
//
//	bus := eventbus.New(nil)
//	loop, err := reconcile.New(reconcile.Options{Bus: bus, ...})
//	observer, err := observe.New(bus, observe.Subject{Loop: loop}, slog.Default())
//	observe.Trace(bus, provider) // where there is one
//	bus.Start()
//	go observer.Run(ctx) // the log says what a check finds
//	go observer.MetricsServer().Run(ctx) // for Prometheus and the kubelet
//	server := observer.Server()
//	server.Addr = "unix:/run/haptic/debug.sock" // or a Token: see [Server]
//	err = server.Run(ctx)
//
// [New] is everything in one call; [NewMetrics], [Comment], [Trace] and [Health]
// also stand alone. Subscribe before [eventbus.Bus.Start], as above, and nothing is
// missed.
//
// # To add an event, a log line or a metric
//
// Logs, metrics, the page and the history know no event by its type: they show the
// [event.Report] that it makes of itself. A sentence in the log, or a metric
// that an event counts, is a line in the method Report of that event, beside its
// type; its fields are those of [event.Metric]. A metric that is read at each scrape
// is a row in one of the tables of metrics.go (busMetrics, stateMetrics, and the
// method metrics of [Subject]), or with two labels in Collect. The events of another package join the list in
// [NewMetrics]. "go test -run TestMetricsPage -update" writes docs/metrics.md.
//
// # Metrics
//
// docs/metrics.md lists all of them, with labels and types. Alert rules and a dashboard
// are in examples/controller/deploy/monitoring.
//
// The deployment metrics count instances: a revision that ten instances get is ten
// deployments, each with its own duration, and a retry is one more. The reference system
// counts the same names by fleet: one for all instances together, and one more, an error,
// for each instance that failed. haptic_events_total{event="deployment.completed"} counts
// fleets here, by [reconcile.DeploymentCompleted], which has the duration.
//
// # What the probes say, and what not
//
// /healthz says that the process makes progress. It fails where for
// [reconcile.Options.StallTime], 5 min, a reconciliation or a deployment does not end
// (checks "reconciliation" and "deployment"), an instance does not get a deployment that
// nothing holds back ("schedule"), or one that is idle is not checked for drift ("drift").
// What holds a deployment back is no failure: the interval between two reloads, a
// back-off, old workers, leadership. Only a new process helps where /healthz fails.
//
// /readyz says that the process can do its part: all watched resources are known, there
// is a valid configuration, and every instance of a fitting version has one, where this
// process leads. At least one HAProxy was reached, which takes usable credentials; without
// one the probe says what is wrong with these, or that no pod is found. Lost credentials,
// or pods that are all gone, do not end that: see the checks "credentials" and
// "discovery". Each check of [ReadyToServe] that the program adds counts, too, such as that
// the HAProxy of this host answers.
//
// Neither says that all is well. A process stays ready while its newest configuration is
// invalid, its instances lag, it refuses or quarantines resources, or it
// reads a broken manifest: clients are served what was good last, and taking the process
// away would end that. No probe asks whether backends answer. Whatever fails is
// on the page, on /readyz?verbose with the token, in the log, and in metrics to alert on:
//
//	min by (component) (haptic_component_healthy) == 0
//	sum by (kind) ({__name__=~"haptic_(refused|warned|quarantined)_resources"}) > 0
//	max by (haproxy_instance) (haptic_instance_staleness_seconds and on(instance) haptic_leading == 1) > 300
//
// The page says "All is well" only where no check fails, nothing is refused, warned of or
// quarantined, no reload waits, and every instance has the newest valid configuration.
//
// A line of /readyz?verbose is a check: a mark, its name, the probe that it counts for, and
// "ok" or what is wrong.
//
//	[+]         it passes
//	[-]         it fails, and so does its probe
//	[!]         it fails, and no probe does
//	(live)      it counts for /healthz
//	(ready)     it counts for /readyz
//	(reported)  it counts for no probe: people should know
//
// # Who may see what
//
// Pages, variables and profiles show the configuration, and what the memory holds:
// they need the token, or the unix socket. A port of loopback is no protection: every
// user of the host can connect to it, and so can HAProxy, wherever a tenant has it route.
// Without a token such a port answers /metrics, which tells names of instances and
// kinds and counts, and probes, which say yes or no. [Observer.MetricsServer] answers
// these three to everybody, at any address, and has nothing else.
//
// # Secrets
//
// No secret goes into any of it, because none goes into the events and the state of
// a loop: certificates show by name, credentials not at all, and in the text of a
// configuration all that follows a word such as password is hidden. A program
// answers itself for the variables that it registers with a [Server].
package observe
