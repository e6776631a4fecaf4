package reconcile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
)

// State is what a [Loop] knows at one instant. It holds no configuration text
// and no secret.
type State struct {
	Reconciliation uint64    `json:"reconciliation"` // number of the newest validated configuration
	Rendered       string    `json:"rendered"`       // hash of the newest render
	Validated      string    `json:"validated"`      // hash of the newest validated configuration
	ValidatedAt    time.Time `json:"validatedAt"`
	Leading        bool      `json:"leading"`
	Reached        bool      `json:"reached"`             // an instance with fitting versions answered once; it may be gone
	LastError      string    `json:"lastError,omitempty"` // of the newest reconciliation; empty if it succeeded
	LastErrorAt    time.Time `json:"lastErrorAt,omitzero"`

	Stopped   bool          `json:"-"` // no Run, Once or Preview is under way
	StallTime time.Duration `json:"-"` // of [Options], as it is now, or the time-outs if those are longer

	Refused     []Refusal       `json:"refused,omitempty"`
	Quarantined []Quarantined   `json:"quarantined,omitempty"` // and what is held back; sorted by kind and name
	Instances   []InstanceState `json:"instances"`             // sorted by name; until Run as Once left them
}

// InstanceState is what a [Loop] knows of one instance.
type InstanceState struct {
	Name       string            `json:"name"`
	HAProxy    string            `json:"haproxy,omitempty"`   // version that a [Prober] found, such as 3.2; empty: not known
	API        string            `json:"api,omitempty"`       // version of the Dataplane API
	Unfit      string            `json:"unfit,omitempty"`     // why its versions do not fit: it is not deployed to, and does not count for Ready
	Hash       string            `json:"hash"`                // of the configuration deployed last
	DeployedAt time.Time         `json:"deployedAt,omitzero"` // and when that was
	StaleSince time.Time         `json:"staleSince,omitzero"` // zero: it has the newest validated configuration
	Error      string            `json:"error,omitempty"`     // of the last deployment; empty if it succeeded
	Waits      string            `json:"waits,omitempty"`     // why a reload waits for old workers to end; it is no failure
	Failures   int               `json:"failures,omitempty"`  // in a row
	RetryAt    time.Time         `json:"retryAt,omitzero"`
	Reloads    uint64            `json:"reloads"`  // since the instance is known
	Commands   uint64            `json:"commands"` // runtime commands since then
	Last       *dataplane.Result `json:"last,omitempty"`
}

// Ready reports whether there is a validated configuration and every instance has one. In a
// process that does not lead, it suffices that no instance fails. At least one instance must
// be there. If all are gone that once answered, the loop stays ready. A loop without targets
// is never ready: a program that deploys by itself checks whether Validated is set.
func (s State) Ready() bool {
	if s.Validated == "" {
		return false
	}
	counts := 0
	for _, e := range s.Instances {
		if e.Unfit != "" {
			continue
		}
		counts++
		if s.Leading && e.Hash == "" || !s.Leading && e.Error != "" {
			return false
		}
	}
	return counts > 0 || len(s.Instances) == 0 && s.Reached
}

