package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
)

// The demo's backends listen on every one of these addresses, so that an
// EndpointSlice may name any of them.
const demoFirst, demoLast = 11, 30 // 127.0.0.11 to 127.0.0.30

// newDemo listens at these addresses, before anything leads there.
func (c *controller) newDemo() error {
	if !c.cfg.demo {
		return nil
	}
	for i := demoFirst; i <= demoLast; i++ {
		for _, port := range []int{c.cfg.demoPort, c.cfg.demoPort + 1} {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:%d", i, port))
			if err != nil {
				return fmt.Errorf("demo backend: %w", err)
			}
			c.backends = append(c.backends, l)
		}
	}
	return nil
}

// runDemo serves HTTP at all of them until ctx ends. Each server answers with its own
// address.
func (c *controller) runDemo(ctx context.Context) error {
	server := &http.Server{
		ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s answers %s %s%s\n", r.Context().Value(http.LocalAddrContextKey), r.Method, r.Host, r.URL.Path)
		}),
	}
	var wg sync.WaitGroup
	for _, l := range c.backends {
		wg.Go(func() { _ = server.Serve(l) })
	}
	<-ctx.Done()
	server.Close()
	wg.Wait()
	return nil
}

// maxPlanOps bounds the plans that are printed whole. The log has a line for each
// deployment anyway.
const maxPlanOps = 100

// printPlans prints the plan of each deployment, except beside a log in JSON. After the
// first one of the demo it prints what to try.
func (c *controller) printPlans() {
	first := true
	eventbus.Subscribe(c.bus, func(_ context.Context, d eventbus.Delivery[reconcile.InstanceDeployed]) {
		switch plan := d.Event.Result.Plan; {
		case c.cfg.Log().Format() == "json":
		case len(plan.Ops) > maxPlanOps:
			fmt.Fprintf(c.out, "%s: %s\n", d.Event.Instance, plan.Summary())
		case !plan.Empty():
			fmt.Fprintf(c.out, "%s:\n%s", d.Event.Instance, plan)
		}
		if first && c.cfg.demo {
			printDemo(c.out, c.cfg)
		}
		first = false
	})
}

// printDemo prints what to try.
func printDemo(w io.Writer, cfg *config) {
	httpPort, httpsPort := cfg.httpAddr[strings.LastIndexByte(cfg.httpAddr, ':')+1:], cfg.httpsAddr[strings.LastIndexByte(cfg.httpsAddr, ':')+1:]
	fmt.Fprintf(w, `
The demo is live. In another terminal, try:

  curl -H 'Host: shop.demo.test' http://127.0.0.1:%[1]s/
  curl -H 'Host: shop.demo.test' http://127.0.0.1:%[1]s/cart/1      # Prefix: another Service
  curl -H 'Host: shop.demo.test' http://127.0.0.1:%[1]s/health      # Exact
  curl -H 'Host: blog.demo.test' http://127.0.0.1:%[1]s/posts       # ImplementationSpecific: by characters
  curl -k --resolve shop.demo.test:%[2]s:127.0.0.1 https://shop.demo.test:%[2]s/
%[3]s
Change an address in %[4]s and save it: the new one answers
without a reload. Add an Ingress, or break one: you will read here what happened. Ctrl-C ends.
`, httpPort, httpsPort, demoPages(cfg), filepath.Join(cfg.source.Manifests, "shop-endpoints.yaml"))
}

// demoPages prints where the debug server is. It prints the token for the person who
// runs the demo; the token is valid for this run only.
func demoPages(cfg *config) string {
	if path, ok := strings.CutPrefix(cfg.DebugAddr, "unix:"); ok {
		return fmt.Sprintf("  curl --unix-socket %s http://localhost/metrics\n", path)
	} else if cfg.DebugAddr == "" {
		return ""
	}
	url := fmt.Sprintf("http://demo:%s@%s/", string(cfg.DebugToken), cfg.DebugAddr)
	return fmt.Sprintf("  curl %smetrics\n\nThe state of everything, for a browser: %s\n", url, url)
}
