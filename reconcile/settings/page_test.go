package settings

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/internal/strictyaml"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/cases"
)

var update = flag.Bool("update", false, "write docs/settings.md")

const (
	pageFile   = "../../docs/settings.md"
	movingFile = "../../docs/moving.md"
)

// pageHead is what stands above the tables.
const pageHead = `# Settings

Settings are a whole controller as data: the resources to watch, the templates, the intervals and the tests. ` + "`examples/settings`" + ` runs them. This page is made of the Go types in [reconcile/settings](../reconcile/settings): ` + "`go test ./reconcile/settings -run TestPage -update`" + ` writes it.

- Settings stand in a file (` + "`-settings FILE`" + `) or in the key ` + "`" + ConfigMapKey + "`" + ` of a ConfigMap.
- A change takes effect while everything runs, in one step. A mistake changes nothing: the log names its line, and the settings from before stay in use.
- Editors and pipelines can check a file with the [JSON schema](../reconcile/settings/settings.schema.json).
- A duration is written as in Go: ` + "`500ms`, `2s`, `1m30s`" + `.
- Names of keys of the reference system: [moving.md](moving.md#the-reference-system).

[examples/settings/testdata/settings.yaml](../examples/settings/testdata/settings.yaml) is a complete file. This one runs its tests:

    go run ./examples/settings -settings examples/settings/testdata/settings.yaml -test

[templates.md](templates.md) says what a template can do.
`

// pageTail is what stands below them.
const pageTail = `
## Tests

A test is a case: fixtures, and what the templates must make of them. ` + "`go doc ./reconcile/cases.Parse`" + ` has the whole format, [templates.md](templates.md#tests) a table. Settings with a case that fails do not take effect.
`

// kindsOfText says what a text must be, by the tag of its field.
var kindsOfText = map[string]string{ // constant in effect
	"path": "a JSONPath", "apiVersion": "a group and a version", "resource": "a resource", "name": "a name", "labels": "a label selector",
	"fields": "a field selector", "folder": "an absolute path", "namespaces": "a namespace, or `*`", "host": "a host", "key": "a key",
}

// sections are the types that have a table of their own, by the order of the page.
func sections() []section {
	return []section{
		{"The whole", reflect.TypeFor[Settings]()},
		{"A watched resource", reflect.TypeFor[WatchedResource]()},
		{"A template", reflect.TypeFor[Template]()},
		{"each", reflect.TypeFor[ForEach]()},
		{"A step of postProcessing", reflect.TypeFor[PostProcess]()},
		{"params", reflect.TypeFor[PostProcessParams]()},
		{"reconcile", reflect.TypeFor[Intervals]()},
		{"dataplane", reflect.TypeFor[Dataplane]()},
		{"podSelector", reflect.TypeFor[PodSelector]()},
		{"tls", reflect.TypeFor[TLS]()},
		{"A key of a Secret", reflect.TypeFor[KeyRef]()},
		{"A Secret", reflect.TypeFor[SecretRef]()},
		{"logging", reflect.TypeFor[Logging]()},
	}
}

type section struct {
	title string
	typ   reflect.Type
}

// link leads to the table of a type.
func link(t reflect.Type) string {
	for _, s := range sections() {
		if s.typ == t {
			return "[" + s.title + "](#" + strings.ReplaceAll(strings.ToLower(s.title), " ", "-") + ")"
		}
	}
	return ""
}

// valueOf says what a field takes.
func valueOf(t reflect.Type, f strictyaml.Field) string {
	switch {
	case link(t) != "":
		return link(t)
	case t == reflect.TypeFor[metav1.Duration]():
		return "a duration"
	case t == reflect.TypeFor[cases.Case]():
		return "[a case](#tests)"
	case t.Kind() == reflect.Map:
		return "by name: " + valueOf(t.Elem(), strictyaml.Field{})
	case t.Kind() == reflect.Slice:
		return "a list: " + valueOf(t.Elem(), f)
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Int && f.Max != "":
		return "a number up to " + f.Max
	case t.Kind() == reflect.Int:
		return "a number"
	case f.Enum != "":
		return "`" + strings.ReplaceAll(f.Enum, ",", "`, `") + "`"
	case kindsOfText[f.Is] != "":
		return kindsOfText[f.Is]
	}
	return "text"
}

// page is docs/settings.md.
func page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, s := range sections() {
		fmt.Fprintf(&b, "\n## %s\n\n| Key | Value | Meaning |\n|---|---|---|\n", s.title)
		row := func(key, value, doc string) {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", key, value, strings.NewReplacer("|", `\|`, "*", `\*`).Replace(doc))
		}
		if s.typ == reflect.TypeFor[Intervals]() {
			for _, i := range new(reconcile.Options).Intervals() {
				if i.Name != "" {
					row(i.Name, "a duration", i.Doc+" Empty: "+i.Default.String()+".")
				}
			}
			continue
		}
		for _, f := range strictyaml.Fields(s.typ) {
			doc := f.Doc
			if f.Required != "" {
				doc = "Required. " + doc
			}
			row(f.Name, valueOf(f.Type, f), strings.TrimSpace(doc))
		}
	}
	b.WriteString(pageTail)
	return b.String()
}

// TestPage: docs/settings.md says what the types do, and each type has a table.
func TestPage(t *testing.T) {
	if *update {
		require.NoError(t, os.WriteFile(pageFile, []byte(page()), 0o644))
	}
	text, err := os.ReadFile(pageFile)
	require.NoError(t, err)
	require.Equal(t, page(), string(text), "run go test -run TestPage -update in this folder")
	for _, s := range sections() {
		if s.typ.Kind() != reflect.Struct {
			continue
		}
		for _, f := range strictyaml.Fields(s.typ) {
			typ := f.Type
			for typ.Kind() == reflect.Map || typ.Kind() == reflect.Slice {
				typ = typ.Elem()
			}
			if typ.Kind() == reflect.Struct {
				require.NotEqual(t, "text", valueOf(f.Type, f), "%s.%s has no table", s.typ.Name(), f.Name)
			}
			require.Contains(t, append([]string{""}, sortedKinds()...), f.Is, "%s.%s: kindsOfText lacks it", s.typ.Name(), f.Name)
		}
	}
}

func sortedKinds() []string {
	var all []string
	for is := range kindsOfText {
		all = append(all, is)
	}
	slices.Sort(all)
	return all
}

// TestMovingPage: docs/moving.md has each key of the reference system that the parser
// answers with the one that there is here.
func TestMovingPage(t *testing.T) {
	text, err := os.ReadFile(movingFile)
	require.NoError(t, err)
	page := strings.ToLower(string(text))
	for key := range keysElsewhere() {
		require.Contains(t, page, "`"+key+"`", "a row of the table of settings is missing")
	}
}
