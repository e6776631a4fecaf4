package dataplane

import (
	"cmp"
	"errors"
	"slices"
)

// Diff compares two configurations and says what has to happen to get from
// current to desired, in the order in which it is safe to do. It does no I/O.
// A nil current stands for an empty configuration.
//
// Sections are compared by their text first, so that the cost follows the
// change, and only lines that differ are read further. What HAProxy reads the
// same way is no difference:
//
//   - blanks, comments, quotes that are not needed, and the order of arguments
//     that stand each for itself;
//   - the order of lines that say different things, and lines that a later one
//     replaces. The order of rules, ACLs, servers, filters, error files and the
//     like counts, and so does that between keywords that set one thing, such as
//     force-persist and ignore-persist, or take numbers from one list, such as
//     captures of requests. ACLs may stand below the rules that name them, where
//     HAProxy wants them above, as the Dataplane API brings them there;
//   - the order of sections, as long as each proxy falls under the same defaults;
//     whether it names them; defaults without a name and those with the name
//     that the Dataplane API gives them; one global section and several.
//
// The order of everything counts in a text with conditional blocks (.if), with
// variables above the lines that set them, or with settings below sections that
// they would count for if they stood above: certificates of a crt-store, log
// targets, folders and TLS defaults of a global section.
//
// Everything else is a difference, and an [Op] says so: rules and other children
// one by one, with the fields that differ where the models of client-native know
// them, and the lines where they do not. Its impact is what HAProxy 2.6 and later
// need:
//
//   - Servers change, come and go at runtime where the management manual
//     (section 9.3, "set server", "add server", "del server") allows it;
//     [RuntimeChanges] lists all such changes and what each of them takes.
//   - The order of servers alone is shown, but needs no reload where the balance
//     does not depend on it.
//   - Entries of maps and crt-lists, and certificates, change at runtime where
//     the running HAProxy has loaded the file by its name.
//   - The order of a crt-list needs a reload where two certificates are for one
//     name, because the first counts.
//   - In a text with conditional blocks every change of a section does.
//   - A file that nothing refers to has no impact.
//   - All else takes a reload, and the reason says why.
//
// The operations are in an order in which they can be done one after the other:
// what is referred to comes before what refers to it and goes after it, rules go
// from the last to the first, and an index of what comes or changes is that in
// the desired section.
//
// Diff fails only without a desired configuration.
func Diff(current, desired *Config) (*Plan, error) {
	d, err := compare(current, desired, Target{})
	if err != nil {
		return nil, err
	}
	return d.plan(), nil
}

// difference is a plan together with what carries it out at runtime.
type difference struct {
	current, desired *Config // current is never nil
	target           Target
	steps            []step
	pending          []groupPair     // of sections that differ, until [difference.models] looks at them
	was, is          *referrers      // of the files that differ
	fetched          map[string]bool // servers that sample fetches name, once asked for
}

// step is one operation of a plan. The operation itself is for people and holds
// no secrets; do has what a HAProxy must be told, and is nil where that is
// nothing or a reload.
type step struct {
	rank int
	op   Op
	do   *action
}

// Ranks order the steps: what is referred to comes before what refers to it,
// and goes after it.
const (
	rankFile         = iota // files that come or change
	rankCrtList             // entries that come or change
	rankSection             // sections that come, in the order of the text,
	rankBackend             // of which backends may name the others
	rankFrontend            // and frontends the backends
	rankServer              // servers that come or change
	rankChange              // what else changes in sections that stay
	rankACLGone             // ACLs that go, after the rules that name them
	rankMap                 // entries of maps
	rankServerGone          // servers that go
	rankFrontendGone        // sections that go
	rankBackendGone         //
	rankSectionGone         //
	rankCrtListGone         // entries that go
	rankFileGone            // files that go
)

func compare(current, desired *Config, target Target) (*difference, error) {
	if desired == nil {
		return nil, errors.New("no desired configuration to compare with")
	}
	d := &difference{current: current, desired: desired, target: target}
	if current == nil {
		d.current = emptyConfig()
	}
	if d.current == desired {
		return d, nil
	}
	if d.current.main != desired.main {
		d.sections()
	}
	d.files()
	slices.SortStableFunc(d.steps, func(a, b step) int { return cmp.Compare(a.rank, b.rank) })
	return d, nil
}

// emptyConfig is the one configuration that [NewConfig] refuses to make.
func emptyConfig() *Config {
	return &Config{
		hash:  func() string { return "" },
		split: func() *sectionIndex { return indexSections("") },
	}
}

func (d *difference) add(rank int, op Op, do *action) {
	d.steps = append(d.steps, step{rank: rank, op: op, do: do})
}

func (d *difference) plan() *Plan {
	p := &Plan{Ops: make([]Op, len(d.steps))}
	for i := range d.steps {
		p.Ops[i] = d.steps[i].op
	}
	return p
}

// actions returns what to tell a HAProxy, in order. It is only meaningful where
// the plan takes no reload.
func (d *difference) actions() []*action {
	var actions []*action
	for i := range d.steps {
		if do := d.steps[i].do; do != nil {
			actions = append(actions, do)
		}
	}
	return actions
}
