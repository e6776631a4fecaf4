package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/rendering"
	"github.com/hapticsdk/haptic/reconcile/internal/quarantine"
)

// Quarantined is a resource with which the configuration is not valid, or one that is held
// back until it is tried. The loop serves its version of the last valid configuration, or
// leaves it out. If an instance refuses the resource, it is the version that the instance has.
type Quarantined struct {
	Resource Resource  `json:"resource"`        // in the version that was at fault
	Before   Resource  `json:"before,omitzero"` // the version that is served instead; zero: none
	Fault    Fault     `json:"fault"`           // what is wrong with it
	Since    time.Time `json:"since"`
	RetryAt  time.Time `json:"retryAt"` // when the loop tries it again, changed or not
	Tries    int       `json:"tries"`   // failed tries of this version

	// Instances refuse it, although the validator accepts it; sorted by name. Empty: the
	// validator refuses it.
	Instances []string `json:"instances,omitempty"`
}

// String returns one line for a log.
func (q Quarantined) String() string { return q.Resource.located() + ": " + q.what() }

// what says what is wrong, and which version is served.
func (q Quarantined) what() string {
	if q.Before != (Resource{}) {
		return q.Fault.String() + "; the earlier version is served"
	}
	return q.Fault.String() + "; left out"
}

// quarantinedOf describes an object that is held back.
func quarantinedOf(h *quarantine.Held) Quarantined {
	q := Quarantined{Since: h.Since, RetryAt: h.RetryAt, Tries: h.Tries, Instances: h.Instances}
	q.Resource, _ = ResourceOf(h.Bad)
	q.Before, _ = ResourceOf(h.Good)
	fault, ok := h.About.(Fault)
	if !ok {
		fault = Fault{Message: "it changed together with what is at fault, and waits until it is tried"}
	}
	q.Fault = fault
	if ok && !fault.hangs {
		if r, known := fault.Culprit(); !known || r.Key() != h.Key {
			q.Fault.Resources = []Resource{q.Resource}
		}
	}
	return q
}

// faultsOf returns the faults of an error as quarantine sees them. An error without faults is
// one of no line.
func faultsOf(e *ConfigError) (all []quarantine.Fault) {
	for _, f := range e.Faults {
		one := quarantine.Fault{About: f, Fixed: f.fixed(), Soon: f.hangs, Kind: f.Template.String()}
		if f.Position == (dataplane.Position{}) { // a render failed
			one.Kind += f.Message
		}
		for _, obj := range slices.Backward(objectsOf(f.origin.Owners)) {
			one.Objects = append(one.Objects, obj)
		}
		if len(one.Objects) == 0 {
			for _, r := range slices.Backward(f.Resources) {
				one.Objects = append(one.Objects, r)
			}
		}
		space := ""
		if len(one.Objects) > 0 {
			space = namespaceOf(one.Objects[0])
		}
		// A tenant who names an object of another must not have that set back.
		for _, obj := range objectsOf(f.origin.Reads) {
			if space == "" || namespaceOf(obj) == space {
				one.Objects = append(one.Objects, obj)
			}
		}
		if f.Template.Line > 0 {
			one.Place = f.Template.String()
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		all = []quarantine.Fault{{About: Fault{Message: e.Err.Error()}}}
	}
	return all
}

func namespaceOf(obj any) string { key, _ := keyOf(obj); return key.Namespace }

// fixed reports whether a template line prints nothing of any resource.
func (f Fault) fixed() bool {
	return f.Position != (dataplane.Position{}) && f.Template.Text != "" &&
		!strings.Contains(f.Template.Text, "{{") && !strings.Contains(f.Template.Text, "show")
}

// Release tries all quarantined resources again at once. Call it when the renderer changes
// its meaning, such as after a change of the templates: wrong resources may be right now. It
// never blocks.
func (l *Loop) Release() {
	l.mu.Lock()
	l.release = true
	l.mu.Unlock()
	l.Trigger("release from quarantine")
}

// takeRelease carries out Release. The caller holds l.rendering.
func (l *Loop) takeRelease() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.release {
		return
	}
	l.release, l.gaveUp = false, nil
	l.quarantine.Forget()
	for _, w := range l.workers {
		w.rounds, w.gaveUp = 0, ""
	}
}

