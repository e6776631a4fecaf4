package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestManyRefusals: whoever makes 100,000 mistakes has a line in the log for each
// resource, at most a hundred and one of a namespace, and the state stays as small.
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
		require.Equal(t, "refused: Ingress evil/x000: spec.rules[0]: no; spec.rules[1]: no; spec.rules[2]: no; 97 more refusals", told[0].Report().Sentence)
		require.Equal(t, "refused: namespace evil: more than 100 of its resources are refused; 89999 more refusals", told[100].Report().Sentence)
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
		require.Equal(t, "no longer refused: Ingress evil/x000: spec.rules[0] and 4 more", gone[0].Report().Sentence)
	})
}
