package kit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

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
	if *watched != "" && flags.Given("secret") {
		flags.Wrong(errors.New("-namespace and -secret exclude each other"))
	}
	fmt.Println(flags.Err())
	// Output:
	// -http-addr "8080": want address:port with a port from 1 to 65535, such as :8080 or 127.0.0.1:8080
	// error: -templates "/none": want a folder that exists (no such file or directory)
	// error: -state "here": want a path that begins with /
	// error: $MINE_SECRET "a/b/c": want [namespace/]name
	// error: -namespace "Shop": want the name of a namespace: a-z, 0-9 and -, 63 characters at most
	// error: -namespace and -secret exclude each other
}

func ExampleIsHost() {
	fmt.Println(kit.IsHost("haproxy-0.edge"), kit.IsHost("a b"), kit.IsPort("70000", 1), kit.IsFile("/none"))
	// Output: true false false false
}

// An error names the flag that it comes from.
func ExampleOfFlag() {
	fmt.Println(kit.OfFlag("local", dataplane.ErrBusy))
	fmt.Println(strings.HasSuffix(kit.OfCluster(k8swatch.ErrNoCluster).Error(), "give -kubeconfig FILE, or -manifests DIR"))
	// Output:
	// -local: the folder is in use by another process
	// true
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
	err = election.Run(ctx, func(context.Context) { stop() }, nil)
	_ = bus.Close(context.Background())
	fmt.Println(told.String(), err)
	// Output: leads now and deploys, as one <nil>
}

// The check of a folder says what is broken in it.
func ExampleManifests() {
	dir, err := os.MkdirTemp("", "manifests")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	folder, err := k8swatch.NewFolder(dir, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	manifests := &kit.Manifests{Folder: folder}
	fmt.Println(manifests.WaitForKnown(context.Background()), manifests.Check())
	// Output: <nil> <nil>
}

// What is wrong with an object becomes an Event of it.
func ExampleNewRecorder() {
	dir, err := os.MkdirTemp("", "kubeconfig")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	kubeconfig := filepath.Join(dir, "config")
	text := `{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}], contexts: [{name: a, context: {cluster: a}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	cluster, err := k8swatch.NewCluster(&k8swatch.ClusterOptions{Kubeconfig: kubeconfig})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	recorder, stop := kit.NewRecorder(cluster, "mine", slog.New(slog.DiscardHandler))
	defer stop()
	opts := reconcile.Options{Recorder: recorder}
	fmt.Println(opts.Recorder != nil)
	// Output: true
}
