package kit_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// A main function, without its main: it would be func main() { kit.Main(run) }.
func Example() {
	run := func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		log := kit.NewLog(stderr)
		flags := kit.NewFlags("mine", log)
		size := flags.Int("size", 4, "how many")
		if err := flags.Parse(args); err != nil {
			return kit.ExitCode(log, err)
		}
		flags.Check("size", *size > 0, "a number above 0")
		if err := flags.Err(); err != nil {
			return kit.ExitCode(log, err)
		}
		bus := eventbus.New(nil)
		observer, err := observe.New(bus, observe.Subject{Version: "v1"}, log.Logger) // and a Loop
		if err != nil {
			return kit.ExitCode(log, err)
		}
		p := &kit.Process{Name: "mine", Flags: flags, Bus: bus, Observer: observer,
			Watches: "manifests in demo", HAProxy: "behind 2 Dataplane APIs"} // or Local
		p.Go("loop", func(context.Context) error { return fmt.Errorf("no route") })
		return kit.ExitCode(log, p.Run(ctx))
	}
	stderr := steady{os.Stdout}
	fmt.Println(run(context.Background(), []string{"-size", "0", "-log-level", "loud"}, os.Stdout, stderr))
	fmt.Println(run(context.Background(), []string{"-metrics-addr", "", "-debug-addr", ""}, os.Stdout, stderr))
	// Output:
	// error: -log-level "loud": want debug, info, warn or error
	// error: -size 0: want a number above 0
	// 1
	// level=INFO msg="mine starts" version=v1 watches="manifests in demo" haproxy="behind 2 Dataplane APIs" metrics=none debug=none
	// level=ERROR msg="stopping: the instances behind Dataplane APIs serve on" error="no route"
	// error: no route
	// 1
}

// The settings of a controller say what it logs.
func ExampleLog_Follow() {
	log := kit.NewLog(steady{os.Stdout})
	log.Debug("not shown")
	log.Follow("debug", "json")
	log.Debug("shown", "n", 1)
	// Output:
	// {"level":"DEBUG","msg":"shown","n":1}
}

// steady leaves out what differs from run to run.
type steady struct{ to io.Writer }

var varies = regexp.MustCompile(`time=\S+ |"time":"[^"]+",|(after=)\S+`)

func (s steady) Write(p []byte) (int, error) {
	_, err := io.WriteString(s.to, varies.ReplaceAllStringFunc(string(p), func(m string) string {
		if m[:1] == "a" {
			return "after=…"
		}
		return ""
	}))
	return len(p), err
}
