package reconcile

import (
	"strings"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/lru"
)

// Recorder writes messages to the owner of a resource. The EventRecorder of client-go's
// tools/record is one: "kubectl describe" shows its messages. It must not block. The loop
// bounds how many messages an object and a namespace get.
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

// An object gets objectBurst warnings at once and then one in 10 seconds, a namespace
// namespaceBurst and then one a second. A tenant whose objects flip would otherwise use up the
// requests that the API server grants this process. More warnings wait: the loop sends them
// later, if they are still true. A release is not counted, as each follows a warning.
const (
	objectBurst, objectRate       = 10, 0.1
	namespaceBurst, namespaceRate = 100, 1
	ratesKept                     = 4096 // of objects, and of namespaces: the latest ones
)

// rates are those of warnings.
type rates struct {
	objects, namespaces *lru.Cache // of *rate.Limiter
}

func newRates() rates { return rates{lru.New(ratesKept), lru.New(ratesKept)} }

// allow reports whether an object may get a warning now, and counts it. A warning that waits
// counts neither for the object nor for its namespace.
func (r rates) allow(object ObjectKey) bool {
	of := func(cache *lru.Cache, key any, perSecond rate.Limit, burst int) *rate.Limiter {
		limiter, ok := cache.Get(key)
		if !ok {
			limiter = rate.NewLimiter(perSecond, burst)
			cache.Add(key, limiter)
		}
		return limiter.(*rate.Limiter)
	}
	one, all := of(r.objects, object, objectRate, objectBurst), of(r.namespaces, object.Namespace, namespaceRate, namespaceBurst)
	return one.Tokens() >= 1 && all.Tokens() >= 1 && one.Allow() && all.Allow()
}

// record writes a message to the owner of a resource, and reports whether it did. It does
// not if another process leads, because that one writes it, or if the message has to wait.
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
	if eventtype == eventWarning && !l.rates.allow(r.Key()) {
		l.mu.Lock()
		l.untold = true
		l.mu.Unlock()
		return false
	}
	return l.callback("Recorder.Event", func() { l.opts.Recorder.Event(ref, eventtype, reason, message) })
}

// hasUntold reports whether a message has to wait.
func (l *Loop) hasUntold() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.untold
}
