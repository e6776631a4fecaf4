// Package diff compares two configurations, without any I/O.
//
// [Compare] returns the steps from one configuration to another. [RuntimePart] drops what
// needs a reload. [Running] returns the configuration of a process that was changed after it
// loaded its own.
package diff

import (
	"slices"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Compare returns the steps from current to desired, in an order that is safe.
func Compare(current, desired *config.Config, target change.Target) []change.Step {
	if current == desired {
		return nil
	}
	return compare(&difference{current: current, desired: desired, target: target})
}

func compare(d *difference) []change.Step {
	current, desired := d.current, d.desired
	if !current.SameMain(desired) {
		d.sections()
	}
	if d.rearranged {
		// One text may be the other as the Dataplane API writes it.
		from, ok1 := normalText(current)
		to, ok2 := normalText(desired)
		if ok1 && ok2 {
			d = &difference{current: from, desired: to, target: d.target, whole: d.whole}
			d.sections()
		}
	}
	d.files()
	slices.SortStableFunc(d.steps, func(a, b ranked) int { return int(a.rank) - int(b.rank) })
	steps := make([]change.Step, len(d.steps))
	for i := range d.steps {
		steps[i] = d.steps[i].Step
	}
	return steps
}

// normalText brings a whole text into the normal form. It reports false if that loses a word.
func normalText(c *config.Config) (*config.Config, bool) {
	text, err := haproxycfg.Normalise(c.Main())
	if err != nil {
		return nil, false
	}
	normal := c.With(text)
	return normal, keepsWords(c.Index().Lines(), normal.Index().Lines())
}

// difference is a comparison under way.
type difference struct {
	current, desired *config.Config
	target           change.Target
	steps            []ranked
	was, is          *references     // to the files that differ
	named            map[string]bool // names in the current text, set by names
	normalised       int             // number of sections that were brought into the normal form
	rearranged       bool            // sections have another order, or are cut in another way
	stretches        []config.Stretch
	pool             *[]*spare       // set by spares
	owners           map[string]int  // spare backends that each has, set by mayTake
	naming           *naming         // set by mayName
	others           map[string]bool // set by otherHas
	gone             int             // number of backends that stay in the process until the next reload
	whole            bool            // read everything, not only the differences: the oracle of tests
}

// rank orders the steps. A thing is created before the steps that refer to it, and deleted
// after them.
type rank int

const (
	rankFile    rank = iota // files that come or change
	rankList                // entries of crt-lists that come or change
	rankSection             // sections that come, in the order of the text
	rankBackend
	rankFrontend
	rankServer  // servers that come or change
	rankChange  // other lines of sections that stay
	rankACLGone // ACLs that go, after the rules that name them
	rankEntry   // entries of maps and patterns
	rankServerGone
	rankFrontendGone
	rankBackendGone
	rankSectionGone
	rankListGone
	rankFileGone
)

// ranked is a step with its place in the order.
type ranked struct {
	rank rank
	change.Step
}

func (d *difference) add(r rank, s change.Step) { d.steps = append(d.steps, ranked{r, s}) }
