package kit_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// The flags of a whole controller.
func ExampleTargetFlags() {
	flags := kit.NewFlags("mine", kit.NewLog(os.Stdout))
	var source kit.SourceFlags
	var namespaces kit.Namespaces
	var targets kit.TargetFlags
	var leader kit.LeaderFlags
	var intervals kit.IntervalFlags
	var once, dryRun bool
	source.Declare(flags)
	namespaces.Declare(flags)
	targets.Declare(flags)
	leader.Declare(flags, "mine")
	intervals.Declare(flags)
	flags.OnceVar(&once, &dryRun)

	_ = flags.Parse([]string{"-manifests", "/tmp", "-namespace", "shop,blog", "-pods", "app=haproxy", "-leader-elect", "-lease", "edge/mine", "-pod-namespace", "edge"})
	folder := source.Manifests != ""
	source.Check(flags, targets.Local != "")
	namespaces.Check(flags)
	targets.Check(flags, folder)
	targets.CheckCredentials(flags, folder)
	leader.Check(flags, folder)
	intervals.Check(flags)
	flags.CheckAbove("debounce", intervals.Debounce)
	fmt.Println(namespaces.Get(), namespaces.Has("other"), targets.Remote())
	fmt.Println(flags.Err())
	opts := reconcile.Options{}
	intervals.Set(&opts)
	fmt.Println(opts.MinInterval)
	// Output:
	// blog,shop false true
	// -pods needs a cluster, not -manifests
	// error: -leader-elect needs a cluster, not -manifests
	// 2s
}

// A folder is watched in place of a cluster.
func ExampleSource() {
	dir, err := os.MkdirTemp("", "manifests")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	flags := kit.SourceFlags{Manifests: dir}
	source, err := flags.Open(kit.SourceOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer source.Close()
	fmt.Println(source.String() == "manifests in "+dir)
	health := &observe.Health{}
	source.Observe(health) // /debug shows what is wrong in the folder
	watchers := k8swatch.NewGroup(nil)
	var namespaces kit.Namespaces
	_ = namespaces.Set("shop,blog")
	namespaces.Watch(func(namespace string) *k8swatch.Watcher {
		w, err := k8swatch.New(source.Source, corev1.SchemeGroupVersion.WithResource("services"), &k8swatch.Options{Namespace: namespace})
		if err == nil {
			err = watchers.Add(w)
		}
		fmt.Println(namespace, err)
		return w
	})
	g := &kit.Group{}
	source.Watch(g)
	g.Go("watches", watchers.Run)
	err = g.Until(context.Background(), func(ctx context.Context) error { return kit.AwaitSync(ctx, watchers, true) })
	fmt.Println(namespaces.String(), err, source.WaitForKnown(context.Background()), source.Check())
	// Output:
	// true
	// blog <nil>
	// shop <nil>
	// blog,shop <nil> <nil> <nil>
}

// Problems of an object become Events of it. Controllers of one cluster are told apart.
func ExampleSource_Recorder() {
	dir, err := os.MkdirTemp("", "kubeconfig")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	flags := kit.SourceFlags{Kubeconfig: filepath.Join(dir, "config")}
	text := `{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}], contexts: [{name: a, context: {cluster: a}}]}`
	if err := os.WriteFile(flags.Kubeconfig, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	source, err := flags.Open(kit.SourceOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer source.Close()
	defer source.Cluster.Close()
	opts := reconcile.Options{Recorder: source.Recorder("mine", slog.New(slog.DiscardHandler))}
	one, _ := source.Fleet("edge")
	other, _ := source.Fleet("inner")
	leader := kit.LeaderFlags{Elect: true, Lease: "edge/mine"}
	election, err := leader.Election(source, eventbus.New(nil), slog.New(slog.DiscardHandler))
	fmt.Println(source, opts.Recorder != nil, one != other, election != nil, err)
	// Output: https://127.0.0.1:1 true true true <nil>
}

// One process always leads, and of several the one that holds the Lease.
func ExampleElection_Watch() {
	bus := eventbus.New(nil)
	election, err := kit.NewElection(bus, k8swatch.ElectionOptions{
		Client: fake.NewSimpleClientset(&coordinationv1.Lease{}).CoordinationV1(), Namespace: "edge", Name: "mine", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range []*kit.Election{nil, election} {
		opts := reconcile.Options{Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) { return nil, nil })}
		e.Set(&opts)
		loop, err := reconcile.New(opts)
		var g kit.Group
		e.Watch(&g, loop)
		fmt.Println(opts.Leader != nil, err)
	}
	// Output:
	// false <nil>
	// true <nil>
}

// The loop deploys to a HAProxy on this host.
func ExampleTargets() {
	dir, err := os.MkdirTemp("", "state")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	bus := eventbus.New(nil)
	flags := kit.TargetFlags{Local: dir}
	targets, err := flags.Open(kit.TargetOptions{Bus: bus, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer targets.Close()
	fmt.Println(targets.Layout.ConfigPath() == dir+"/haproxy.cfg", len(targets.OnThisHost()))
	current, deployed := targets.Current(context.Background())
	fmt.Println(current == nil, deployed)
	// Output:
	// true 1
	// true false
}

// The loop deploys to instances behind Dataplane APIs. No endpoint may lead to these.
func ExampleTargets_Follow() {
	flags := kit.TargetFlags{Endpoints: []string{"http://127.0.0.1:1"}}
	flags.Credentials.DataplaneUsername, flags.Credentials.DataplanePassword = "admin", "secret"
	targets, err := flags.Open(kit.TargetOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	loop, err := reconcile.New(reconcile.Options{Targets: targets.OnThisHost(),
		Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) { return nil, nil })})
	if err != nil {
		fmt.Println(err)
		return
	}
	var found []netip.AddrPort
	err = targets.Follow(nil, loop, func(apis []netip.AddrPort) { found = apis })
	if err != nil {
		fmt.Println(err)
		return
	}
	var g kit.Group
	targets.Watch(&g)
	err = g.Until(context.Background(), func(ctx context.Context) error { return targets.Wait(ctx, true) })
	fmt.Println(targets, err, found, len(loop.State().Instances))
	// Output: behind 1 Dataplane API <nil> [127.0.0.1:1] 1
}
