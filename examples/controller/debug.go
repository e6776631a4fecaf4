package main

import (
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

// public is what is in force, for people to see: what the flags say and, without one,
// what that means. URLs of Dataplane APIs may hold a user and a password: they show on
// the page of endpoints by name.
func (c *config) public() any {
	maxConn, warning := any(c.maxConn), usualWarning()
	if c.maxConn == 0 {
		maxConn = "what HAProxy finds fit"
	}
	if c.expiryWarning > 0 {
		warning = c.expiryWarning.String()
	}
	return map[string]any{
		"kubeconfig": c.kubeconfig, "namespace": c.namespaces.String(), "manifests": c.manifests, "demo": c.demo,
		"local": c.local, "endpoints": len(c.endpoints), "pods": c.pods, "podNamespace": c.podNamespace, "podScheme": c.podScheme, "podPort": c.podPort, "credentials": c.secret,
		"endpointBase": c.endpointBase, "endpointSocket": c.endpointSocket,
		"endpointCA": c.endpointCA, "endpointServerName": c.endpointName, "sharedHosts": c.sharedHosts, "limits": c.limits.InForce(),
		"logLevel": c.Log().Level(), "logFormat": c.Log().Format(), "leaderElect": c.leaderElect, "lease": c.lease,
		"publishService": c.publish.service, "publishAddresses": c.publish.addresses,
		"templates": c.templates, "noQuarantine": c.noQuarantine,
		"accessLog": c.accessLog, "acceptProxies": c.acceptProxy, "errorPages": c.errorPages, "http3": c.http3, "statsAddr": c.statsAddr, "defaultCertificate": c.certificate, "defaultBackend": c.backend, "tcpServices": c.tcp, "allowExternalName": c.externalName, "dnsServers": c.nameservers, "drainSeconds": c.drain.Seconds(), "stopTimeout": c.stopTimeout.String(),
		"httpAddr": c.httpAddr, "httpsAddr": c.httpsAddr, "metricsAddr": c.MetricsAddr, "debugAddr": c.DebugAddr, "allowEndpoints": c.allowEndpoints, "trustProxies": c.trustProxies,
		"maxconn": maxConn, "slots": c.spareSlots, "hardStopAfter": c.hardStopAfter.String(), "maxOldWorkers": c.maxOldWorkers,
		"expiryWarning": warning, "debounce": c.debounce.String(), "minInterval": c.minInterval.String(), "driftInterval": c.drift.String(), "stallTime": c.stallTime.String(),
	}
}
