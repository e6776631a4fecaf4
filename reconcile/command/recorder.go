package command

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
)

// NewRecorder makes what is wrong with an object an Event of it, so that "kubectl
// describe" tells. component is who speaks. The caller calls stop at the end. The
// account needs the verbs create and patch on events in all namespaces that are
// watched; without them the log says so, and nothing else fails.
func NewRecorder(cluster *k8swatch.Cluster, component string, log *slog.Logger) (recorder reconcile.Recorder, stop func()) {
	ctx := klog.NewContext(context.Background(), logr.FromSlogHandler(log.Handler()))
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: cluster.Clientset().CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}), broadcaster.Shutdown
}
