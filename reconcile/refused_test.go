package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/reconcile/event"
)

// sentences are the lines that events make.
func sentences[E event.Event](events []E) (all []string) {
	for _, e := range events {
		if s := e.Report().Sentence; s != "" {
			all = append(all, s)
		}
	}
	return all
}

// TestOneCauseIsOneLine: what is wrong with many resources for one cause begins and
// ends with one line, that counts them and names three.
func TestOneCauseIsOneLine(t *testing.T) {
	var many []Refusal
	for i := range 200 {
		many = append(many, Refusal{Resource: fmt.Sprintf("Ingress shop%d/web%d", i%5, i), Field: fmt.Sprintf("spec.rules[%d].http", i%3), Warning: i >= 100,
			Reason: fmt.Sprintf(`Service shop%d/web-%d has no port %d: it has "http" (80)`, i%5, i, i)})
	}
	host := Refusal{Resource: "Ingress shop1/web", Field: "spec.rules[0].host", Reason: "shop.example.com is served for an older Ingress, shop0/web"}
	play(t, Options{}, func(s *scene) {
		s.source.set("a", nil, append(many, host)...)
		s.Trigger("many")
		pass(time.Second)
		require.Len(t, eventsOf[ResourceRefused](s), 201)
		require.Equal(t, []string{
			`refused: 100 resources, such as Ingress shop0/web0, Ingress shop1/web1 and Ingress shop2/web2: spec.rules[0].http: Service shop0/web-0 has no port 0: it has "http" (80)`,
			`warning: 100 resources, such as Ingress shop0/web100, Ingress shop1/web101 and Ingress shop2/web102: spec.rules[1].http: Service shop0/web-100 has no port 100: it has "http" (80)`,
			"refused: Ingress shop1/web: spec.rules[0].host: shop.example.com is served for an older Ingress, shop0/web"},
			sentences(eventsOf[ResourceRefused](s)))

		many[0].Reason = "Service shop0/web-0 does not exist" // it is wrong in another way, and not in order
		s.source.set("a", nil, append(many, host)...)
		s.Trigger("other")
		pass(time.Second)
		require.Empty(t, eventsOf[ResourceAccepted](s))
		require.Len(t, eventsOf[ResourceRefused](s), 202)

		s.source.set("a", nil)
		s.Trigger("mended")
		pass(time.Second)
		require.Equal(t, []string{
			"no longer refused: Ingress shop0/web0: spec.rules[0].http",
			"no longer refused: 99 resources, such as Ingress shop0/web10, Ingress shop0/web15 and Ingress shop0/web20",
			"in order again: 100 resources, such as Ingress shop0/web100, Ingress shop0/web105 and Ingress shop0/web110",
			"no longer refused: Ingress shop1/web: spec.rules[0].host"}, sentences(eventsOf[ResourceAccepted](s)))
	})
}

// TestOneBadBatchIsAFewLines: 200 objects that turn bad together are quarantined in a few
// lines, as fast as they are found, and released in one.
func TestOneBadBatchIsAFewLines(t *testing.T) {
	t.Parallel()
	const many = 200
	for _, c := range []struct {
		blind bool
		most  int
	}{{false, 25}, {true, 12}} {
		w := &town{target: &fakeTarget{name: "one"}, blind: c.blind}
		all := func(text string) {
			for i := range many {
				w.put("evil", fmt.Sprintf("s%d", i), text)
			}
		}
		play(t, Options{Renderer: w, View: w.view(), Validator: w, Targets: []Target{w.target}}, func(s *scene) {
			all("fine")
			s.Trigger("start")
			pass(10 * time.Second)
			all("bad")
			s.Trigger("bad")
			pass(5 * time.Minute)
			require.Len(t, s.State().Quarantined, many)
			bad := sentences(eventsOf[ResourceQuarantined](s))
			require.LessOrEqual(t, len(bad), c.most, "blind: %v: %q", c.blind, bad)
			require.Regexp(t, "in quarantine, all others are served: [0-9]+ resources, such as Secret evil/s[0-9]+, Secret evil/s[0-9]+ and Secret evil/s[0-9]+: ", bad[0])
			all("fine again")
			s.Trigger("mended")
			pass(10 * time.Minute)
			require.Empty(t, s.State().Quarantined)
			require.LessOrEqual(t, len(sentences(eventsOf[ResourceReleased](s))), c.most)
		})
	}
}

