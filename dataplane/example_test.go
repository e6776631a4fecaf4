package dataplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/hapticsdk/haptic/dataplane"
)

func ExampleNewConfig() {
	var layout dataplane.Layout
	config, err := dataplane.NewConfig(`frontend web
    bind :8080
    use_backend %[req.hdr(host),map(`+layout.Path(dataplane.Map, "hosts.map")+`)]
`, dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: []byte("shop.example.com shop\n")})
	fmt.Println(config, err)

	_, err = dataplane.NewConfig("frontend web\n    bind\x00:8080\n")
	fmt.Println(err)
	// Output:
	// configuration 87b6db12 (94 bytes, 1 file) <nil>
	// invalid configuration: line 2: control character '\x00' in column 9
}

func ExampleNewConfigFrom() {
	shop, blog := "backend shop\n    server a 192.0.2.1:80\n", "backend blog\n    server a 192.0.2.9:80\n"
	first, err := dataplane.NewConfigFrom(nil, []string{shop, blog})
	if err != nil {
		fmt.Println(err)
		return
	}
	shop = "backend shop\n    server a 192.0.2.7:80\n"
	next, err := dataplane.NewConfigFrom(first, []string{shop, blog}) // shares the backend blog
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := dataplane.Diff(first, next)
	fmt.Println(plan.Summary(), err)
	// Output: 0 to create, 1 to update, 0 to delete; runtime, no reload <nil>
}

func ExampleAccepted() {
	of := func(weight, address string) *dataplane.Config {
		cfg, err := dataplane.NewConfig("frontend web\n  bind :80\n  default_backend shop\nbackend shop\n  server a " + address + " weight " + weight + "\n")
		if err != nil {
			panic(err)
		}
		return cfg
	}
	var accepted dataplane.Accepted
	accepted.Take(of("10", "192.0.2.1:80")) // after haproxy -c has accepted it
	fmt.Println(accepted.Becomes(context.Background(), of("20", "192.0.2.7:80")))
	fmt.Println(accepted.Becomes(context.Background(), of("300", "192.0.2.7:80"))) // only haproxy knows
	// Output:
	// true
	// false
}

func ExampleFileName() {
	fmt.Println(dataplane.FileName(dataplane.Certificate, "shop.example.com"))
	fmt.Println(dataplane.FileName(dataplane.Map, "hosts"))
	// Output:
	// shop_example_com.pem
	// hosts.map
}

func ExampleCheckFileName() {
	fmt.Println(dataplane.CheckFileName(dataplane.Map, "hosts.txt"))
	// Output: invalid configuration: map "hosts.txt": the name must end in .map
}

func ExampleDiff() {
	current, err := dataplane.NewConfig("backend shop\n    server a 192.0.2.1:80\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	desired, err := dataplane.NewConfig("backend shop\n    server a 192.0.2.7:80\n    server b 192.0.2.8:80 check\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := dataplane.Diff(current, desired)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan)
	fmt.Println("reload:", plan.Impact() == dataplane.ImpactReload)
	// Output:
	// ~ server a in backend shop (runtime)
	//     address: 192.0.2.1:80 -> 192.0.2.7:80
	// + server b in backend shop (runtime)
	//     address: (none) -> 192.0.2.8:80
	//     check: (none) -> yes
	// Plan: 1 to create, 1 to update, 0 to delete; runtime, no reload.
	// reload: false
}

func ExamplePlan_Summary() {
	plan := &dataplane.Plan{Ops: []dataplane.Op{{Action: dataplane.Create, Kind: "backend", Name: "shop", Impact: dataplane.ImpactReload}}}
	fmt.Println(plan.Summary())
	// Output: 1 to create, 0 to update, 0 to delete; one reload
}

// A plan for people is text, one for programs JSON, from which it can be read
// again.
func ExamplePlan() {
	plan := &dataplane.Plan{Ops: []dataplane.Op{{
		Action: dataplane.Update, Kind: "server", Parent: "backend shop", Name: "a", Impact: dataplane.ImpactRuntime,
		Changes: []dataplane.Change{{Field: "weight", Old: "1", New: "50"}},
	}}}
	text, err := json.Marshal(plan)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(text))
	var again dataplane.Plan
	fmt.Println(json.Unmarshal(text, &again), again.Impact(), again.Empty())
	// Output:
	// {"ops":[{"action":"update","kind":"server","parent":"backend shop","name":"a","changes":[{"field":"weight","old":"1","new":"50"}],"impact":"runtime"}]}
	// <nil> runtime false
}

