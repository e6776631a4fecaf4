package kit

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

// NewRecorder returns a recorder of Kubernetes Events: "kubectl describe" then shows the
// problems of an object. component is the source that the Events name. Call stop at the end.
// The account needs the verbs create and patch on events in all watched namespaces. Without
// them, the log says so and nothing else fails.
func NewRecorder(cluster *k8swatch.Cluster, component string, log *slog.Logger) (recorder reconcile.Recorder, stop func()) {
	ctx := klog.NewContext(context.Background(), logr.FromSlogHandler(log.Handler()))
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: cluster.Clientset().CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}), broadcaster.Shutdown
}
