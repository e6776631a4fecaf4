package reconcile

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Recorder speaks of a resource to its owner. The EventRecorder of client-go's
// tools/record is one, so that what is wrong stands in "kubectl describe". It
// must not block.
type Recorder interface {
	// Event gets a [corev1.ObjectReference] for object, "Warning" or "Normal",
	// and a reason of one word.
	Event(object runtime.Object, eventtype, reason, message string)
}

const (
	eventWarning = corev1.EventTypeWarning
	eventNormal  = corev1.EventTypeNormal
)

// maxMessage is how long the message of a Kubernetes Event may be, in bytes.
const maxMessage = 1024

// record speaks of a resource where there is somebody to speak to. It reports
// false where another process leads, which does so.
func (l *Loop) record(r Resource, eventtype, reason, message string) bool {
	if l.opts.Recorder == nil || r.Kind == "" || r.Name == "" || !l.leading() {
		return false
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-3], "") + "..."
	}
	ref := &corev1.ObjectReference{
		APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: r.UID, ResourceVersion: r.Version,
	}
	// One that panics only goes unheard.
	return guard(func() error { l.opts.Recorder.Event(ref, eventtype, reason, message); return nil }) == nil
}