// publishQuarantine publishes what entered quarantine and left it, and shows what is in it. The
// caller holds l.rendering.
func (l *Loop) publishQuarantine(id uint64, changes []quarantine.Change) {
	changes = append(l.unpublished, changes...)
	l.unpublished, l.publishedAt = nil, time.Now()
	var entered []Quarantined
	for _, c := range changes {
		if c.Reason == "" {
			entered = append(entered, quarantinedOf(c.Held))
		}
	}
	for i, a := range AlikeQuarantined(entered) {
		eventbus.Publish(l.bus, ResourceQuarantined{ID: id, Quarantined: entered[i], Alike: a})
	}
	var released []ResourceReleased
	for _, c := range changes {
		if c.Reason == "" || c.Status != quarantine.Quarantined {
			continue // no event named it
		}
		r, _ := ResourceOf(c.Bad)
		released = append(released, ResourceReleased{ID: id, Resource: r, Reason: c.Reason})
		if _, told := l.recorded[c.Key]; told {
			l.record(r, eventNormal, "Released", "released from quarantine: "+c.Reason)
			delete(l.recorded, c.Key)
		}
	}
	for i, a := range alike(released, func(e ResourceReleased) (name, cause string) { return e.Resource.String(), e.Reason }) {
		released[i].Alike = a
		eventbus.Publish(l.bus, released[i])
	}
	for _, c := range changes {
		if _, told := l.recorded[c.Key]; told && c.Reason == "" {
			l.recorded[c.Key] = false // of another version
		}
	}
	l.showQuarantine()
}

// publishTogether is publishQuarantine for a trial. If another one follows at once, they are told
// together, after three seconds and then less and less often: many bad objects make few lines.
func (l *Loop) publishTogether(id uint64, changes []quarantine.Change) {
	now, next := time.Now(), l.quarantine.Next()
	follows := len(l.wake) == 0 && !next.IsZero() && !next.After(now)
	switch {
	case !follows:
		l.publishEvery = 0
	case now.Sub(l.publishedAt) < max(l.publishEvery, 3*time.Second):
		l.unpublished = append(l.unpublished, changes...)
		l.showQuarantine()
		return
	default:
		l.publishEvery = min(2*max(l.publishEvery, 3*time.Second), time.Minute)
	}
	l.publishQuarantine(id, changes)
}

// showQuarantine updates the public copy, and tells the Recorder what is new.
func (l *Loop) showQuarantine() {
	var public []Quarantined
	for _, h := range l.quarantine.All() {
		q := quarantinedOf(h)
		if h.Status == quarantine.Quarantined && !l.recorded[h.Key] &&
			l.record(q.Resource, eventWarning, "Quarantined", "the configuration is not valid with it: "+q.what()) {
			l.recorded[h.Key] = true
		}
		public = append(public, q)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Quarantined = public
	l.withdrawSoon()
}

// nextTrial returns when the next quarantined resource is due; zero means never. After a
// failed reconciliation the loop tries none.
func (l *Loop) nextTrial() (at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.LastError != "" {
		return at
	}
	for _, v := range l.state.Quarantined {
		if at.IsZero() || v.RetryAt.Before(at) {
			at = v.RetryAt
		}
	}
	return at
}

// Quarantines reports whether such an error makes the loop quarantine a resource.
func (l *Loop) Quarantines(e *ConfigError) bool {
	return !l.opts.NoQuarantine && isVerdict(e.Err) &&
		slices.ContainsFunc(e.Faults, func(f Fault) bool { _, ok := f.Culprit(); return ok })
}

// tooLong is the fault of what a render or a validation hangs with: the template line, if it
// is known.
func tooLong(a *attempt, limit time.Duration, then string) Fault {
	f := Fault{
		hangs: true,
		Message: fmt.Sprintf(
			"%s takes longer than %s%s",
			map[bool]string{true: "validating", false: "rendering"}[a.err.Stage == "validate"],
			limit.Round(100*time.Millisecond),
			then,
		),
	}
	if len(a.err.Faults) > 0 {
		f.Template, f.Resources, f.origin = a.err.Faults[0].Template, a.err.Faults[0].Resources, a.err.Faults[0].origin
	}
	return f
}

// without names the objects that a configuration lacks, as they are quarantined.
func without(q *quarantine.Quarantine) (all []rendering.Key) {
	for _, h := range q.All() {
		if h.Good == nil {
			all = append(all, h.Key)
		}
	}
	return all
}
