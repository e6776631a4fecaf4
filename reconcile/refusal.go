package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/printable"
)

// MaxRefusals is how many refusals of one resource a [Loop] reports and keeps. It only
// counts the others.
const MaxRefusals = 10

// Refusal says that the configuration lacks a resource, or the part of it that Field names,
// and why. With Warning nothing is left out, but the owner should look at the resource.
type Refusal struct {
	Resource string // kind and name: "Ingress shop/web"
	Source   string // file and line of the resource, if known: "web.yaml:12"
	Field    string // "spec.rules[0].host"
	Reason   string
	Object   Resource `json:"object,omitzero"` // the resource that a [Recorder] writes to
	More     int      `json:"more,omitempty"`  // further refusals of the resource, only counted
	Warning  bool     `json:"warning,omitempty"`
	Detail   string   `json:"detail,omitempty"` // details that may change while the problem stays: "3 not ready"
}

// Refuse returns the refusal of an object, or of the part of it that field names: it fills in
// what [ResourceOf] knows of the object. Set Warning if the object is served all the same.
func Refuse(obj any, field, reason string) Refusal {
	resource, _ := ResourceOf(obj)
	return Refusal{Resource: resource.String(), Source: resource.Source, Object: resource, Field: field, Reason: reason}
}

// String returns one line for a log.
func (r Refusal) String() string { return r.located() + ": " + r.what() }

// located returns the name of the resource and, if known, its file and line.
func (r Refusal) located() string {
	if r.Source != "" {
		return printable.Line(r.Resource + " (" + r.Source + ")")
	}
	return printable.Line(r.Resource)
}

// word names the kind of refusal for a log line.
func (r Refusal) word() string {
	if r.Warning {
		return "warning"
	}
	return "refused"
}

// what says which part is left out, and why.
func (r Refusal) what() string {
	s := r.Reason
	if r.Detail != "" {
		s += "; " + r.Detail
	}
	if r.Field != "" {
		s = r.Field + ": " + s
	}
	if r.More > 0 {
		s += "; " + strconv.Itoa(r.More) + " more refusals"
	}
	return printable.Line(s)
}

// still returns the refusal without its details that may change while the problem stays.
func (r Refusal) still() Refusal {
	r.More, r.Detail, r.Source = 0, "", ""
	r.Object = Resource{APIVersion: r.Object.APIVersion, Kind: r.Object.Kind, Namespace: r.Object.Namespace, Name: r.Object.Name}
	return r
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

// about returns the subject of a refusal, without the reason.
func (r Refusal) about() Refusal {
	return Refusal{Resource: r.Resource, Field: r.Field, Warning: r.Warning}
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
			space.count++
			if space.count > maxRefused {
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
	if slices.Equal(refused, l.reported) && (l.allRecorded || l.opts.Recorder == nil) {
		return
	}
	l.reported, l.allRecorded = slices.Clone(refused), true
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
	stored := map[Refusal]bool{}
	for _, r := range byResource(unheard, 3) {
		reason := map[bool]string{false: "Refused", true: "Warned"}[r.Warning]
		stored[Refusal{Resource: r.Resource, Warning: r.Warning}] = l.record(r.Object, eventWarning, reason, r.what())
	}
	for _, r := range unheard {
		recorded := stored[Refusal{Resource: r.Resource, Warning: r.Warning}]
		now[r.still()], l.allRecorded = recorded, l.allRecorded && recorded
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
