package reconcile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// drawing is the one of events.go: each rule as a regular expression over names of
// events, each with a space behind it.
type drawing struct {
	rules  map[string]string
	events []string // that it names
}

func readDrawing(t *testing.T) *drawing {
	text, err := os.ReadFile("events.go")
	require.NoError(t, err)
	d := &drawing{rules: map[string]string{}}
	for _, m := range regexp.MustCompile(`(?m)^//\t(\w+): +(.+)$`).FindAllStringSubmatch(string(text), -1) {
		d.rules[m[1]] = m[2]
	}
	require.Contains(t, d.rules, "reconciliation")
	require.Contains(t, d.rules, "instance")
	return d
}

// pattern expands a rule.
func (d *drawing) pattern(t *testing.T, rule string) *regexp.Regexp {
	var expand func(body string) string
	expand = func(body string) string {
		body = regexp.MustCompile(`\w+`).ReplaceAllStringFunc(body, func(word string) string {
			if inner, ok := d.rules[word]; ok {
				return "(?:" + expand(inner) + ")"
			}
			d.events = append(d.events, word)
			return "(?:" + word + ";)"
		})
		return strings.ReplaceAll(body, " ", "")
	}
	re, err := regexp.Compile("^(?:" + expand(d.rules[rule]) + ")$")
	require.NoError(t, err)
	return re
}

// order is what the events of a loop were, by reconciliation and by instance.
type order struct {
	reconciliations []string
	ids             []uint64
	instances       map[string]string
	revisions       map[uint64]string
	early           []string // about a configuration that was not complete
}

func orderOf(events []any) *order {
	o := &order{instances: map[string]string{}, revisions: map[uint64]string{}}
	completed := map[uint64]bool{}
	for _, e := range events {
		v := reflect.ValueOf(e)
		name := v.Type().Name()
		id, instance := v.FieldByName("ID"), v.FieldByName("Instance")
		fleet := name == "DeploymentCompleted"
		if id.IsValid() && (fleet || instance.IsValid() || name == "ReconciliationCompleted") {
			o.revisions[id.Uint()] += name + ";"
		}
		switch {
		case !id.IsValid() || fleet:
		case instance.IsValid():
			o.instances[instance.String()] += name + ";"
			if !completed[id.Uint()] {
				o.early = append(o.early, name)
			}
		default:
			if name == "ReconciliationStarted" {
				o.reconciliations, o.ids = append(o.reconciliations, ""), append(o.ids, id.Uint())
			}
			completed[id.Uint()] = completed[id.Uint()] || name == "ReconciliationCompleted"
			n := len(o.ids) - 1
			if n < 0 || o.ids[n] != id.Uint() {
				o.early = append(o.early, name)
				continue
			}
			o.reconciliations[n] += name + ";"
		}
	}
	return o
}

// inOrder checks the events of a scene against the drawing.
func inOrder(t *testing.T, s *scene) string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	d, o := readDrawing(t), orderOf(s.events)
	require.Empty(t, o.early)
	reconciliation, instance, revision := d.pattern(t, "reconciliation"), d.pattern(t, "instance"), d.pattern(t, "revision")
	for _, sequence := range o.revisions {
		require.Regexp(t, revision, sequence)
	}
	for i, sequence := range o.reconciliations {
		require.EqualValues(t, i+1, o.ids[i], "numbers grow by one")
		require.Regexp(t, reconciliation, sequence)
	}
	for name, sequence := range o.instances {
		require.Regexp(t, instance, sequence, name)
	}
	return strings.Join(o.reconciliations, "") + fmt.Sprint(o.instances, o.revisions)
}

