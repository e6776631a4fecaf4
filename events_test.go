package haptic

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/event"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

// reports are the events that say something of themselves.
func reports() []event.Event {
	return slices.Concat(reconcile.Events(), settings.Events(), discover.Events(), fetch.Events(), observe.Events())
}

// Names are for ever, and one for each event; events that count the same metric do
// it in the same way.
func TestReports(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(\.[a-z]+)+$`)
	names, metrics := map[string]bool{}, map[string]event.Metric{}
	for _, e := range reports() {
		r := e.Report()
		if !name.MatchString(r.Name) || names[r.Name] {
			t.Errorf("%T: %q is not a name, or that of another", e, r.Name)
		}
		names[r.Name] = true
		for _, m := range r.Metrics {
			m.Value, m.By = 0, nil
			if other, ok := metrics[m.Name]; ok && !reflect.DeepEqual(m, other) || m.Help == "" {
				t.Errorf("%T: counts %s in another way: %+v and %+v", e, m.Name, m, other)
			}
			metrics[m.Name] = m
		}
	}
	if len(metrics) < 16 {
		t.Errorf("found only %d metrics", len(metrics))
	}
}

// events are all types that this module publishes on a bus.
func events() []any {
	var all []any
	for _, e := range reports() {
		all = append(all, e)
	}
	return all
}

// shared says why nobody writes to what all subscribers to an event share: by
// type, or by the struct and its field.
var shared = map[string]string{
	"*dataplane.Result":               "nobody writes to it once Sync has returned it",
	"ReconciliationStarted.Reasons":   "the loop begins another list when it publishes this one",
	"ReconciliationCompleted.Reasons": "the same",
	"ReconciliationFailed.Reasons":    "the same",
	"TemplateRendered.Resources":      "a copy",
	"InstancesChanged.Instances":      "made for the event",
	"InstancesChanged.Added":          "made for the event",
	"InstancesChanged.Removed":        "made for the event",
	"IndexSynchronized.Resources":     "made for the event",
	"DeploymentCompleted.Instances":   "made for the event",
	"DeploymentCompleted.Failed":      "made for the event",
	"DeploymentCompleted.Superseded":  "made for the event",
	"Applied.Started":                 "made for the event",
	"Applied.Stopped":                 "made for the event",
	"Fault.Resources":                 "complete when the Fault is made",
	"Quarantined.Instances":           "replaced as a whole",
}

// An event goes to all subscribers by assignment, so none has an exported field
// through which one of them could write to what the others see: no slice, no
// map, no pointer to a struct with exported fields, but for those of the list
// above.
func TestEventsAreImmutable(t *testing.T) {
	unused := maps.Clone(shared)
	for _, event := range events() {
		typ := reflect.TypeOf(event)
		for _, at := range writable(typ, typ.String()) {
			if _, ok := shared[at]; !ok {
				t.Errorf("%v: subscribers share %s and can write to it: give a copy through a method, or add to the list why nobody does", typ, at)
			}
			delete(unused, at)
		}
	}
	for at := range unused {
		t.Errorf("the list has %s, which no event shares", at)
	}
}

// writable finds what can be written to through the exported fields of typ, which
// stands at a field. A pointer to a struct without exported fields is fine:
// its methods decide. So are interfaces, functions and channels.
func writable(typ reflect.Type, at string) []string {
	switch typ.Kind() {
	case reflect.Slice, reflect.Map:
		return []string{at}
	case reflect.Pointer:
		elem := typ.Elem()
		if elem.Kind() == reflect.Struct && !slices.ContainsFunc(reflect.VisibleFields(elem), reflect.StructField.IsExported) {
			return nil
		}
		if _, ok := shared[typ.String()]; ok {
			at = typ.String()
		}
		return []string{at}
	case reflect.Array:
		return writable(typ.Elem(), at)
	case reflect.Struct:
		var found []string
		for i := range typ.NumField() {
			if f := typ.Field(i); f.IsExported() {
				found = append(found, writable(f.Type, typ.Name()+"."+f.Name)...)
			}
		}
		return found
	}
	return nil
}

// No event is forgotten in the functions Events of its package: whatever has the
// method Report is one.
func TestEventsAreKnown(t *testing.T) {
	known := map[string]bool{}
	for _, event := range events() {
		typ := reflect.TypeOf(event)
		known[typ.PkgPath()+"."+typ.Name()] = true
	}
	declared := 0
	for _, name := range sources(t) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != "Report" {
				continue
			}
			declared++
			receiver, ok := fn.Recv.List[0].Type.(*ast.Ident)
			if !ok {
				t.Errorf("%s: an event is a pointer, which everyone can write through", name)
				continue
			}
			if typ := path.Join(module, filepath.ToSlash(filepath.Dir(name))) + "." + receiver.Name; !known[typ] {
				t.Errorf("%s: add the event %s to Events of its package", name, typ)
			}
		}
	}
	if declared < 25 {
		t.Errorf("found only %d events", declared)
	}
}

// theirs are the names of events of the reference system.
var theirs = strings.Fields(`config.parsed config.validated config.invalid config.validation.request
	config.validation.response config.published resource.index.updated resource.sync.complete index.synchronized
	reconciliation.triggered reconciliation.started reconciliation.completed reconciliation.failed
	template.rendered template.render.failed validation.started validation.completed validation.failed
	deployment.scheduled deployment.started deployment.completed instance.deployed instance.deployment.failed
	drift.prevention.triggered haproxy.pods.discovered credentials.updated credentials.invalid
	leader.became leader.lost leader.observed http.resource.updated http.resource.accepted http.resource.rejected`)

// TestEventsByTheNamesOfTheReferenceSystem keeps the table of docs/events.md: each name
// there is a row, an event here with that name stands in it, and no event is missing.
func TestEventsByTheNamesOfTheReferenceSystem(t *testing.T) {
	text, err := os.ReadFile("docs/events.md")
	require.NoError(t, err)
	section := string(text)
	rows := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| `+"`([a-z.]+\\.[a-z.]+)`"+` \| ([\w.-]+)`).FindAllStringSubmatch(section, -1) {
		rows[row[1]] = row[2]
	}
	_, others, _ := strings.Cut(section, "Events without a like there:")
	for _, name := range theirs {
		if rows[name] == "" {
			t.Errorf("%s has no row", name)
		}
	}
	if len(rows) != len(theirs) {
		t.Errorf("the table has %d rows, and the reference system %d events", len(rows), len(theirs))
	}
	for _, e := range reports() {
		is, name := reflect.TypeOf(e).String(), e.Report().Name
		if row, ok := rows[name]; ok && row != is {
			t.Errorf("the row of %s has %s: that event is %s", name, row, is)
		} else if known := regexp.MustCompile(`\b` + is + `\b`).MatchString(others); ok == known {
			t.Errorf("%s stands in the table, or with those without a like there, once: add it to docs/events.md", is)
		}
	}
	for name, is := range rows {
		if is != "-" && !slices.ContainsFunc(reports(), func(e event.Event) bool { return e.Report().Name == name }) {
			t.Errorf("the row of %s has %s: no event has that name", name, is)
		}
	}
}

