package observe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// A program hears that an address is taken before it begins anything else.
func ExampleServer_Serve() {
	health := &observe.Health{}
	health.CheckQuietly("import", observe.ReadyToServe, func() error { return errors.New("no data yet") }) // events tell of it
	server := &observe.Server{Addr: "127.0.0.1:0", MetricsOnly: true, Health: health, Logger: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ln, err := server.Listen(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error)
	go func() { ended <- server.Serve(ctx, ln) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + ln.Addr().String() + "/readyz")
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	fmt.Print(resp.StatusCode, " ", string(body))
	stop()
	fmt.Println(<-ended)
	// Output:
	// 503 not ok
	// <nil>
}

// The bus hears what is watched, and what changes.
func ExampleNewGroup() {
	bus := eventbus.New(nil)
	services, err := k8swatch.New(k8swatchtest.NewSource(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}),
		corev1.SchemeGroupVersion.WithResource("services"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	group := observe.NewGroup(bus, nil)
	if err := group.Add(services); err != nil {
		fmt.Println(err)
		return
	}
	eventbus.Subscribe(bus, func(_ context.Context, d eventbus.Delivery[reconcile.IndexSynchronized]) {
		fmt.Println(d.Event.Resources)
	})
	bus.Start()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- group.Run(ctx) }()
	_, err = group.WaitForSync(ctx)
	stop()
	<-ended
	_ = bus.Close(context.Background())
	fmt.Println(err)
	// Output:
	// map[services:1]
	// <nil>
}
