package traced

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// instance is a HAProxy to which everything can be deployed.
type instance struct{ deployed chan struct{} }

func (i *instance) Name() string { return "one" }

func (i *instance) DryRun(context.Context, *dataplane.Config) (*dataplane.Plan, error) {
	return &dataplane.Plan{}, nil
}

func (i *instance) Sync(context.Context, *dataplane.Config, ...dataplane.SyncOption) (*dataplane.Result, error) {
	select {
	case i.deployed <- struct{}{}:
	default:
	}
	return &dataplane.Result{Plan: &dataplane.Plan{}}, nil
}

// TestExport: a collector gets the spans of a reconciliation and of its deployment;
// without the variable nobody is asked.
func TestExport(t *testing.T) {
	for _, on := range []bool{true, false} {
		var mu sync.Mutex
		spans, services, requests := map[string]int{}, map[string]bool{}, 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			requests++
			body, err := io.ReadAll(r.Body)
			var got collector.ExportTraceServiceRequest
			if err == nil {
				err = proto.Unmarshal(body, &got)
			}
			if err != nil || r.URL.Path != "/v1/traces" {
				t.Error(r.URL, err)
			}
			for _, of := range got.GetResourceSpans() {
				for _, a := range of.GetResource().GetAttributes() {
					if a.GetKey() == "service.name" {
						services[a.GetValue().GetStringValue()] = true
					}
				}
				for _, scope := range of.GetScopeSpans() {
					for _, s := range scope.GetSpans() {
						spans[s.GetName()]++
					}
				}
			}
		}))
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
		if on {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
		}
		reconcileOnce(t)
		server.Close()
		if on != (requests > 0) || on && (spans["reconciliation"] == 0 || spans["render"] == 0 || spans["deploy"] == 0 || !services["haptic"]) {
			t.Errorf("with %t: %d requests, spans %v of %v", on, requests, spans, services)
		}
	}
}

func reconcileOnce(t *testing.T) {
	cfg, err := dataplane.NewConfig("global\n    maxconn 100\n")
	if err != nil {
		t.Fatal(err)
	}
	bus, one := eventbus.New(nil), &instance{deployed: make(chan struct{}, 1)}
	stop, err := Export(t.Context(), bus)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{}, 1)
	eventbus.Subscribe(bus, func(context.Context, eventbus.Delivery[reconcile.InstanceDeployed]) {
		select {
		case done <- struct{}{}:
		default:
		}
	})
	loop, err := reconcile.New(reconcile.Options{Bus: bus, Targets: []reconcile.Target{one},
		Validator: reconcile.ValidatorFunc(func(context.Context, *dataplane.Config) error { return nil }),
		Renderer: reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
			return &reconcile.Rendered{Config: cfg}, nil
		})})
	if err != nil {
		t.Fatal(err)
	}
	bus.Start()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(ctx) }()
	loop.Trigger("start")
	<-done
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	bus.Close(context.Background())
	if err := stop(context.Background()); err != nil {
		t.Error(err)
	}
}
