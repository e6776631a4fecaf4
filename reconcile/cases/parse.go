package cases

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/jsonpath"
	"github.com/hapticsdk/haptic/internal/strictyaml"
	"github.com/hapticsdk/haptic/k8swatch"
)

// Error is a mistake in a file of cases. It has a File, Line, Column, Path and Message, and
// in Err the cause, if there is one.
type Error = strictyaml.Error

// Errors are all mistakes in files of cases, by line.
type Errors = strictyaml.Errors

// Folder is the folder of the cases in a folder of templates; see [Without].
const Folder = "cases"

// Read reads all cases in a folder and those below it: *.yaml and *.yml, in the order of
// their names. A folder that does not exist has none. The error is an [Errors] of all
// mistakes in all files. Two cases with one name are a mistake.
func Read(fsys fs.FS) ([]Case, error) {
	var cases []Case
	var errs Errors
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".yaml" && path.Ext(name) != ".yml" {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		found, wrong := read(name, data)
		cases, errs = append(cases, found...), append(errs, wrong...)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	errs = append(errs, CheckNames(cases)...)
	if len(errs) > 0 {
		return nil, errs.OrNil()
	}
	return cases, nil
}

// CheckNames finds cases with the same name.
func CheckNames(cases []Case) (errs Errors) {
	first := map[string]*Case{}
	for i := range cases {
		c := &cases[i]
		if f := first[c.Name]; f != nil && c.Name != "" {
			errs = append(
				errs,
				&Error{File: c.File, Line: c.Line, Column: 1, Message: fmt.Sprintf("case %q: there is one of this name at %s:%d", c.Name, f.File, f.Line)},
			)
			continue
		}
		first[c.Name] = c
	}
	return errs
}

// Without returns a folder of templates without its cases. templating.Compile would take
// them for templates.
func Without(templates fs.FS) fs.FS { return withoutCases{templates} }

type withoutCases struct{ fs.FS }

func (w withoutCases) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.FS, name)
	if name == "." {
		entries = slices.DeleteFunc(slices.Clone(entries), func(d fs.DirEntry) bool { return d.Name() == Folder })
	}
	return entries, err
}

// Parse reads the cases in a YAML file: one in each document, or a list of them. It refuses
// unknown fields and wrong types. It also refuses a missing name or assertion, and a wrong
// pattern or manifest. The error is an [Errors] with file and line of each mistake; there
// are no cases then.
//
//	name: a host has a backend
//	description: ...                # optional
//	fixtures:                       # manifests: a list, or lists under names of your own
//	- apiVersion: networking.k8s.io/v1
//	  kind: Ingress
//	  ...
//	currentConfig: |                # optional: the text that is deployed already
//	  backend shop_web_80
//	  ...
//	http:                           # optional: what a fetch gets
//	  https://example.test/list: text
//	assertions:
//	- type: contains
//	  target: map:hosts.map         # optional: haproxy.cfg, for jsonpath rendered
//	  pattern: ^shop\.test
//	  description: ...              # optional
//	  not: true                     # optional: it must not hold
//
// The types of assertions are
//
//   - haproxy_valid: haproxy accepts the configuration;
//   - contains, not_contains: pattern matches, or does not;
//   - match_count: pattern matches as many times as expected says;
//   - match_order: the first matches of patterns follow one another;
//   - equals: the target is expected, to the byte;
//   - jsonpath: the expression in jsonpath, of the language of k8swatch, has the value expected or,
//     without one, any; a space joins several values;
//   - deterministic: every render makes the same, in any order of the fixtures.
//
// A pattern is a regular expression of Go in which ^ and $ stand for the beginning and the
// end of a line; \Q...\E takes a text as it is.
//
// The targets are
//
//   - haproxy.cfg, map:NAME, file:NAME, cert:NAME, crt-list:NAME, ca:NAME: the text of a
//     file;
//   - rendering_error: why the render failed, empty if it did not; after a failure,
//     assertions about all other targets fail;
//   - refused: the resources left out, one refusal a line;
//   - rendered, for jsonpath alone: everything, with the fields config, files (by target),
//     refused and resources. jsonpath also takes a file:NAME.
func Parse(name string, data []byte) ([]Case, error) {
	cases, errs := read(name, data)
	errs = append(errs, CheckNames(cases)...)
	if len(errs) > 0 {
		return nil, errs.OrNil()
	}
	return cases, nil
}

func read(name string, data []byte) (cases []Case, errs Errors) {
	d, roots := strictyaml.Read(name, data)
	for _, root := range roots {
		switch {
		case root.ShortTag() == "!!null":
		case root.Kind == yaml.SequenceNode:
			var list []Case
			d.Value("", root, reflect.ValueOf(&list).Elem())
			cases = append(cases, list...)
		default:
			var one Case
			d.Value("", root, reflect.ValueOf(&one).Elem())
			cases = append(cases, one)
		}
	}
	return cases, d.Errs
}

// caseFields are the fields of a case in YAML.
type caseFields struct {
	Name          string            `yaml:"name" required:"true"`
	Description   string            `yaml:"description"`
	Fixtures      fixtures          `yaml:"fixtures"`
	CurrentConfig previous          `yaml:"currentConfig"`
	HTTP          map[string]string `yaml:"http"`
	Assertions    []Assertion       `yaml:"assertions" required:"key"`
}

