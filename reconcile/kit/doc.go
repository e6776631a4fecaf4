// Package kit provides what main functions of controllers share: flags, where resources come
// from and where configurations go, election, a single run, log, listeners and a clean end.
//
//	func main() { kit.Main(run) }
//
//	func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
//		log := kit.NewLog(stderr)             // level and format change while it runs
//		flags := kit.NewFlags("mine", log)    // -metrics-addr, -debug-addr, -log-level …
//		var source kit.SourceFlags            // -manifests, -kubeconfig
//		source.Declare(flags)
//		size := flags.Int("size", 4, "how many") // and the program's own
//		if err := flags.Parse(args); err != nil {
//			return kit.ExitCode(log, err) // -h
//		}
//		source.Check(flags, false)
//		flags.Check("size", *size > 0, "a number above 0")
//		if err := flags.Err(); err != nil {
//			return kit.ExitCode(log, err) // a line for each wrong flag
//		}
//		p := &kit.Process{Name: "mine", Flags: flags, Bus: bus, Observer: observer}
//		p.Go("watches", group.Run)
//		p.Go("loop", loop.Run)
//		return kit.ExitCode(log, p.Run(ctx))
//	}
//
// A program uses what fits and leaves the rest: [Log], [Flags] and [Group] stand alone. Each
// set of flags has Declare, Check, and what it opens:
//
//	SourceFlags    a Source: a cluster, or a folder of manifests
//	Namespaces     watchers, one for each namespace
//	TargetFlags    Targets: the HAProxy on this host, or instances behind Dataplane APIs
//	LeaderFlags    an Election by a Lease
//	IntervalFlags  times of the loop
//
// docs/own-controller.md has a whole main function.
//
// # Listeners
//
// [Process.Run] opens two listeners before it starts anything:
//
//	-metrics-addr  :9090           /metrics, /healthz and /readyz, without a token; nothing else
//	-debug-addr    127.0.0.1:6060  the same and, with the token of -debug-token-file, the page
//	                               for people, variables and profiles; or unix:/path
//
// The first is for Prometheus and the kubelet, which reach a pod by its address. It shows
// names of instances, kinds and counts. Its probes answer yes or no, without a reason. A
// NetworkPolicy can limit its clients. The second shows the configuration.
//
// # Log lines of the program itself
//
// One line at the start has the version, the watches, the place of HAProxy, and the addresses
// of the listeners. One line when the end begins has its cause and says what becomes of
// HAProxy. One line says that everything has ended; after an error, the error is that last
// line. If the end takes longer than a second, a line names the parts that have not ended; the
// time doubles with each line. The loop logs the instances that it did not deploy to.
//
// The flags -log-level and -log-format apply until settings say otherwise: see [Log.Follow].
package kit
