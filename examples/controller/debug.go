package main

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// newObserver makes all that watches the controller: metrics, the log, checks and
// traces. It is called before the bus starts.
//
// There are no traces without an exporter, which would bring gRPC to all who import the
// SDK. To have them where OTEL_EXPORTER_OTLP_ENDPOINT is set, copy traced.go of
// examples/traced here, and call its Export with c.bus.
func (c *controller) newObserver() (*observe.Observer, error) {
	subject := observe.Subject{
		Loop: c.loop, Config: c.cfg.public, HTTP: c.http.Resources,
		Watched: []func() map[schema.GroupVersionResource]k8swatch.State{c.watchers.States},
	}
	if c.discovery != nil {
		subject.Discovery = c.discovery
	}
	observer, err := observe.New(c.bus, subject, c.log)
	if err != nil {
		return nil, err
	}
	observer.Metrics.MustRegister(c.expiryMetric())
	if c.folder != nil {
		observer.Health.Check("manifests", observe.Reported, c.folder.Check)
	}
	if c.status != nil {
		observer.Health.Check("ingress-status", observe.Reported, c.status.Check)
	}
	if c.cfg.templates != "" {
		observer.Health.Check("templates", observe.ReadyToServe, c.templatesAreBroken)
	}
	return observer, nil
}

// public is what is in force, for people to see: all flags, those that may be repeated
// as lists, and for one that was not given what that means. URLs of Dataplane APIs may
// hold a user and a password: they show on the page of endpoints by name.
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
		"endpoint": len(c.endpoints), "shared-host": c.sharedHosts, "limit": c.limits.InForce(), "publish-address": c.publish.addresses, "allow-endpoint": c.allowEndpoints,
		"trust-proxy": c.trustProxies, "accept-proxy": c.acceptProxy, "default-backend": c.backend, "dns-server": c.nameservers,
	})
	return all
}
