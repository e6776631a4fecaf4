package main

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// newObserver makes metrics, log and checks of the controller. Call it before the bus starts.
//
// There are no traces without an exporter, which would bring gRPC to every user of the
// SDK. For traces copy traced.go of examples/traced here, and call its Export with
// c.bus. It works if OTEL_EXPORTER_OTLP_ENDPOINT is set.
func (c *controller) newObserver() (*observe.Observer, error) {
	subject := observe.Subject{
		Loop: c.loop, Config: c.cfg.public, HTTP: c.http.Resources,
		Watched: []func() map[schema.GroupVersionResource]k8swatch.State{c.watchers.States},
	}
	if c.targets.Discovery != nil {
		subject.Discovery = c.targets.Discovery
	}
	observer, err := observe.New(c.bus, subject, c.log)
	if err != nil {
		return nil, err
	}
	observer.Metrics.MustRegister(c.expiryMetric())
	c.source.Observe(observer.Health)
	if c.status != nil {
		observer.Health.Check("ingress-status", observe.Reported, c.status.Check)
	}
	if c.cfg.templates != "" {
		observer.Health.Check("templates", observe.ReadyToServe, c.templatesAreBroken)
	}
	return observer, nil
}

// public returns the settings in force, for people to see. It has all flags, repeated
// ones as lists, and the meaning of those that were not given. The URLs of Dataplane
// APIs are missing, because they may hold a user and a password. The page of endpoints
// shows them by name.
func (c *config) public() any {
	all := map[string]any{}
	for name, value := range c.Values() {
		all[name] = value
	}
	if c.maxConn == 0 {
		all["maxconn"] = "what HAProxy finds fit"
	}
	if c.expiryWarning == 0 {
		all["expiry-warning"] = usualWarning()
	}
	maps.Copy(all, map[string]any{
		"endpoint": len(c.targets.Endpoints), "shared-host": c.sharedHosts, "limit": c.limits.InForce(), "publish-address": c.publish.addresses, "allow-endpoint": c.allowEndpoints,
		"trust-proxy": c.trustProxies, "accept-proxy": c.acceptProxy, "default-backend": c.backend, "dns-server": c.nameservers,
	})
	return all
}