// TestManyRefusals: whoever makes 100,000 mistakes has an event for each resource, at
// most a hundred and one of a namespace, and the state stays as small.
func TestManyRefusals(t *testing.T) {
	var many []Refusal
	for i := range 1000 {
		for j := range 100 {
			many = append(many, Refusal{Resource: fmt.Sprintf("Ingress evil/x%03d", i), Field: fmt.Sprintf("spec.rules[%d]", j), Reason: "no"})
		}
	}
	good := Refusal{Resource: "Ingress good/web", Reason: "no host"}
	play(t, Options{}, func(s *scene) {
		s.source.set("a", nil, append(many, good)...)
		s.Trigger("many")
		pass(time.Second)
		told := eventsOf[ResourceRefused](s)
		require.Len(t, told, 102)
		require.Equal(t, []string{
			"refused: 100 resources, such as Ingress evil/x000, Ingress evil/x001 and Ingress evil/x002: spec.rules[0]: no; spec.rules[1]: no; spec.rules[2]: no; 90097 more refusals",
			"refused: Ingress good/web: no host"}, sentences(told))
		require.Equal(t, 97, told[1].More)
		require.Equal(t, Refusal{Resource: "namespace evil", Reason: "more than 100 of its resources are refused", More: 89999}, told[100].Refusal)
		require.Equal(t, good, told[101].Refusal)
		require.Len(t, s.State().Refused, 100*MaxRefusals+2)
		require.Equal(t, 100_001, eventsOf[TemplateRendered](s)[0].Refused)

		for i := range many { // the rest changes without end
			many[i].More = i % 3
		}
		s.source.set("a", nil, append(many, good)...)
		s.Trigger("again")
		pass(time.Second)
		require.Len(t, eventsOf[ResourceRefused](s), 102)
		require.Empty(t, eventsOf[ResourceAccepted](s))

		s.source.set("a", nil, many[5:100]...)
		s.Trigger("mended")
		pass(time.Second)
		gone := eventsOf[ResourceAccepted](s)
		require.Len(t, gone, 102)
		require.Equal(t, []string{"no longer refused: 100 resources, such as Ingress evil/x000, Ingress evil/x001 and Ingress evil/x002", "no longer refused: Ingress good/web"}, sentences(gone))
	})
}

// TestOneResourceIsNoneOfMany: rows of one resource with one cause stay apart, and among
// those of others each resource counts once.
func TestOneResourceIsNoneOfMany(t *testing.T) {
	no := func(resource string, field int) Refusal {
		return Refusal{Resource: resource, Field: fmt.Sprintf("spec.rules[%d]", field), Reason: "no"}
	}
	require.Equal(t, make([]Alike, 2), AlikeRefusals([]Refusal{no("Ingress shop/web", 0), no("Ingress shop/web", 1)}))
	require.Equal(t, []Alike{{Size: 2, Names: "Ingress shop/web and Ingress blog/web"}, {Told: true}, {Told: true}},
		AlikeRefusals([]Refusal{no("Ingress shop/web", 0), no("Ingress shop/web", 1), no("Ingress blog/web", 0)}))
}

// TestARefusalThatMovesIsNoNews: a line that is added to the top of a manifest moves all
// others, and changes nothing of what is refused.
func TestARefusalThatMovesIsNoNews(t *testing.T) {
	play(t, Options{}, func(s *scene) {
		for line := range 5 {
			s.source.set("a", nil, Refusal{Resource: "Ingress shop/web", Source: fmt.Sprintf("web.yaml:%d", line+1), Field: "spec", Reason: "no"})
			s.Trigger("moved")
			pass(time.Second)
		}
		require.Equal(t, []string{"refused: Ingress shop/web (web.yaml:1): spec: no"}, sentences(eventsOf[ResourceRefused](s)))
		require.Equal(t, "web.yaml:5", s.State().Refused[0].Source)
	})
}
