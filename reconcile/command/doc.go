// Package command is what the main function of a controller needs beside the SDK.
//
//	func main() { command.Main(run) }
//
//	func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
//		log := command.NewLog(stderr)                // level and format change while it runs
//		flags := command.NewFlags("mine", log)       // -metrics-addr, -debug-addr, -log-level …
//		size := flags.Int("size", 4, "how many")     // and those of the program
//		if err := flags.Parse(args); err != nil {
//			return command.ExitCode(log, err) // -h
//		}
//		flags.Check("size", *size > 0, "a number above 0")
//		if err := flags.Err(); err != nil {
//			return command.ExitCode(log, err) // a line for each wrong flag
//		}
//		p := &command.Process{Name: "mine", Flags: flags, Bus: bus, Observer: observer}
//		p.Go("watches", group.Run)
//		p.Go("loop", loop.Run)
//		return command.ExitCode(log, p.Run(ctx))
//	}
//
// A program uses what fits and leaves the rest: [Log], [Flags] and [Group] stand alone.
//
// # Who reaches what
//
// [Process.Run] opens two listeners before it starts anything:
//
//	-metrics-addr  :9090           /metrics, /healthz, /readyz; everybody, no token, nothing else
//	-debug-addr    127.0.0.1:6060  the same, and with the token of -debug-token-file the page
//	                               for people, variables and profiles; or unix:/path
//
// The first is for Prometheus and the kubelet, which reach a pod by its address. It tells
// names of instances, kinds and counts; its probes say yes or no, and never why. A
// NetworkPolicy may bound who asks. The second shows the configuration.
//
// # What the log says of the program itself
//
// One line at the start: the version, what is watched, where HAProxy is, and who listens
// where. One when the end begins, with its cause and what becomes of HAProxy, and one
// when everything has ended; an error is the last line itself. If that takes longer than a second, a line names the parts
// that have not ended; the time doubles with each line. The loop says which instances
// were not deployed to.
//
// The flags -log-level and -log-format say what the log has, until settings say another:
// see [Log.Follow].
package command
