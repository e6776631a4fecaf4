package haproxymodel_test

import (
	"fmt"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
	"github.com/hapticsdk/haptic/internal/haproxymodel"
)

func parse(text string) *haproxymodel.Section {
	return haproxymodel.Parse([]haproxymodel.Input{{Section: haproxycfg.Split(text)[0]}})[0]
}

const shop = "backend shop\n  balance roundrobin\n  http-request deny if { path /old }\n  server a 192.0.2.1:80 check\n"

func ExampleParse() {
	sections := haproxymodel.Parse([]haproxymodel.Input{
		{Section: haproxycfg.Split(shop)[0], From: "base"},
		{Section: haproxycfg.Split("listen web\n  mode http\n")[0]},
	})
	for _, s := range sections {
		fmt.Println(s.Name, s.From, s.Err())
	}
	// Output:
	// shop base <nil>
	// web  section "listen web": line 1: the models have no such section
}

func ExampleDiff() {
	old := parse(shop)
	new := parse("backend shop\n  balance leastconn\n  http-request deny if { src 192.0.2.9 }\n  http-request deny if { path /old }\n  server a 192.0.2.2:80 check\n")
	for _, d := range haproxymodel.Diff(old, new) {
		what := "section"
		if d.Child != nil {
			what = d.Child.Kind
		}
		fmt.Println(d.Action, what, d.Name, d.OldIndex, d.NewIndex)
		for _, f := range d.Fields {
			fmt.Printf("  %s: %q -> %q\n", f.Name, f.Old, f.New)
		}
	}
	// Output:
	// update section  -1 -1
	//   balance.algorithm: "roundrobin" -> "leastconn"
	// create http-request rule  -1 0
	//   cond: "" -> "if"
	//   cond_test: "" -> "{ src 192.0.2.9 }"
	//   type: "" -> "deny"
	// update server a -1 -1
	//   address: "192.0.2.1" -> "192.0.2.2"
}

func ExampleDiffLines() {
	old := parse("backend shop\n  dispatch 192.0.2.1:80\n  mode http\n")
	new := parse("backend shop\n  mode http\n  dispatch 192.0.2.2:80\n")
	for _, d := range haproxymodel.DiffLines(old, new) {
		fmt.Println(d.Action, d.Line.Number, d.Line.Text)
	}
	// Output:
	// delete 2 dispatch 192.0.2.1:80
	// create 3 dispatch 192.0.2.2:80
}

func ExampleSection_Unmodelled() {
	for _, l := range parse("backend shop\n  mode http\n  dispatch 192.0.2.1:80 # old\n").Unmodelled() {
		fmt.Println(l.Number, l.Text)
	}
	// Output: 3 dispatch 192.0.2.1:80
}

func ExampleSection_Apply() {
	old, new := parse(shop), parse("backend shop\n  server b 192.0.2.1:80\n")
	steps := haproxymodel.Diff(old, new)
	fmt.Println(len(steps), "steps,", old.Apply(steps), len(haproxymodel.Diff(old, new)), "left")
	// Output: 4 steps, <nil> 0 left
}

func ExampleSection_SectionBody() {
	body, err := parse(shop).SectionBody()
	fmt.Println(string(body), err)
	// Output: {"balance":{"algorithm":"roundrobin"},"name":"shop"} <nil>
}

func ExampleDifference_Body() {
	steps := haproxymodel.Diff(parse("backend shop\n"), parse("backend shop\n  use-server a if { src 192.0.2.9 }\n"))
	body, err := steps[0].Body()
	fmt.Println(steps[0].Child.Target("shop", "", steps[0].NewIndex))
	fmt.Println(string(body), err)
	// Output:
	// backends/shop/server_switching_rules/0
	// {"cond":"if","cond_test":"{ src 192.0.2.9 }","target_server":"a"} <nil>
}

func ExampleKindOf() {
	k := haproxymodel.KindOf("userlist")
	users := k.ChildOf("Users")
	fmt.Println(k.Target("staff"), users.ByName(), users.Inline())
	fmt.Println(users.Collection("staff"))
	fmt.Println(users.Target("staff", "ann", -1))
	// Output:
	// userlists/staff true false
	// users?userlist=staff
	// users/ann?userlist=staff
}

func ExampleSecret() {
	fmt.Println(haproxymodel.Secret("userlist", "user", "password"), haproxymodel.Secret("backend", "server", "address"))
	// Output: true false
}

func ExampleLine_Redacted() {
	for _, l := range parse("userlist staff\n  user ann insecure-password 1234\n").Lines() {
		fmt.Println(l.Redacted())
	}
	// Output: user ann insecure-password (secret)
}
