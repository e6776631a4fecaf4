package validate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/validate"
)

func ExampleSyntax() {
	cfg, err := dataplane.NewConfig(`frontend web
  bind :80
  default_backend shop
backend shopp
  sever a 10.0.0.1:80
`)
	if err != nil {
		panic(err)
	}
	var invalid *validate.Error
	if errors.As(validate.Syntax(cfg), &invalid) {
		for _, f := range invalid.Findings {
			fmt.Println(f)
		}
	}
	// Output:
	// /etc/haproxy/haproxy.cfg:3: frontend web: there is no backend "shop": default_backend shop
	// /etc/haproxy/haproxy.cfg:5: backend shopp: unknown keyword "sever": sever a 10.0.0.1:80
}

const site = `defaults
  mode http
  timeout connect 1s
  timeout client 10s
  timeout server 10s
frontend web
  bind 127.0.0.1:8080
  default_backend shop
backend shop
  server a 10.0.0.1:80
`

func ExampleValidator_Check() {
	ctx := context.Background()
	cfg, err := dataplane.NewConfig(site)
	if err != nil {
		panic(err)
	}
	v := &validate.Validator{}
	report, err := v.Check(ctx, cfg)
	if err != nil {
		panic(err)
	}
	fmt.Println("warnings:", len(report.Warnings))

	// An endpoint moves: haproxy need not be asked again.
	cfg, err = dataplane.NewConfig(strings.Replace(site, "10.0.0.1", "10.0.0.2", 1))
	if err != nil {
		panic(err)
	}
	report, err = v.Check(ctx, cfg)
	if err != nil {
		panic(err)
	}
	fmt.Println("inherited:", report.Inherited)
	// Output:
	// warnings: 0
	// inherited: true
}

func ExampleValidator_Semantics() {
	cfg, err := dataplane.NewConfig(strings.Replace(site, "mode http", "mode htp", 1))
	if err != nil {
		panic(err)
	}
	_, err = new(validate.Validator).Semantics(context.Background(), cfg)
	var invalid *validate.Error
	if errors.As(err, &invalid) {
		for _, f := range invalid.Findings {
			fmt.Println(f.Line, f.Section, f.Text)
		}
	}
	// Output:
	// 2 defaults mode htp
}

func ExampleValidator_Syntax() {
	cfg, err := dataplane.NewConfig("frontend web\n  bind :80 ssl crt /srv/certs/shop.pem\n")
	if err != nil {
		panic(err)
	}
	v := &validate.Validator{Layout: dataplane.Layout{Certificates: "/srv/certs"}}
	var invalid *validate.Error
	if errors.As(v.Syntax(cfg), &invalid) {
		fmt.Println(invalid.Findings[0].Message)
	}
	// Output:
	// the configuration has no file /srv/certs/shop.pem
}

func ExampleValidator_Validate() {
	cfg, err := dataplane.NewConfig("backend web\n    servr s1 192.0.2.1:80\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(new(validate.Validator).Validate(context.Background(), cfg))
	// Output:
	// configuration not valid (syntax)
	// 	/etc/haproxy/haproxy.cfg:2: backend web: unknown keyword "servr": servr s1 192.0.2.1:80
}