// State returns one consistent snapshot of the loop.
func (l *Loop) State() State {
	leading := l.leading()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state
	s.Leading, s.Stopped, s.StallTime = leading, !l.running, l.live.Load().stallTime()
	s.Refused, s.Quarantined = slices.Clone(s.Refused), slices.Clone(s.Quarantined)
	if l.sched.newest != nil {
		s.Reconciliation, s.Validated, s.ValidatedAt = l.sched.newest.id, l.sched.newest.config.Hash(), l.sched.newest.at
	}
	for _, t := range l.targets {
		if w := l.workers[t.Name()]; w != nil && w.target == t {
			s.Instances = append(s.Instances, w.public)
		} else {
			s.Instances = append(s.Instances, l.unknown(t))
		}
	}
	slices.SortFunc(s.Instances, func(a, b InstanceState) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// Validated returns the newest validated configuration, nil before the first.
func (l *Loop) Validated() *dataplane.Config {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sched.newest == nil {
		return nil
	}
	return l.sched.newest.config
}

// Term returns the number of the term in which this process deploys; 0: it does not. The
// number grows with each term, and is 1 or more without a [Leader].
func (l *Loop) Term() uint64 {
	if !l.leading() {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.sched.term, 1)
}

// maxRefused bounds the resources of one namespace that the loop reports as refused. One
// line counts the others.
const maxRefused = 100

// fold bounds the refusals: [MaxRefusals] of one resource, and maxRefused resources of one
// namespace. More of the last one counts the rest.
func fold(refused []Refusal) (kept []Refusal) {
	type seen struct{ count, last int }
	resources, namespaces := map[string]*seen{}, map[string]*seen{}
	for _, r := range refused {
		ns := r.namespace()
		space, of := namespaces[ns], resources[r.Resource]
		if space == nil {
			space = &seen{}
			namespaces[ns] = space
		}
		switch {
		case of != nil && of.count >= MaxRefusals:
			kept[of.last].More += 1 + r.More
			continue
		case of == nil && space.count > maxRefused:
			kept[space.last].More += 1 + r.More
			continue
		case of == nil:
			of = &seen{}
			if space.count++; space.count > maxRefused {
				space.last = len(kept)
				r = Refusal{Resource: "namespace " + ns, Reason: fmt.Sprintf("more than %d of its resources are refused", maxRefused), More: r.More}
			} else {
				resources[r.Resource] = of
			}
		}
		of.count, of.last = of.count+1, len(kept)
		kept = append(kept, r)
	}
	return kept
}

// countRefused counts refusals, also those that are only counted. Warnings leave nothing
// out.
func countRefused(refused []Refusal) (n int) {
	for _, r := range refused {
		if !r.Warning {
			n += 1 + r.More
		}
	}
	return n
}

// namespace returns that of "Ingress shop/web"; "" if it has none.
func (r Refusal) namespace() string {
	name := r.Resource[strings.LastIndexByte(r.Resource, ' ')+1:]
	ns, _, found := strings.Cut(name, "/")
	if !found {
		return ""
	}
	return ns
}

// byResource joins the refusals of each resource, and its warnings, into one each. It keeps
// the first reasons, and counts the others.
func byResource(refused []Refusal, reasons int) (firsts []Refusal) {
	at, said := map[Refusal]int{}, map[Refusal]int{}
	for _, r := range refused {
		of := Refusal{Resource: r.Resource, Warning: r.Warning}
		i, ok := at[of]
		switch said[of]++; {
		case !ok:
			at[of] = len(firsts)
			firsts = append(firsts, r)
		case said[of] <= reasons:
			firsts[i].More += r.More
			r.More = 0
			firsts[i].Reason += "; " + r.what()
		default:
			firsts[i].More += 1 + r.More
		}
	}
	return firsts
}

// about returns the subject of a refusal, without the reason.
func (r Refusal) about() Refusal {
	return Refusal{Resource: r.Resource, Field: r.Field, Warning: r.Warning}
}

// alikeWithFolded is [AlikeRefusals], except that the first group of a namespace also counts
// what [fold] only counted.
func alikeWithFolded(refused []Refusal) []Alike {
	groups := AlikeRefusals(refused)
	for i, r := range refused {
		ns, folded := strings.CutPrefix(r.Resource, "namespace ")
		if !folded || groups[i] != (Alike{}) {
			continue
		}
		for head := range groups {
			if groups[head].Size > 0 && refused[head].namespace() == ns {
				refused[head].More += 1 + r.More
				groups[i].Told = true
				break
			}
		}
	}
	return groups
}

// reportRefusals publishes new refusals and those that ended, one event for each resource.
func (l *Loop) reportRefusals(id uint64, refused []Refusal) {
	if slices.Equal(refused, l.reported) && (l.allHeard || l.opts.Recorder == nil) {
		return
	}
	l.reported, l.allHeard = slices.Clone(refused), true
	refused = fold(refused)
	now := make(map[Refusal]bool, len(refused))
	l.mu.Lock()
	before, last := l.refused, l.state.Refused
	l.state.Refused = refused
	l.mu.Unlock()
	var added, gone, unheard []Refusal
	about := map[Refusal]bool{}
	for _, r := range refused {
		recorded, was := before[r.still()]
		if !was {
			added = append(added, r)
		}
		if !recorded {
			unheard = append(unheard, r)
		}
		now[r.still()], about[r.about()] = recorded, true
	}
	for _, r := range last {
		if _, once := before[r.still()]; once && !about[r.about()] {
			delete(before, r.still())
			r.More, r.Detail = 0, ""
			gone = append(gone, r)
		}
	}
	firsts := byResource(added, 3)
	for i, a := range alikeWithFolded(firsts) {
		eventbus.Publish(l.bus, ResourceRefused{ID: id, Refusal: firsts[i], Alike: a})
	}
	told := map[Refusal]bool{}
	for _, r := range byResource(unheard, 3) {
		reason := map[bool]string{false: "Refused", true: "Warned"}[r.Warning]
		told[Refusal{Resource: r.Resource, Warning: r.Warning}] = l.record(r.Object, eventWarning, reason, r.what())
	}
	for _, r := range unheard {
		heard := told[Refusal{Resource: r.Resource, Warning: r.Warning}]
		now[r.still()], l.allHeard = heard, l.allHeard && heard
	}
	l.mu.Lock()
	l.refused = now
	l.mu.Unlock()
	slices.SortFunc(gone, func(a, b Refusal) int {
		return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Field, b.Field), strings.Compare(a.Reason, b.Reason))
	})
	firsts = byResource(gone, 1)
	for i, a := range alikeWithFolded(firsts) {
		eventbus.Publish(l.bus, ResourceAccepted{ID: id, Refusal: firsts[i], Alike: a})
	}
}

