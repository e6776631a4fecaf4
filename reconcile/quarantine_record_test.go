package reconcile

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestRecorders: one that panics goes unheard, and whoever does not lead is
// silent.
func TestRecorders(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=bad")
	opts := w.options()
	opts.Recorder = panicking{}
	play(t, opts, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		require.Equal(t, "a", w.deployed())
	})
	opts = w.options()
	leader := &fakeLeader{}
	opts.Leader = leader
	play(t, opts, func(s *scene) {
		s.Trigger("start")
		pass(time.Second)
		require.Equal(t, "b", held(s.Loop))
		require.Empty(t, w.told)
		leader.Store(true)
		s.LeadershipChanged()
		s.Trigger("something")
		pass(time.Second)
		require.Len(t, w.told, 1, "a new leader says what is left out")
		s.Trigger("something")
		pass(time.Second)
		require.Len(t, w.told, 1)
	})
}

// TestRefusalsAreRecorded once, by whoever leads, however often the resource
// changes in another place.
func TestRefusalsAreRecorded(t *testing.T) {
	w, leader := newWard(t, map[string]string{"haproxy.cfg": loopTemplate}), &fakeLeader{}
	source := &source{t: t, text: text("a")}
	opts := Options{Renderer: source, Recorder: w, Leader: leader}
	refusal := func(version string) Refusal {
		return Refusal{Resource: "Ingress ns/a", Field: "spec", Reason: "no", Object: Resource{Kind: "Ingress", Namespace: "ns", Name: "a", Version: version}}
	}
	play(t, opts, func(s *scene) {
		for i, leads := range []bool{false, true, true} {
			leader.Store(leads)
			source.set(text("a"), nil, refusal(fmt.Sprint(i)))
			s.Trigger("a change")
			pass(time.Second)
		}
		require.Equal(t, []string{"Warning Refused  Ingress/a : spec: no"}, w.told)
		require.Len(t, eventsOf[ResourceRefused](s), 1)
		require.Empty(t, eventsOf[ResourceAccepted](s))
		source.set(text("a"), nil)
		s.Trigger("mended")
		pass(time.Second)
		require.Len(t, eventsOf[ResourceAccepted](s), 1)
	})
}

// TestATrialThatFailsIsNoNews: whatever a resource in quarantine changes for
// others does not come and go with its trials.
func TestATrialThatFailsIsNoNews(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a", "b=bad")
	opts := w.options()
	opts.Renderer = RendererFunc(func(ctx context.Context) (*Rendered, error) {
		r, err := w.Render(ctx)
		if len(w.Reads()) < 2 && r != nil {
			r.Refused = []Refusal{{Resource: "Ingress ns/a", Reason: "b is in quarantine"}}
		}
		return r, err
	})
	play(t, opts, func(s *scene) {
		s.Trigger("start")
		pass(time.Hour)
		require.Greater(t, s.State().Quarantined[0].Tries, 3)
		require.Len(t, eventsOf[ResourceRefused](s), 1)
		require.Len(t, eventsOf[ValidationFailed](s), 1)
		require.Len(t, w.told, 1)
	})
}

type panicking struct{}

func (panicking) Event(runtime.Object, string, string, string) { panic("unheard") }
