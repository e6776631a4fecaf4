// Command diff prints the plan from one HAProxy configuration to another, in the manner
// of terraform:
//
//	diff [-json] CURRENT DESIRED
//
// Both are files, or folders with haproxy.cfg and maps/, ssl/ and general/ beside it.
// It needs neither HAProxy nor a network.
//
// It exits with 0 if there is no difference, with 2 if there is one, and with 1 after
// an error.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/hapticsdk/haptic/dataplane"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

const (
	same   = 0
	failed = 1
	differ = 2
)

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("diff", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		_, _ = fmt.Fprintln(stderr, "usage: diff [-json] CURRENT DESIRED\nEach is a file, or a folder with haproxy.cfg and maps/, ssl/, general/.")
		flags.PrintDefaults()
	}
	asJSON := flags.Bool("json", false, "print the plan as JSON")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return same
	case err != nil:
		return failed
	case flags.NArg() != 2:
		_, _ = fmt.Fprintln(stderr, "diff: want two configurations, and all flags in front of them")
		flags.Usage()
		return failed
	}
	plan, err := compare(flags.Arg(0), flags.Arg(1))
	if err == nil {
		err = show(stdout, plan, *asJSON)
	}
	switch {
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "diff:", err)
		return failed
	case plan.Empty():
		return same
	}
	return differ
}

func compare(current, desired string) (*dataplane.Plan, error) {
	before, err := read(current)
	if err != nil {
		return nil, err
	}
	after, err := read(desired)
	if err != nil {
		return nil, err
	}
	return dataplane.Diff(before, after)
}

func read(path string) (*dataplane.Config, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var config *dataplane.Config
	if info.IsDir() {
		config, err = dataplane.ReadConfig(os.DirFS(path), "haproxy.cfg")
	} else {
		var text []byte
		if text, err = os.ReadFile(path); err == nil {
			config, err = dataplane.NewConfig(string(text))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return config, nil
}

func show(w io.Writer, plan *dataplane.Plan, asJSON bool) error {
	if !asJSON {
		_, err := fmt.Fprint(w, plan)
		return err
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(plan)
}
