package cases

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/strictyaml"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// Case is a test of templates: which resources there are, and what the
// configuration must be. [Parse] reads cases, a [Runner] runs them.
type Case struct {
	Name        string
	Description string
	File        string // that it was read from
	Line        int

	Fixtures   []k8swatch.Object
	Previous   *dataplane.Config // what is deployed already; nil for nothing
	HTTP       map[string]string // what a fetch gets, by URL
	Assertions []Assertion
}

// Assertion is one thing that must hold in a [Case]; see [Parse]. Let Parse make it:
// otherwise its patterns are not compiled.
type Assertion struct {
	Type        string `yaml:"type" required:"true"`
	Target      string `yaml:"target"` // default: "haproxy.cfg", of jsonpath "rendered"
	Description string `yaml:"description"`
	Not         bool   `yaml:"not"` // it must not hold
	Line        int    `yaml:"-"`   // in the file of the case

	Pattern  string   `yaml:"pattern"`
	Patterns []string `yaml:"patterns"`
	Expected *Text    `yaml:"expected"` // nil: any value
	JSONPath string   `yaml:"jsonpath"`

	patterns []*regexp.Regexp // of Pattern and Patterns
	count    int              // of match_count
}

// Text is a string that a case may also write as a number or a boolean.
type Text string

// UnmarshalStrict reads any scalar.
func (t *Text) UnmarshalStrict(d *strictyaml.Document, path string, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode || d.Is(path, n, "!!str") {
		*t = Text(n.Value)
	}
}

// assertionType says which fields an assertion must and may have, besides the common ones,
// and how it judges. All types but haproxy_valid and deterministic look at a target. Those
// with a text function judge its text.
type assertionType struct {
	must, may []string
	text      func(t *target, a *Assertion) (problem string)
}

// assertionTypes are all types of assertions.
func assertionTypes() map[string]assertionType {
	return map[string]assertionType{
		"haproxy_valid": {},
		"deterministic": {},
		"contains":      {[]string{"pattern"}, []string{"target"}, (*target).contains},
		"not_contains":  {[]string{"pattern"}, []string{"target"}, (*target).lacks},
		"match_count":   {[]string{"pattern", "expected"}, []string{"target"}, (*target).count},
		"match_order":   {[]string{"patterns"}, []string{"target"}, (*target).order},
		"equals":        {[]string{"expected"}, []string{"target"}, (*target).equals},
		"jsonpath":      {[]string{"jsonpath"}, []string{"target", "expected"}, nil},
	}
}

// These are the targets of assertions besides files, which are "map:NAME", "file:NAME",
// "cert:NAME", "crt-list:NAME" and "ca:NAME".
const (
	mainTarget    = render.MainEntry  // the text of haproxy.cfg
	errorTarget   = "rendering_error" // why the render failed; empty if it did not
	refusedTarget = "refused"         // what was left out, and why; one a line
	jsonTarget    = "rendered"        // all of it as JSON: config, files, refused, resources
)

// fileTargets are the kinds of files by the prefix of their targets.
var fileTargets = []struct {
	prefix string
	kind   dataplane.FileKind
}{
	{"map:", dataplane.Map},
	{"file:", dataplane.General},
	{"cert:", dataplane.Certificate},
	{"crt-list:", dataplane.CRTList},
	{"ca:", dataplane.CA},
}

// fileTarget returns the kind and the name of a file; ok is false if the target is no file.
func fileTarget(target string) (kind dataplane.FileKind, name string, ok bool) {
	for _, t := range fileTargets {
		if name, ok := strings.CutPrefix(target, t.prefix); ok {
			return t.kind, name, true
		}
	}
	return "", "", false
}

// targetOf is the inverse of fileTarget.
func targetOf(f dataplane.File) string {
	for _, t := range fileTargets {
		if t.kind == f.Kind {
			return t.prefix + f.Name
		}
	}
	return string(f.Kind) + ":" + f.Name
}

// checkTarget says what is wrong with a target.
func checkTarget(typ, target string) error {
	kind, name, ok := fileTarget(target)
	switch {
	case ok:
		return dataplane.CheckFileName(kind, name)
	case target == jsonTarget && typ == "jsonpath":
		return nil
	case !slices.Contains([]string{mainTarget, errorTarget, refusedTarget}, target):
		return fmt.Errorf("no target %q, there is %s, %s, %s, and map:, file:, cert:, crt-list: or ca: with a name",
			target, mainTarget, errorTarget, refusedTarget)
	case typ == "jsonpath":
		return fmt.Errorf("%s is not JSON: %s is, and so may be a file:NAME", target, jsonTarget)
	}
	return nil
}

// String names an assertion as in "contains map:hosts.map /shop/".
func (a *Assertion) String() string {
	words := []string{a.Type}
	if a.Not {
		words = []string{"not", a.Type}
	}
	if a.Type != "haproxy_valid" && a.Type != "deterministic" {
		words = append(words, a.Target)
	}
	for _, p := range a.patterns {
		words = append(words, "/"+source(p)+"/")
	}
	if a.JSONPath != "" {
		words = append(words, a.JSONPath)
	}
	return strings.Join(words, " ")
}

// multiline makes ^ and $ match at lines.
const multiline = "(?m)"

// source returns a pattern as the case writes it.
func source(p *regexp.Regexp) string { return strings.TrimPrefix(p.String(), multiline) }

func compilePattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, fmt.Errorf("an empty pattern matches everything")
	}
	return regexp.Compile(multiline + text)
}
