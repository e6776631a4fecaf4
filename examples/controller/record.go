package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile"
)

// newRecorder makes what is wrong with an object an Event of it, so that
// "kubectl describe" tells. The account needs the verbs create and patch on
// events in all namespaces that are watched; without them nothing else fails.
// For a folder of manifests there is nobody to tell.
func (c *controller) newRecorder() {
	if c.cluster == nil || c.cfg.dryRun {
		return
	}
	c.broadcaster = record.NewBroadcaster()
	c.broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.cluster.Clientset().CoreV1().Events("")})
	c.recorder = c.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "haptic"})
}

// logQuarantine says which resources are left out as a whole, and why.
func (c *controller) logQuarantine() {
	eventbus.Subscribe(c.bus, eventbus.Lossless, func(_ context.Context, d eventbus.Delivery[reconcile.ResourceQuarantined]) {
		c.log.Error("in quarantine, all others are served", "resource", d.Event.Resource, "source", d.Event.Resource.Source, "fault", d.Event.Fault)
	})
	eventbus.Subscribe(c.bus, eventbus.Lossless, func(_ context.Context, d eventbus.Delivery[reconcile.ResourceReleased]) {
		c.log.Info("released from quarantine", "resource", d.Event.Resource, "because", d.Event.Reason)
	})
}
