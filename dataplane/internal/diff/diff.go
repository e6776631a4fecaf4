// Package diff compares two configurations, without any I/O.
//
// [Compare] says what has to happen, [RuntimePart] cuts off what needs a reload,
// and [Running] is the configuration of a process that was told other things since
// it has loaded its own.
package diff

import (
	"slices"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Compare says what has to happen to get from current to desired, in the order in
// which it is safe to do.
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
		// The one text may be what the Dataplane API makes of the other.
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

// normalText brings a whole text into the normal form, unless that loses a word.
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
	named            map[string]bool // by the current text, once asked for; see names
	normalised       int             // sections that were brought into the normal form
	rearranged       bool            // sections stand in another order, or are parted in another way
	stretches        []config.Stretch
	pool             *[]*spare       // once asked for; see spares
	naming           *naming         // once asked for; see mayName
	others           map[string]bool // once asked for; see otherHas
	gone             int             // backends that stay in the process until the next reload
	whole            bool            // read all, not only what differs: the oracle of tests
}

// rank orders the steps. What is referred to comes before what refers to it, and
// goes after it.
type rank int

const (
	rankFile         rank = iota // files that come or change
	rankList                     // entries of crt-lists that come or change
	rankSection                  // sections that come, in the order of the text
	rankBackend                  //
	rankFrontend                 //
	rankServer                   // servers that come or change
	rankChange                   // other lines of sections that stay
	rankACLGone                  // ACLs that go, after the rules that name them
	rankEntry                    // entries of maps and patterns
	rankServerGone               //
	rankFrontendGone             //
	rankBackendGone              //
	rankSectionGone              //
	rankListGone                 //
	rankFileGone                 //
)

// ranked is a step with its place in the order.
type ranked struct {
	rank rank
	change.Step
}

func (d *difference) add(r rank, s change.Step) { d.steps = append(d.steps, ranked{r, s}) }