// TestEventsComeAsDrawn replays reconciliations of each kind against the drawing at
// the head of events.go.
func TestEventsComeAsDrawn(t *testing.T) {
	w := newWard(t, map[string]string{"haproxy.cfg": loopTemplate})
	w.put("a")
	var refused []Refusal
	var broken atomic.Bool
	opts := w.options()
	opts.Renderer = RendererFunc(func(ctx context.Context) (*Rendered, error) {
		if broken.Load() {
			return nil, errors.New("broken")
		}
		r, err := w.Render(ctx)
		if r != nil {
			r.Refused = refused
		}
		return r, err
	})
	two := old("two", "too-new")
	opts.Targets = []Target{w.target, two}
	var seen string
	play(t, opts, func(s *scene) {
		for what, happens := range []func(){
			func() { w.put("b") },
			func() {}, // nothing
			func() { w.put("c=bad") },
			func() { w.put("c=bad still") },
			func() { w.put("c=fine") },
			func() { refused = []Refusal{{Resource: "Ingress ns/a", Reason: "no"}} },
			func() { refused = nil },
			func() { broken.Store(true) },
			func() { broken.Store(false); w.broken = errors.New("no haproxy") },
			func() { w.broken = nil; w.put("b=too-new") },
			func() {
				w.put("b=fine")
				two.set(0, func(context.Context, *dataplane.Config) error { return errors.New("no") })
			},
			func() { two.set(0, nil); w.target.set(dataplane.ImpactReload, nil); w.put("d") },
			func() { w.put("e") },
			func() { require.NoError(t, s.SetTargets(two)) },
		} {
			happens()
			s.Trigger(fmt.Sprint(what))
			pass(700 * time.Millisecond)
		}
		pass(3 * time.Minute)
		two.set(dataplane.ImpactReload, nil)
		for _, change := range []string{"f", "g"} { // the second one waits when the loop ends
			w.put(change)
			s.Trigger(change)
			pass(700 * time.Millisecond)
		}
		s.end()
		seen = inOrder(t, s)
	})
	d := readDrawing(t)
	d.pattern(t, "reconciliation")
	d.pattern(t, "instance")
	d.pattern(t, "revision")
	for _, name := range d.events {
		require.Contains(t, seen, name+";", "it is drawn, and never came")
	}
}

// TestTheDrawingForbids what must not come.
func TestTheDrawingForbids(t *testing.T) {
	d := readDrawing(t)
	reconciliation, instance := d.pattern(t, "reconciliation"), d.pattern(t, "instance")
	require.Regexp(t, reconciliation, "ReconciliationStarted;AttemptCompleted;TemplateRendered;ValidationCompleted;ReconciliationCompleted;")
	for _, wrong := range []string{
		"", "ReconciliationStarted;ReconciliationCompleted;", "ReconciliationStarted;AttemptCompleted;ReconciliationFailed;",
		"ReconciliationStarted;AttemptCompleted;ValidationCompleted;TemplateRendered;ReconciliationCompleted;",
		"ReconciliationStarted;AttemptCompleted;TemplateRendered;ValidationCompleted;ReconciliationCompleted;ResourceQuarantined;",
	} {
		require.NotRegexp(t, reconciliation, wrong)
	}
	require.NotRegexp(t, instance, "InstanceDeployed;")
	revision := d.pattern(t, "revision")
	require.Regexp(t, revision, "ReconciliationCompleted;DeploymentStarted;DeploymentStarted;InstanceDeployed;InstanceDeployed;DeploymentCompleted;")
	require.NotRegexp(t, revision, "DeploymentCompleted;ReconciliationCompleted;")
	require.NotRegexp(t, revision, "ReconciliationCompleted;DeploymentCompleted;DeploymentCompleted;")
	require.NotRegexp(t, instance, "DeploymentStarted;InstanceDeployed;InstanceDeployed;")
}

// TestEventsOfATrialInVain: nothing is valid any more while something waits for its
// first trial, which is over with that.
func TestEventsOfATrialInVain(t *testing.T) {
	w := &town{target: &fakeTarget{name: "one"}}
	var broken atomic.Bool
	validator := ValidatorFunc(func(ctx context.Context, cfg *dataplane.Config) error {
		if broken.Load() {
			return &verdict{lines: []int{1}}
		}
		return w.Validate(ctx, cfg)
	})
	play(t, Options{Renderer: w, View: w.view(), Validator: validator, Targets: []Target{w.target}}, func(s *scene) {
		w.put("one", "a", "fine")
		w.put("two", "b", "fine")
		start(s)
		w.put("one", "a", "endless")
		w.put("two", "b", "endless")
		s.Trigger("both hang")
		pass(1300 * time.Millisecond) // the one is tried, and the other waits
		broken.Store(true)
		s.Trigger("the templates are wrong")
		pass(5 * time.Second)
		require.NotEmpty(t, s.State().LastError)
		inOrder(t, s)
	})
}
