package cases

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// Case is a test of templates that stands beside them: which resources there
// are, and what the configuration must be. [Parse] reads cases,
// [Runner] runs them.
type Case struct {
	Name        string
	Description string
	File        string // where it stands
	Line        int

	Fixtures   []k8swatch.Object
	Previous   *dataplane.Config // what is deployed already; nil for nothing
	HTTP       map[string]string // what a fetch gets, by URL
	Assertions []Assertion
}

// The types of assertions; see [Parse].
const (
	assertValid         string = "haproxy_valid" // the validator accepts the configuration
	assertContains      string = "contains"      // the pattern matches
	assertNotContains   string = "not_contains"  // the pattern does not match
	assertMatchCount    string = "match_count"   // the pattern matches so many times
	assertEquals        string = "equals"        // the target is this text, to the byte
	assertJSONPath      string = "jsonpath"      // the expression has this value or, without one, any
	assertMatchOrder    string = "match_order"   // the first matches of the patterns follow one another
	assertDeterministic string = "deterministic" // every render makes the same, in whatever order the fixtures are
)

// What an assertion may look at besides files, which are "map:NAME",
// "file:NAME", "cert:NAME", "crt-list:NAME" and "ca:NAME".
const (
	mainTarget    = render.MainEntry  // the text of haproxy.cfg
	errorTarget   = "rendering_error" // why the render failed; empty if it did not
	refusedTarget = "refused"         // what was left out, and why; one a line
	jsonTarget    = "rendered"        // all of it as JSON: config, files, refused, resources
)

// Assertion is one thing that must hold in a [Case].
type Assertion struct {
	Type        string // "contains"
	Target      string // "haproxy.cfg" where a case does not say
	Description string
	Not         bool // it must not hold
	Line        int  // in the file of the case

	expected *string // of equals and jsonpath
	count    int     // of match_count
	patterns []*regexp.Regexp
	path     string // of jsonpath
}

// String names an assertion as in "contains map:hosts.map /shop/".
func (a *Assertion) String() string {
	words := []string{a.Type}
	if a.Not {
		words = []string{"not", a.Type}
	}
	if a.Type != assertValid && a.Type != assertDeterministic {
		words = append(words, a.Target)
	}
	for _, p := range a.patterns {
		words = append(words, "/"+strings.TrimPrefix(p.String(), multiline)+"/")
	}
	if a.path != "" {
		words = append(words, a.path)
	}
	return strings.Join(words, " ")
}

// multiline makes ^ and $ match at lines.
const multiline = "(?m)"

func compilePattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, fmt.Errorf("an empty pattern matches everything")
	}
	return regexp.Compile(multiline + text)
}

// fileTargets are the kinds of files by what stands before their names.
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

// fileTarget returns the kind and the name of a file; ok is false for a target
// that is none.
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
func checkTarget(typ string, target string) error {
	kind, name, ok := fileTarget(target)
	switch {
	case ok:
		return dataplane.CheckFileName(kind, name)
	case target == mainTarget, target == errorTarget, target == refusedTarget:
		if typ == assertJSONPath {
			return fmt.Errorf("%s is not JSON: %s is, and so may be a file:NAME", target, jsonTarget)
		}
		return nil
	case target == jsonTarget && typ == assertJSONPath:
		return nil
	}
	return fmt.Errorf("no target %q, there is %s, %s, %s, and map:, file:, cert:, crt-list: or ca: with a name",
		target, mainTarget, errorTarget, refusedTarget)
}

// Error is a mistake in a file of cases.
type Error struct {
	File string
	Line int    // 1-based; 0 where the whole file is meant
	Case string // its name, if that is known
	Err  error
}

// Error implements error.
func (e *Error) Error() string {
	s := e.File
	if e.Line > 0 {
		s = fmt.Sprintf("%s:%d", s, e.Line)
	}
	if e.Case != "" {
		s += fmt.Sprintf(": case %q", e.Case)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap implements errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }
