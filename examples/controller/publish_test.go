package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
	"github.com/hapticsdk/haptic/reconcile/kit"
	"github.com/hapticsdk/haptic/reconcile/status"
)

// TestStatuses: an Ingress that is served has the addresses, one that is ours but not served
// keeps what it has, and one of another class is another controller's.
func TestStatuses(t *testing.T) {
	source, err := k8swatch.NewStatic(k8swatchtest.Objects(`
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: ours}
spec: {controller: ` + ingress.ControllerName + `}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {namespace: shop, name: web, uid: "1"}
spec: {ingressClassName: ours}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {namespace: shop, name: bad, uid: "2"}
spec: {ingressClassName: ours}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {namespace: shop, name: went, uid: "3"}
spec: {ingressClassName: theirs}
`)...)
	require.NoError(t, err)
	c := &controller{cfg: &config{}, log: slog.New(slog.DiscardHandler), bus: eventbus.New(nil), source: &kit.Source{Source: source}}
	require.NoError(t, c.newWatchers())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.watchers.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	if _, err := c.watchers.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	routes := &ingress.Routes{}
	for _, ing := range read[*networkingv1.Ingress](c.watchers.Snapshot(), c.ingresses).list() {
		if ing.Name != "bad" {
			routes.Exact = derive.OrderedOf(append(routes.Exact.Slice(), &ingress.Path{Ingress: ing}))
		}
	}
	c.status = &publisher{addresses: []status.Address{{IP: "192.0.2.1"}, {Hostname: "lb.example.com"}}}
	var all []string
	for item := range c.statuses(routes) {
		text, _ := json.Marshal(item.Status)
		all = append(all, fmt.Sprintln(item, item.UID, item.Unserved, string(text)))
	}
	slices.Sort(all)
	const is = `{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"},{"hostname":"lb.example.com"}]}}`
	if got, want := strings.Join(all, ""), "ingresses shop/bad 2 true "+is+"\ningresses shop/web 1 false "+is+"\n"; got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	c.status = &publisher{service: &status.Service{}}
	for item := range c.statuses(routes) {
		if item.Status != nil {
			t.Errorf("the addresses are not known, and %s gets %v", item, item.Status)
		}
	}
}
