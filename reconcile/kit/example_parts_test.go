package kit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/reconciletest"
)

// Each flag that is wrong has a line. A variable of the environment is named as well.
func ExampleFlags() {
	log := kit.NewLog(os.Stdout)
	flags := kit.NewFlags("mine", log)
	flags.String("http-addr", ":8080", "where HAProxy listens")
	flags.String("templates", "", "a folder")
	flags.String("state", "", "a folder where HAProxy runs")
	flags.String("secret", "", "[namespace/]name")
	watched := flags.String("namespace", "", "to watch")
	os.Setenv("MINE_SECRET", "a/b/c")
	defer os.Unsetenv("MINE_SECRET")
	_ = flags.Parse([]string{"-http-addr", "8080", "-templates", "/none", "-state", "here", "-namespace", "Shop"})
	flags.Env("secret", "MINE_SECRET", "")
	flags.CheckBinds(true, "http-addr")
	flags.CheckFile("templates", kit.IsFolder("/none"), "a folder that exists")
	flags.CheckPaths("state")
	flags.CheckObjects("", "secret")
	flags.CheckNamespaces("namespace")
	flags.Refuse(*watched != "", "-namespace and -state exclude each other") // not while another is wrong
	if flags.Given("secret") && kit.IsObject("a/b") {
		flags.Wrong(errors.New("-secret: want one that exists"))
	}
	fmt.Println(flags.Err())
	// Output:
	// -http-addr "8080": want address:port with a port from 1 to 65535, such as :8080 or 127.0.0.1:8080
	// error: -templates "/none": want a folder that exists (no such file or directory)
	// error: -state "here": want a path that begins with /
	// error: $MINE_SECRET "a/b/c": want [namespace/]name
	// error: -namespace "Shop": want the name of a namespace: a-z, 0-9 and -, 63 characters at most
	// error: -secret: want one that exists
}

func ExampleIsHost() {
	fmt.Println(kit.IsHost("haproxy-0.edge"), kit.IsHost("a b"), kit.IsPort("70000", 1), kit.IsFile("/none"))
	// Output: true false false false
}

// An error names the flag that it comes from.
func ExampleOfFlag() {
	fmt.Println(kit.OfFlag("local", dataplane.ErrBusy))
	// Output: -local: the folder is in use by another process
}

func ExampleLog_Fail() {
	log := kit.NewLog(os.Stdout)
	fmt.Println(log.SetLevel("loud"))
	fmt.Println(log.SetFormat("xml"))
	log.Fail(errors.New("no route"))
	// Output:
	// log level "loud": want debug, info, warn or error
	// log format "xml": want text or json
	// error: no route
}

// Parts run beside something that ends by itself.
func ExampleGroup_Until() {
	g := kit.Group{Log: slog.New(slog.DiscardHandler)}
	g.Go("watches", func(ctx context.Context) error { <-ctx.Done(); return nil })
	fmt.Println(g.Until(context.Background(), func(context.Context) error { return errors.New("refused") }))
	// Output: refused
}

// A preflight prints the plan, and exits with 2 where there is a difference.
func ExampleOnce() {
	loop, err := reconcile.New(reconcile.Options{
		Targets: []reconcile.Target{reconciletest.NewTarget("a")},
		Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
			cfg, err := dataplane.NewConfig("global\n    maxconn 5\n")
			return &reconcile.Rendered{Config: cfg}, err
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	log := kit.NewLog(os.Stdout)
	err = kit.Once(context.Background(), loop, true, os.Stdout, log.Logger)
	fmt.Println(kit.ExitCode(log, err))
	// Output:
	// a:
	// + global (reload: HAProxy reads new sections only at a reload)
	// Plan: 1 to create, 0 to update, 0 to delete; one reload.
	// 2
}

// One of several controllers leads, and the bus hears of it.
func ExampleNewElection() {
	bus := eventbus.New(nil)
	election, err := kit.NewElection(bus, k8swatch.ElectionOptions{
		Client: fake.NewSimpleClientset(&coordinationv1.Lease{}).CoordinationV1(), Namespace: "edge", Name: "haptic", Identity: "one",
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var told bytes.Buffer
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[reconcile.LeaderBecame]) {
		fmt.Fprint(&told, d.Event.Report().Sentence)
	})
	bus.Start()
	ctx, stop := context.WithCancel(context.Background())
	err = election.Run(ctx, stop)
	_ = bus.Close(context.Background())
	fmt.Println(told.String(), err)
	// Output: leads now and deploys, as one <nil>
}

func ExampleMemory() {
	fmt.Println(kit.Memory() > 1<<20)
	// Output: true
}
