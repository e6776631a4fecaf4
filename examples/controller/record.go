package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
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
