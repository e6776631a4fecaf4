// Command sync brings a HAProxy to the configuration in a folder: haproxy.cfg, and the
// files that it names in maps/, ssl/ and general/ beside it.
//
//	sync -endpoint URL [-credentials FILE] [-ca FILE] [-base DIR] [-dry-run] FOLDER
//	sync -local DIR [-start] [-dry-run] FOLDER
//
// FOLDER may also be a file in the folder, under another name than haproxy.cfg.
//
// The URL is that of a Dataplane API: http://host:port, https://host:port or unix:///path.
// The credentials are in a file with one line NAME:PASSWORD, or in HAPTIC_DATAPLANE_USERNAME
// and HAPTIC_DATAPLANE_PASSWORD in the environment. A flag would show them in the list of
// processes. The configuration names its files below -base, by default /etc/haproxy.
//
// With -local HAProxy runs on this host, and DIR holds its state. The configuration names its
// files below DIR by their whole path. It declares a socket for changes without a reload:
//
//	stats socket DIR/run/haproxy.sock level admin expose-fd listeners
//
// HAProxy runs already, with
//
//	haproxy -W -S DIR/run/master.sock,level,admin -f DIR/haproxy.cfg
//
// or sync starts one and serves until it is interrupted. At a SIGHUP it reads FOLDER
// again and deploys its present content.
//
// With -dry-run it prints the plan and changes nothing. It exits with 0 if there is no
// difference, with 2 if there is one, and with 1 after any error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

const (
	done   = 0
	failed = 1
	differ = 2
)

type options struct {
	endpoint, credentials, ca, base string
	local                           string
	start, dryRun                   bool
	timeout                         time.Duration
	folder                          string
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return done
	}
	var changed bool
	if err == nil {
		changed, err = o.run(ctx, getenv, stdout, stderr)
	}
	switch {
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "sync:", err)
		return failed
	case o.dryRun && changed:
		return differ
	}
	return done
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("sync", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	flags.StringVar(&o.endpoint, "endpoint", "", "`URL` of a Dataplane API")
	flags.StringVar(&o.credentials, "credentials", "", "`file` with one line NAME:PASSWORD; empty: the environment says them")
	flags.StringVar(&o.ca, "ca", "", "PEM `file` of the CAs to trust for https; empty: those of the system")
	flags.StringVar(&o.base, "base", "", "`folder` of haproxy.cfg where the Dataplane API runs; empty: /etc/haproxy")
	flags.StringVar(&o.local, "local", "", "`folder` of a HAProxy on this host")
	flags.BoolVar(&o.start, "start", false, "with -local: start HAProxy, and serve until interrupted; SIGHUP reads the folder again")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print the plan and change nothing; exit 2 if it is not empty")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "give up after that time")
	err = flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprint(stderr, "usage: sync -endpoint URL [flags] FOLDER\n       sync -local DIR [flags] FOLDER\n")
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w; -h lists the flags", err)
	case (o.endpoint == "") == (o.local == ""):
		return o, errors.New("want either -endpoint or -local, in front of the folder; -h lists the flags")
	case o.start && (o.local == "" || o.dryRun):
		return o, errors.New("-start goes with -local, and not with -dry-run")
	case flags.NArg() != 1:
		return o, errors.New("want one folder, or file, and all flags in front of it")
	}
	o.folder = flags.Arg(0)
	return o, nil
}

// target is a HAProxy on this host or behind a Dataplane API.
type target interface {
	DryRun(ctx context.Context, desired *dataplane.Config) (*dataplane.Plan, error)
	Sync(ctx context.Context, desired *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error)
}

// run reports whether there was a difference.
func (o options) run(ctx context.Context, getenv func(string) string, stdout, stderr io.Writer) (changed bool, err error) {
	desired, err := read(o.folder)
	if err != nil {
		return false, err
	}
	var to target
	if o.local == "" {
		client, err := o.client(getenv)
		if err != nil {
			return false, err
		}
		defer client.Close()
		to = client
	} else {
		local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: o.local, NoStart: !o.start, Logger: slog.New(slog.NewTextHandler(stderr, nil))})
		if err != nil {
			return false, err
		}
		if o.start {
			return true, o.serve(ctx, local, desired, stdout, stderr)
		}
		to = local
	}
	return o.deploy(ctx, to, desired, stdout)
}

// deploy prints the plan with -dry-run; otherwise it deploys and prints the result.
func (o options) deploy(ctx context.Context, to target, desired *dataplane.Config, stdout io.Writer) (changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if o.dryRun {
		plan, err := to.DryRun(ctx, desired)
		if err != nil {
			return false, err
		}
		_, err = fmt.Fprint(stdout, plan)
		return !plan.Empty(), err
	}
	result, err := to.Sync(ctx, desired)
	if errors.Is(err, dataplane.ErrBusy) {
		return false, fmt.Errorf("%w; a sync with -start takes a changed folder at a SIGHUP", err)
	}
	if err != nil {
		return false, err
	}
	_, err = fmt.Fprintf(stdout, "%s%s\n", result.Plan, result)
	return !result.Plan.Empty(), err
}

// serve runs HAProxy until ctx ends.
func (o options) serve(ctx context.Context, local *dataplane.Local, desired *dataplane.Config, stdout, stderr io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	ended := make(chan error, 1)
	go func() {
		defer stop() // ends a deployment that waits for HAProxy
		ended <- local.Run(ctx)
	}()
	if _, err := o.deploy(ctx, local, desired, stdout); err != nil {
		stop()
		if cause := <-ended; cause != nil {
			return cause
		}
		return err
	}
	for {
		select {
		case err := <-ended:
			return err
		case <-again:
			desired, err := read(o.folder)
			if err == nil {
				_, err = o.deploy(ctx, local, desired, stdout)
			}
			if err != nil && ctx.Err() == nil {
				_, _ = fmt.Fprintln(stderr, "sync:", err) // HAProxy serves the configuration before
			}
		}
	}
}

func (o options) client(getenv func(string) string) (*dataplane.Client, error) {
	e := dataplane.Endpoint{URL: o.endpoint, CAFile: o.ca,
		Username: getenv("HAPTIC_DATAPLANE_USERNAME"), Password: getenv("HAPTIC_DATAPLANE_PASSWORD")}
	if o.credentials != "" {
		raw, err := os.ReadFile(o.credentials)
		if err != nil {
			return nil, err
		}
		var ok bool
		e.Username, e.Password, ok = strings.Cut(strings.TrimRight(string(raw), "\r\n"), ":")
		if !ok {
			return nil, fmt.Errorf("%s: want one line NAME:PASSWORD", o.credentials)
		}
	}
	if e.Username == "" {
		return nil, errors.New("want credentials: a -credentials FILE, or HAPTIC_DATAPLANE_USERNAME and HAPTIC_DATAPLANE_PASSWORD")
	}
	return dataplane.NewClient(e, &dataplane.ClientOptions{Layout: dataplane.Layout{Base: o.base}})
}

func read(path string) (*dataplane.Config, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	dir, name := path, "haproxy.cfg"
	if !info.IsDir() {
		dir, name = filepath.Split(filepath.Clean(path))
	}
	config, err := dataplane.ReadConfig(os.DirFS(filepath.Clean(dir)), name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return config, nil
}
