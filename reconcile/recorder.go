package reconcile

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Recorder writes messages to the owner of a resource. The EventRecorder of client-go's
// tools/record is one: "kubectl describe" shows its messages. It must not block.
type Recorder interface {
	// Event gets a [corev1.ObjectReference] as object, "Warning" or "Normal" as eventtype,
	// and a reason of one word.
	Event(object runtime.Object, eventtype, reason, message string)
}

const (
	eventWarning = corev1.EventTypeWarning
	eventNormal  = corev1.EventTypeNormal
)

// maxMessage bounds the message of a Kubernetes Event, in bytes.
const maxMessage = 1024

// record writes a message to the owner of a resource, and reports whether it did. It does
// not if another process leads, because that one writes it.
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
	return l.callback("Recorder.Event", func() { l.opts.Recorder.Event(ref, eventtype, reason, message) })
}