// Alike says that several resources of an event, or of a row, share one cause. The first one
// has a line for all of them.
type Alike struct {
	Size  int    // resources with this cause, with this one; 0: it is alone, or Told
	Names string // of up to three resources with this cause; set on the first one only
	Told  bool   // the first of them tells of this one
}

// Of names the resources: a single one as given, or the number of several and up to three
// names.
func (a Alike) Of(one string) string {
	if a.Size == 0 {
		return one
	}
	return fmt.Sprintf("%d resources, such as %s", a.Size, a.Names)
}

// AlikeRefusals groups refusals by cause: the same words, whatever names, fields and numbers
// stand among them. The result has the order of refused.
func AlikeRefusals(refused []Refusal) []Alike {
	return alike(refused, func(r Refusal) (name, cause string) {
		return r.Resource, fmt.Sprint(r.Warning, plainWords(r.Reason))
	})
}

// AlikeQuarantined is [AlikeRefusals] for quarantined resources.
func AlikeQuarantined(quarantined []Quarantined) []Alike {
	return alike(quarantined, func(q Quarantined) (name, cause string) {
		return q.Resource.String(), fmt.Sprint(q.Instances, q.Before.Name != "", plainWords(q.Fault.Message))
	})
}

// alike groups values by cause; of returns the name and the cause of one. A resource counts
// once.
func alike[T any](all []T, of func(T) (name, cause string)) []Alike {
	const named = 3
	type key struct{ name, cause string }
	groups, heads, first, seen := make([]Alike, len(all)), make([]int, len(all)), map[string]int{}, map[key]bool{}
	for i, one := range all {
		name, cause := of(one)
		at, again := first[cause]
		if !again {
			at, first[cause], groups[i].Names = i, i, name
		}
		groups[i].Told, heads[i] = again, at
		if is := (key{name, cause}); seen[is] {
			continue
		} else {
			seen[is] = true
		}
		head := &groups[at]
		switch head.Size++; {
		case head.Size == 1:
		case head.Size < named:
			head.Names += ", " + name
		case head.Size == named:
			head.Names += " and " + name
		}
	}
	for i, head := range heads { // a head comes before its group
		switch groups[head].Size {
		case 0, 1:
			groups[i] = Alike{}
		case 2:
			groups[head].Names = strings.Replace(groups[head].Names, ", ", " and ", 1)
		}
	}
	return groups
}

var plainWord = regexp.MustCompile(`^[\pL'-]+[,.:;)]?$`)

// plainWords returns the words of a text that are no name, quotation or number, or the whole
// text if there are none.
func plainWords(text string) string {
	var words []string
	for _, w := range strings.Fields(text) {
		if plainWord.MatchString(w) && w[0] != '\'' {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return text
	}
	return strings.Join(words, " ")
}