// A rule in front of others is one difference; its index says where it stands.
func ExampleOp() {
	current, err := dataplane.NewConfig("frontend web\n    http-request deny if { path_beg /b }\n    http-request deny if { path_beg /c }\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	desired, err := dataplane.NewConfig("frontend web\n    http-request deny if { path_beg /a }\n" +
		"    http-request deny if { path_beg /b }\n    http-request deny if { path_beg /c }\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := dataplane.Diff(current, desired)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, op := range plan.Ops {
		fmt.Println(op.Action, op.Kind, *op.Index, "in", op.Parent)
	}
	// Output: create http-request 0 in frontend web
}

// An error says where and in whose words.
func ExampleError() {
	err := error(&dataplane.Error{Endpoint: "haproxy-0", Stage: "reload", File: "haproxy.cfg", Line: 12,
		Output: "unknown keyword 'bogus' in 'backend' section", Err: dataplane.ErrReload})
	var failed *dataplane.Error
	if errors.As(err, &failed) && errors.Is(err, dataplane.ErrReload) {
		fmt.Println(failed.File, failed.Line, failed.Output)
	}
	fmt.Println(err)
	// Output:
	// haproxy.cfg 12 unknown keyword 'bogus' in 'backend' section
	// haproxy-0: reload: haproxy.cfg:12: reload failed: unknown keyword 'bogus' in 'backend' section
}

func ExampleVersion_Compare() {
	running := dataplane.Version{Major: 3, Minor: 0}
	fmt.Println(running, running.Compare(dataplane.Version{Major: 2, Minor: 6}))
	// Output: 3.0 1
}

// Nothing prints what is in a file, which may be a key.
func ExampleConfig_Files() {
	config, err := dataplane.NewConfig("frontend web\n    bind :443 ssl crt /etc/haproxy/ssl/\n",
		dataplane.File{Kind: dataplane.Certificate, Name: "shop.pem", Content: []byte("-----BEGIN ...")},
		dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: []byte("shop.example.com shop\n")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range config.Files() {
		fmt.Println(f)
	}
	hosts, ok := config.File(dataplane.Map, "hosts.map")
	fmt.Println(len(hosts.Content), ok)
	// Output:
	// certificate shop.pem (14 bytes)
	// map hosts.map (22 bytes, f731df16)
	// 22 true
}

func ExampleRetryable() {
	fmt.Println(dataplane.Retryable(&dataplane.Error{Stage: "push", Status: 503}))
	fmt.Println(dataplane.Retryable(&dataplane.Error{Stage: "reload", Err: dataplane.ErrReload}))
	// Output:
	// true
	// false
}

// A preflight needs neither HAProxy nor Run.
func ExampleLocal_DryRun() {
	dir, err := os.MkdirTemp("", "haptic-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: dir, Temporary: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	config, err := dataplane.NewConfig("global\n    stats socket " + local.RuntimeSocket() + " level admin expose-fd listeners\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := local.DryRun(context.Background(), config)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.Summary())
	// Output: 1 to create, 0 to update, 0 to delete; HAProxy starts
}

// A controller runs a HAProxy for as long as it lives, and brings it to each
// new configuration.
func ExampleLocal_Sync() {
	dir, err := os.MkdirTemp("", "haptic-") // a controller would use a folder that stays
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil { // HAProxy runs under another account
		fmt.Println(err)
		return
	}
	local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: dir + "/state", Temporary: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ended := make(chan error, 1)
	go func() { ended <- local.Run(ctx) }()
	for _, address := range []string{"192.0.2.1:80", "192.0.2.7:80"} {
		config, err := dataplane.NewConfig(`global
    stats socket ` + local.RuntimeSocket() + ` level admin expose-fd listeners
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
backend shop
    server a ` + address + "\n")
		if err != nil {
			fmt.Println(err)
			break
		}
		result, err := local.Sync(ctx, config)
		var failed *dataplane.Error
		if errors.As(err, &failed) {
			fmt.Printf("%s line %d: %s\n", failed.File, failed.Line, failed.Output)
			break
		}
		fmt.Printf("%s; %d reloads, %d commands\n", result.Plan.Summary(), result.Reloads, result.Commands)
	}
	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// 3 to create, 0 to update, 0 to delete; HAProxy starts; 0 reloads, 0 commands
	// 0 to create, 1 to update, 0 to delete; runtime, no reload; 0 reloads, 1 commands
	// ended: <nil>
}

func ExampleLayout_Path() {
	var layout dataplane.Layout // of the Dataplane API; a Local has its own
	fmt.Println(layout.Path(dataplane.Map, "hosts.map"))
	fmt.Println(layout.Path(dataplane.Certificate, dataplane.FileName(dataplane.Certificate, "shop.example.com")))
	// Output:
	// /etc/haproxy/maps/hosts.map
	// /etc/haproxy/ssl/shop_example_com.pem
}
