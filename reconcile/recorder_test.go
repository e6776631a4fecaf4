package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/dataplane"
)

// mailbox is a Recorder that keeps what it gets.
type mailbox struct {
	mu   sync.Mutex
	mail []letter
}

// letter is a message.
type letter struct {
	at        time.Time
	object    string // namespace/name
	namespace string
	reason    string
	text      string
}

func (m *mailbox) Event(object runtime.Object, _, reason, message string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ref := object.(*corev1.ObjectReference)
	m.mail = append(m.mail, letter{time.Now(), ref.Namespace + "/" + ref.Name, ref.Namespace, reason, message})
}

// of returns the messages to a namespace.
func (m *mailbox) of(namespace string) []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.mail), func(l letter) bool { return l.namespace != namespace })
}

// refusalOf is a refusal of an Ingress "namespace/name".
func refusalOf(object, reason string) Refusal {
	namespace, name, _ := strings.Cut(object, "/")
	return Refusal{Resource: "Ingress " + object, Field: "spec", Reason: reason,
		Object: Resource{APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Namespace: namespace, Name: name}}
}

// TestMessagesHaveARate: a tenant whose objects flip makes few messages. Another tenant gets
// its own at once, and each object has a message for what is wrong in the end.
func TestMessagesHaveARate(t *testing.T) {
	const many, minutes = 90, 1
	m := &mailbox{}
	source := &source{t: t, text: text("a")}
	play(t, Options{Renderer: source, Recorder: m, Targets: []Target{&fakeTarget{name: "one"}}}, func(s *scene) {
		flip := func(reason string, more ...Refusal) {
			for i := range many {
				more = append(more, refusalOf(fmt.Sprintf("evil/s%02d", i), reason))
			}
			source.set(text("a"), nil, more...)
			s.Trigger("evil")
		}
		for n := range minutes * 600 {
			flip(fmt.Sprint("reason ", n))
			pass(100 * time.Millisecond)
		}
		sent := len(m.of("evil"))
		t.Logf("%d messages to one namespace in %d minutes", sent, minutes)
		require.Less(t, sent, 100+minutes*60+10)

		begun := time.Now()
		flip("the last reason", refusalOf("good/web", "a mistake"))
		for len(m.of("good")) == 0 && time.Since(begun) < time.Minute {
			pass(10 * time.Millisecond)
		}
		require.Less(t, time.Since(begun), time.Second)
		pass(5 * time.Minute) // without any trigger
		last := map[string]string{}
		for _, l := range m.of("evil") {
			last[l.object] = l.text
		}
		require.Len(t, last, many)
		for object, text := range last {
			require.Equal(t, "spec: the last reason", text, object)
		}
		sent = len(m.of("evil"))
		started := len(eventsOf[ReconciliationStarted](s))
		pass(time.Hour)
		require.Len(t, m.of("evil"), sent)
		require.Len(t, eventsOf[ReconciliationStarted](s), started, "no message waits, so nothing is rendered for it")
	})
}

// TestAFlippingObjectHasTheLastWord: a resource that enters and leaves quarantine all the time
// makes few messages, and the last one is what is true.
func TestAFlippingObjectHasTheLastWord(t *testing.T) {
	for _, end := range []string{"fine", "bad"} {
		w, m := &town{target: &fakeTarget{name: "one"}}, &mailbox{}
		w.target.set(dataplane.ImpactRuntime, nil)
		w.put("evil", "s", "fine")
		w.put("good", "change", "0")
		play(t, Options{Renderer: w, View: w.view(), Validator: w, Recorder: m, QuarantineMax: time.Second, QuarantineBase: time.Second,
			Targets: []Target{w.target}}, func(s *scene) {
			s.Trigger("start")
			pass(time.Second)
			for n := range 600 {
				w.put("evil", "s", []string{"fine", "bad", "bad still"}[n%3])
				s.Trigger("evil")
				pass(time.Second)
			}
			quarantined := len(eventsOf[ResourceQuarantined](s))
			require.Greater(t, quarantined, 300)
			require.Less(t, len(m.of("evil")), 2*(10+60)+2)
			w.put("evil", "s", end)
			s.Trigger("evil")
			pass(time.Minute)
			all := m.of("evil")
			t.Logf("%d messages of %d verdicts", len(all), quarantined)
			require.Equal(t, map[string]string{"fine": "Released", "bad": "Quarantined"}[end], all[len(all)-1].reason)
		})
	}
}
