package cases

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/hapticsdk/haptic/internal/jsonpath"
)

// assertionFields are the fields of each type beyond those of all: what it must
// have, and what it may.
var assertionFields = map[string]struct{ must, may []string }{
	assertValid:         {},
	assertDeterministic: {},
	assertContains:      {[]string{"pattern"}, []string{"target"}},
	assertNotContains:   {[]string{"pattern"}, []string{"target"}},
	assertMatchCount:    {[]string{"pattern", "expected"}, []string{"target"}},
	assertEquals:        {[]string{"expected"}, []string{"target"}},
	assertMatchOrder:    {[]string{"patterns"}, []string{"target"}},
	assertJSONPath:      {[]string{"jsonpath"}, []string{"target", "expected"}},
}

func assertionTypes() string {
	return strings.Join(slices.Sorted(maps.Keys(assertionFields)), ", ")
}

func (p *caseParser) assertion(node *yaml.Node) (a Assertion, ok bool) {
	before := len(p.errs)
	f, ok := p.fields(node, "an assertion", "type", "target", "description", "not", "pattern", "patterns", "expected", "jsonpath")
	if !ok {
		return a, false
	}
	a = Assertion{Type: p.text(node, f, "type", true), Line: node.Line}
	takes, known := assertionFields[a.Type]
	if !known {
		if a.Type != "" {
			p.failf(f["type"], "no type of assertion is %q, there is %s", a.Type, assertionTypes())
		}
		return a, false
	}
	for _, field := range takes.must {
		if f[field] == nil {
			p.failf(node, "%s needs %s", a.Type, field)
		}
	}
	for _, field := range []string{"target", "pattern", "patterns", "expected", "jsonpath"} {
		if f[field] != nil && !slices.Contains(takes.must, field) && !slices.Contains(takes.may, field) {
			p.failf(f[field], "%s takes no %s", a.Type, field)
		}
	}
	a.Description = p.text(node, f, "description", false)
	p.not(f["not"], &a)
	p.target(node, f, &a)
	p.patterns(f["pattern"], f["patterns"], &a)
	p.expected(node, f, &a)
	if at := f["jsonpath"]; at != nil {
		a.path = p.text(node, f, "jsonpath", true)
		if _, err := jsonpath.NewQuery(a.path, true); a.path != "" && err != nil {
			p.failf(at, "jsonpath: %w", err)
		}
	}
	return a, len(p.errs) == before
}

func (p *caseParser) not(at *yaml.Node, a *Assertion) {
	if at == nil {
		return
	}
	if at.Tag != "!!bool" || at.Decode(&a.Not) != nil {
		p.failf(at, "not: true or false is needed")
	}
}

func (p *caseParser) target(node *yaml.Node, f map[string]*yaml.Node, a *Assertion) {
	a.Target = mainTarget
	if a.Type == assertJSONPath {
		a.Target = jsonTarget
	}
	at := f["target"]
	if at == nil {
		return
	}
	if text := p.text(node, f, "target", true); text != "" {
		a.Target = text
		if err := checkTarget(a.Type, text); err != nil {
			p.failf(at, "target: %w", err)
		}
	}
}

func (p *caseParser) patterns(one, many *yaml.Node, a *Assertion) {
	add := func(at *yaml.Node) {
		at = aliased(at)
		if at.Kind != yaml.ScalarNode {
			p.failf(at, "pattern: a text is needed")
			return
		}
		re, err := compilePattern(at.Value)
		if err != nil {
			p.failf(at, "pattern: %w", err)
			re = regexp.MustCompile("") // the file is refused
		}
		a.patterns = append(a.patterns, re)
	}
	if one != nil {
		add(one)
	}
	if many == nil {
		return
	}
	if many.Kind != yaml.SequenceNode || len(many.Content) < 2 {
		p.failf(many, "patterns: a list of two or more is needed")
		return
	}
	for _, at := range many.Content {
		add(at)
	}
}

func (p *caseParser) expected(node *yaml.Node, f map[string]*yaml.Node, a *Assertion) {
	at := f["expected"]
	if at == nil {
		return
	}
	text := p.text(node, f, "expected", false)
	a.expected = &text
	if a.Type != assertMatchCount {
		return
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		p.failf(at, "expected: how many times is needed, %q is not a count", text)
	}
	a.count = n
}