// UnmarshalStrict reads a case.
func (c *Case) UnmarshalStrict(d *strictyaml.Document, path string, n *yaml.Node) {
	var f caseFields
	before := len(d.Errs)
	d.Value(path, n, reflect.ValueOf(&f).Elem())
	d.Errs = append(d.Errs, d.Check(path, f, nil)...)
	if len(d.Errs) == before {
		if strings.ContainsFunc(f.Name, func(r rune) bool { return r < ' ' }) {
			d.Fail(n, path, "a name is one line")
		}
		if len(f.Assertions) == 0 {
			d.Fail(n, path, "there are no assertions")
		}
	}
	if f.Name != "" {
		for _, e := range d.Errs[before:] {
			e.Message = fmt.Sprintf("case %q: %s", f.Name, e.Message)
		}
	}
	*c = Case{Name: f.Name, Description: f.Description, File: d.File, Line: n.Line,
		Fixtures: f.Fixtures, Previous: f.CurrentConfig.config, HTTP: f.HTTP, Assertions: f.Assertions}
}

// fixtures are manifests: one, a list, or lists under names of your own.
type fixtures []k8swatch.Object

// UnmarshalStrict reads manifests.
func (f *fixtures) UnmarshalStrict(d *strictyaml.Document, path string, n *yaml.Node) {
	var all []runtime.Object
	for _, node := range manifests(n, 0) {
		found, err := k8swatch.DecodeManifest(d.File, node)
		for _, err := range split(err) {
			e := d.Problem(path, "%v", err)
			var at *k8swatch.ManifestError
			if errors.As(err, &at) {
				e.Line, e.Column, e.Message = max(at.Line, 1), 1, at.Err.Error()
			}
			d.Errs = append(d.Errs, e)
		}
		*f = append(*f, found...)
	}
	for _, o := range *f {
		all = append(all, o)
	}
	if _, err := k8swatch.NewStatic(all...); err != nil {
		d.Fail(n, path, "%v", err)
	}
}

func manifests(n *yaml.Node, depth int) (all []*yaml.Node) {
	has := func(key string) bool {
		return slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return c.Value == key })
	}
	switch {
	case n.Kind == yaml.AliasNode:
		return manifests(n.Alias, depth)
	case n.Kind == yaml.SequenceNode && depth < 2:
		for _, item := range n.Content {
			all = append(all, manifests(item, 2)...)
		}
		return all
	case n.Kind == yaml.MappingNode && depth == 0 && !has("apiVersion") && !has("kind"):
		for i := 1; i < len(n.Content); i += 2 {
			all = append(all, manifests(n.Content[i], 1)...)
		}
		return all
	case n.ShortTag() == "!!null":
		return nil
	}
	return []*yaml.Node{n}
}

// split takes joined errors apart.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// previous is a configuration: the text of haproxy.cfg.
type previous struct{ config *dataplane.Config }

// UnmarshalStrict reads a configuration.
func (p *previous) UnmarshalStrict(d *strictyaml.Document, path string, n *yaml.Node) {
	if !d.Is(path, n, "!!str") {
		return
	}
	var err error
	if p.config, err = dataplane.NewConfig(n.Value); err != nil {
		d.Fail(n, path, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// UnmarshalStrict reads an assertion.
func (a *Assertion) UnmarshalStrict(d *strictyaml.Document, path string, n *yaml.Node) {
	type plain Assertion // without UnmarshalStrict: it is read by its fields
	before := len(d.Errs)
	if d.Value(path, n, reflect.ValueOf((*plain)(a)).Elem()); len(d.Errs) > before {
		return
	}
	a.Line = n.Line
	typ, known := assertionTypes()[a.Type]
	if !known {
		d.Fail(
			n,
			strictyaml.Child(path, "type"),
			"no type of assertion is %q, there is %s",
			a.Type,
			strings.Join(slices.Sorted(maps.Keys(assertionTypes())), ", "),
		)
		return
	}
	given := map[string]bool{
		"target":   a.Target != "",
		"pattern":  a.Pattern != "",
		"patterns": a.Patterns != nil,
		"expected": a.Expected != nil,
		"jsonpath": a.JSONPath != "",
	}
	for _, field := range slices.Sorted(maps.Keys(given)) {
		switch must := slices.Contains(typ.must, field); {
		case must && !given[field]:
			d.Fail(n, path, "%s needs %s", a.Type, field)
		case given[field] && !must && !slices.Contains(typ.may, field):
			d.Fail(n, strictyaml.Child(path, field), "%s takes no %s", a.Type, field)
		}
	}
	if len(d.Errs) == before {
		a.compile(d, path, n)
	}
}

// compile checks the values of the fields, and compiles the patterns.
func (a *Assertion) compile(d *strictyaml.Document, path string, n *yaml.Node) {
	fail := func(field string, err error) {
		if err != nil {
			d.Errs = append(d.Errs, d.Problem(strictyaml.Child(path, field), "%v", err))
		}
	}
	if a.Target == "" && a.Type == "jsonpath" {
		a.Target = jsonTarget
	}
	a.Target = cmp.Or(a.Target, mainTarget)
	fail("target", checkTarget(a.Type, a.Target))
	if len(a.Patterns) == 1 {
		fail("patterns", errors.New("a list of two or more is needed"))
	}
	for i, text := range append(slices.Clone(a.Patterns), a.Pattern) {
		if text == "" && i == len(a.Patterns) {
			break // the field pattern is missing
		}
		re, err := compilePattern(text)
		fail("pattern", err)
		a.patterns = append(a.patterns, re)
	}
	var err error
	if a.JSONPath != "" {
		_, err = jsonpath.Compile(a.JSONPath)
		fail("jsonpath", err)
	}
	if a.Type == "match_count" {
		if a.count, err = strconv.Atoi(string(*a.Expected)); err != nil || a.count < 0 {
			fail("expected", fmt.Errorf("%q is not a count: write how many matches are expected, 0 or more", *a.Expected))
		}
	}
}
