package observe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

func ExampleNewMetrics() {
	bus := eventbus.New(nil)
	metrics := observe.NewMetrics(bus, observe.Subject{})
	bus.Start()
	eventbus.Publish(bus, reconcile.ReconciliationFailed{ID: 1, Err: errors.New("no such map")})
	_ = bus.Close(context.Background())

	families, err := metrics.Gather()
	if err != nil {
		fmt.Println(err)
	}
	for _, f := range families {
		if f.GetName() == "haptic_reconciliation_errors_total" {
			fmt.Println(f.GetName(), f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	// Output: haptic_reconciliation_errors_total 1
}

// plain logs to the standard output, without the time.
func plain() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

func ExampleComment() {
	bus := eventbus.New(nil)
	observe.Comment(bus, plain())
	bus.Start()
	eventbus.Publish(bus, reconcile.ReconciliationCompleted{ID: 3, Hash: "6b86b273ff34fce1", Reasons: []string{"Ingress changed"}, Took: time.Millisecond,
		Rendered: reconcile.TemplateRendered{Lines: 80, Sections: 6, Files: 2, Resources: map[string]int{"Ingress": 2}}})
	_ = bus.Close(context.Background())
	// Output:
	// level=INFO msg="new valid configuration of 80 lines in 6 sections and 2 files from 2 Ingress, after Ingress changed" reconciliation=3 took=1ms hash=6b86b273 event=reconciliation.completed
}

func ExampleObserver_Run() {
	bus := eventbus.New(nil)
	observer, _ := observe.New(bus, observe.Subject{}, plain())
	told := make(chan struct{})
	eventbus.Subscribe(bus, func(context.Context, eventbus.Delivery[observe.ComponentFailed]) { close(told) })
	observer.Health.Check("manifests", observe.Reported, func() error { return errors.New("shop.yaml:3: no such field") })
	bus.Start()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-told
		cancel()
	}()
	fmt.Println(observer.Run(ctx))
	_ = bus.Close(context.Background())
	// Unordered output:
	// <nil>
	// level=WARN msg="manifests: shop.yaml:3: no such field" component=manifests event=component.failed
}

func ExamplePrintable() {
	out := observe.Printable(os.Stdout)
	fmt.Fprintln(out, "error:", errors.New("Ingress shop/\x1b[2J\u202eweb"))
	// Output: error: Ingress shop/\u001b[2J\u202eweb
}

func ExampleServer_Run() {
	ctx, cancel := context.WithCancel(context.Background())
	server := &observe.Server{Addr: "127.0.0.1:0", Token: "s3cret"} // a free port
	server.Register("state", func() any { return map[string]bool{"leading": true} })
	server.OnListen = func(addr net.Addr) {
		go func() {
			defer cancel() // stops the server
			resp, err := http.Get("http://me:s3cret@" + addr.String() + "/debug/vars/state")
			if err != nil {
				fmt.Println(err)
				return
			}
			defer resp.Body.Close()
			_, _ = io.Copy(os.Stdout, resp.Body)
			http.DefaultClient.CloseIdleConnections()
		}()
	}
	if err := server.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {
	//   "leading": true
	// }
}

// A token of a file does not print.
func ExampleReadToken() {
	file := filepath.Join(os.TempDir(), "haptic-example-token")
	_ = os.WriteFile(file, []byte("short\n"), 0o600)
	_, err := observe.ReadToken(file)
	fmt.Println(strings.TrimPrefix(err.Error(), file+": "))
	_ = os.WriteFile(file, []byte("0a1b2c3d4e5f60718293a4b5c6d7e8f9\n"), 0o600)
	fmt.Println(observe.ReadToken(file))
	_ = os.Remove(file)
	// Output:
	// the token is not one word of at least 16 characters: write one, such as openssl rand -hex 16 prints
	// (secret) <nil>
}

// An address that other machines can reach needs a token.
func ExampleServer_Run_refused() {
	err := (&observe.Server{Addr: ":9090"}).Run(context.Background())
	fmt.Println(err, errors.Is(err, observe.ErrNoToken))
	// Output: debug server: :9090: an address that is not loopback needs a Token true
}

func ExampleServer_Handler() {
	var health observe.Health
	health.Check("import", observe.ReadyToServe, func() error { return errors.New("no data yet") })
	server := &observe.Server{Health: &health, Token: "s3cret"}
	for _, password := range []string{"", "s3cret"} { // without the token it does not say why
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://127.0.0.1/readyz", nil)
		r.SetBasicAuth("me", password)
		server.Handler().ServeHTTP(w, r)
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 503 not ok
	// 503 import: no data yet
}

func ExampleServer_Register() {
	server := &observe.Server{Token: "s3cret"}
	server.Register("instances", func() any { return []string{"haproxy-0", "haproxy-1"} })
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://127.0.0.1/debug/vars/", nil)
	r.Header.Set("Authorization", "Bearer s3cret")
	server.Handler().ServeHTTP(w, r)
	fmt.Print(w.Body)
	// Output:
	// [
	//   "instances"
	// ]
}

func ExampleNew() {
	bus := eventbus.New(nil)
	loop, err := reconcile.New(reconcile.Options{Bus: bus, Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
		return nil, errors.New("hosts.tmpl:3: undefined: ing")
	})})
	if err != nil {
		fmt.Println(err)
	}
	observer, err := observe.New(bus, observe.Subject{Loop: loop}, slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
	}
	bus.Start()
	_, _ = loop.Once(context.Background())
	fmt.Println(observer.Health.Ready())
	_ = bus.Close(context.Background())
	// Output: configuration: no valid configuration yet: render: hosts.tmpl:3: undefined: ing
}

func ExampleObserver_Server() {
	bus := eventbus.New(nil)
	observer, _ := observe.New(bus, observe.Subject{Version: "v1"}, slog.New(slog.DiscardHandler))
	server := observer.Server()
	server.Register("shards", func() any { return 3 }) // beside all that are there
	server.Token = "s3cret"
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://127.0.0.1/debug/vars/build?field={.version}", nil)
	r.Header.Set("Authorization", "Bearer s3cret")
	server.Handler().ServeHTTP(w, r)
	fmt.Print(w.Body)
	// Output: "v1"
}

// Prometheus and the kubelet ask by the address of the pod, and have no token.
func ExampleObserver_MetricsServer() {
	observer, _ := observe.New(eventbus.New(nil), observe.Subject{}, slog.New(slog.DiscardHandler))
	observer.Health.Check("import", observe.ReadyToServe, func() error { return errors.New("no data yet") })
	server := observer.MetricsServer() // and server.Run(ctx)
	for _, path := range []string{"/metrics", "/readyz?verbose", "/debug/vars/"} {
		w := httptest.NewRecorder()
		server.Handler().ServeHTTP(w, httptest.NewRequest("GET", "http://10.0.0.7:9090"+path, nil))
		fmt.Println(path, w.Code)
	}
	// Output:
	// /metrics 200
	// /readyz?verbose 503
	// /debug/vars/ 404
}

func ExampleTrace() {
	bus := eventbus.New(nil)
	fmt.Println(observe.Trace(bus, nil) == nil) // without a provider nobody listens
	// Output: true
}

func ExampleHealth_Check() {
	var health observe.Health
	health.Check("discovery", observe.Live, func() error { return errors.New("asks in vain for 6m0s") })
	fmt.Println(health.Live())
	fmt.Println(health.Ready())
	// Output:
	// discovery: asks in vain for 6m0s
	// <nil>
}