// sources are the Go files of this module that are no tests.
func sources(t *testing.T) []string {
	var names []string
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			names = append(names, name)
		}
		return err
	})
	require.NoError(t, err)
	return names
}

// The search for writable fields finds slices, maps and open pointers only.
func TestWritable(t *testing.T) {
	type opaque struct{ n map[string]int }
	type open struct{ N int }
	type Embedded struct{ Tags []string }
	for _, c := range []struct {
		event any
		want  []string
	}{
		{struct {
			Name   string
			At     time.Time
			Err    error
			Done   func()
			Ended  chan struct{}
			Nested struct{ N [3]int }
			Opaque *opaque
			hidden []string
		}{}, nil},
		{struct {
			Items []string
			Deep  struct{ ByName map[string]int }
			Array [2]*open
			Count *int
			Embedded
		}{}, []string{".Items", ".ByName", ".Array", ".Count", "Embedded.Tags"}},
		{struct{ Result *dataplane.Result }{}, []string{"*dataplane.Result"}},
		{[]string{}, []string{"an event"}},
		{&open{}, []string{"an event"}},
	} {
		if got := writable(reflect.TypeOf(c.event), "an event"); !slices.Equal(got, c.want) {
			t.Errorf("%T: found %q, want %q", c.event, got, c.want)
		}
	}
}
