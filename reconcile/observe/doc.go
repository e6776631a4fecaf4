// Package observe shows the work of a [reconcile.Loop]: as Prometheus metrics, log lines for
// people, traces, and on a debug server. Everything here listens to the events of the loop on
// its bus and has no influence on the loop.
//
//	bus := eventbus.New(nil)
//	loop, err := reconcile.New(reconcile.Options{Bus: bus, ...})
//	observer, err := observe.New(bus, observe.Subject{Loop: loop}, slog.Default())
//	observe.Trace(bus, provider) // if there is an OpenTelemetry provider
//	bus.Start()
//	go observer.Run(ctx) // logs failed checks
//	go observer.MetricsServer().Run(ctx) // for Prometheus and the kubelet
//	server := observer.Server()
//	server.Addr = "unix:/run/haptic/debug.sock" // or a Token: see [Server]
//	err = server.Run(ctx)
//
// [New] sets up all but [Trace] in one call; [NewMetrics], [Comment], [Trace] and [Health] also
// stand alone. Subscribe before [eventbus.Bus.Start], as above, to miss nothing.
//
// # To add an event, a log line or a metric
//
// Logs, metrics, the page and the history do not look at the type of an event. They show the
// [event.Report] that it makes of itself. To add a log line or a counted metric, change the
// method Report of the event. [event.Metric] has the fields of a metric. A metric that is read
// at each scrape is a row in a table of metrics.go: busMetrics, stateMetrics, or the method
// metrics of [Subject]. A metric with two labels goes into Collect. To add the events of
// another package, extend the list in [NewMetrics]. A program registers its own
// metrics with the field Metrics of [Observer]. "go test -run TestMetricsPage -update" writes
// docs/metrics.md.
//
// # Metrics
//
// docs/metrics.md lists all metrics, with labels and types. Alert rules and a dashboard are in
// examples/controller/deploy/monitoring.
//
// The deployment metrics count instances. A revision for ten instances is ten deployments,
// each with its own duration; a retry is one more. The reference system counts the same names
// by fleet: one for all instances together, and one error for each instance that failed. Here
// haptic_events_total{event="deployment.completed"} counts fleets, by
// [reconcile.DeploymentCompleted], which has the duration.
//
// # Probes
//
// /healthz says that the process makes progress. It fails if one of these lasts for
// [reconcile.Options.StallTime], 5 min:
//
//   - "reconciliation": a reconciliation does not end.
//   - "deployment": a deployment does not end.
//
// A deployment may wait for the interval between two reloads, a back-off, old workers or
// leadership: that is no failure. If /healthz fails, only a new process helps.
//
// /readyz says that the process can do its part. All watched resources are known, and there is
// a valid configuration. If this process leads, every instance of a fitting version has a
// configuration. The loop has reached at least one HAProxy, for which it needs usable
// credentials. Before that, the probe says what is wrong with the credentials, or that there
// is no pod. Once ready, the process stays ready if it loses its credentials or all pods: see
// the checks "credentials" and "discovery". Each [ReadyToServe] check of the program counts,
// too, for example that the HAProxy of this host answers.
//
// Neither probe says that all is well. A process stays ready while its newest configuration is
// invalid, its instances lag, it refuses or quarantines resources, or it reads a broken
// manifest. HAProxy then serves the last good configuration, and removing the process would
// end that. No probe asks whether backends answer. Every failure is on the page, on
// /readyz?verbose with the token, in the log, and in metrics to alert on:
//
//	min by (component) (haptic_component_healthy) == 0
//	sum by (kind) ({__name__=~"haptic_(refused|warned|quarantined)_resources"}) > 0
//	max by (haproxy_instance) (haptic_instance_staleness_seconds and on(instance) haptic_leading == 1) > 300
//
// The page says "All is well" only under these conditions. No check fails, no resource is
// refused, warned of or quarantined, and no reload waits. Every instance has the newest valid
// configuration.
//
// A line of /readyz?verbose is a check: a mark, its name, its probe, and "ok" or the error.
//
//	[+]         it passes
//	[-]         it fails, and so does its probe
//	[!]         it fails, and no probe does
//	(live)      it counts for /healthz
//	(ready)     it counts for /readyz
//	(reported)  it counts for no probe: people should know
//
// # Access
//
// Pages, variables and profiles show the configuration and the contents of memory: they need
// the token or the unix socket. A loopback port is no protection. Every user of the host can
// connect to it, and so can HAProxy if a tenant routes it there. Without a token, such a port
// answers only /metrics and the probes. /metrics shows names of instances, kinds and counts;
// the probes say yes or no. [Observer.MetricsServer] answers these three to everybody, at any
// address, and nothing else.
//
// # Secrets
//
// No output has a secret, because the events and the state of a loop have none. Certificates
// show only their name, credentials nothing. In the text of a configuration, everything after
// a word such as password is hidden. The program is responsible for the variables that it
// registers with a [Server].
package observe
