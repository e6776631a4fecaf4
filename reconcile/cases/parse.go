package cases

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
)

// Folder is where cases stand in a folder of templates; see [Without].
const Folder = "cases"

// Read reads all cases in a folder and those below it: *.yaml and *.yml, in
// the order of their names. A folder that does not exist has none. The error
// joins everything that is wrong in any file, and two cases of one name are.
func Read(fsys fs.FS) ([]Case, error) {
	var cases []Case
	var errs []error
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".yaml" && path.Ext(name) != ".yml" {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		found, err := Parse(name, data)
		cases, errs = append(cases, found...), append(errs, err)
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	errs = append(errs, checkNames(cases))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return cases, nil
}

// checkNames finds cases of one name.
func checkNames(cases []Case) error {
	first := map[string]*Case{}
	var errs []error
	for i := range cases {
		c := &cases[i]
		if f := first[c.Name]; f != nil && c.Name != "" {
			errs = append(errs, &Error{c.File, c.Line, c.Name, fmt.Errorf("there is one of this name at %s:%d", f.File, f.Line)})
			continue
		}
		first[c.Name] = c
	}
	return errors.Join(errs...)
}

// Without is a folder of templates without its cases, for
// templating.Compile, which would take them for templates.
func Without(templates fs.FS) fs.FS { return withoutCases{templates} }

type withoutCases struct{ fs.FS }

func (w withoutCases) Open(name string) (fs.File, error) {
	if name == Folder || strings.HasPrefix(name, Folder+"/") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return w.FS.Open(name)
}

func (w withoutCases) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == Folder || strings.HasPrefix(name, Folder+"/") {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	entries, err := fs.ReadDir(w.FS, name)
	if name == "." {
		entries = slices.DeleteFunc(slices.Clone(entries), func(d fs.DirEntry) bool { return d.Name() == Folder })
	}
	return entries, err
}

// Parse reads the cases in a YAML file: one in each document, or a list of
// them. It is strict: a field that it does not know, a value of another type, a
// name or an assertion that is missing, a pattern or a manifest that is wrong.
// The error joins a [*Error] or a [*k8swatch.ManifestError] for each, with
// file and line; there are no cases then.
//
//	name: a host has a backend
//	description: ...                # optional
//	fixtures:                       # manifests: a list, or lists under names of your own
//	- apiVersion: networking.k8s.io/v1
//	  kind: Ingress
//	  ...
//	currentConfig: |                # optional: what is deployed already. With files:
//	  backend shop_web_80           #   {haproxy.cfg: text, "map:hosts.map": text}
//	  ...
//	http:                           # optional: what a fetch gets
//	  https://example.test/list: text
//	assertions:
//	- type: contains
//	  target: map:hosts.map         # optional: haproxy.cfg
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
//   - jsonpath: the expression in jsonpath has the value expected or, without
//     one, any;
//   - deterministic: every render makes the same, in whatever order the fixtures
//     are.
//
// A pattern is a regular expression of Go in which ^ and $ stand for the
// beginning and the end of a line; \Q...\E takes a text as it is.
//
// The targets are haproxy.cfg, map:NAME, file:NAME, cert:NAME, crt-list:NAME,
// ca:NAME, rendering_error (empty unless the render fails, with which all
// assertions about other targets fail) and refused (what was left out, one
// refusal a line). jsonpath looks at a file:NAME, or at "rendered": all of it,
// with the fields config, files (by target), refused and resources.
func Parse(name string, data []byte) ([]Case, error) {
	p := caseParser{file: name}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			line, text := yamlPosition(err)
			p.fail(line, errors.New(text))
			break
		}
		p.document(&doc)
	}
	if err := checkNames(p.cases); err != nil {
		p.errs = append(p.errs, err)
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return p.cases, nil
}

// Decode reads cases, one or a list, that stand within a YAML file of
// another kind, as [Parse] does; node says where.
func Decode(name string, node *yaml.Node) ([]Case, error) {
	p := caseParser{file: name}
	p.document(node)
	if err := checkNames(p.cases); err != nil {
		p.errs = append(p.errs, err)
	}
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return p.cases, nil
}

var caseYAMLLine = regexp.MustCompile(`^yaml: (?:unmarshal errors:\n\s+)?line (\d+): `)

func yamlPosition(err error) (line int, text string) {
	text = err.Error()
	if m := caseYAMLLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	return line, "not YAML: " + strings.TrimPrefix(text, "yaml: ")
}

// caseParser collects cases and everything that is wrong with them.
type caseParser struct {
	file  string
	name  string // of the case that is read
	cases []Case
	errs  []error
}

func (p *caseParser) fail(line int, err error) {
	p.errs = append(p.errs, &Error{p.file, line, p.name, err})
}

func (p *caseParser) failf(node *yaml.Node, format string, args ...any) {
	p.fail(node.Line, fmt.Errorf(format, args...))
}

func (p *caseParser) document(node *yaml.Node) {
	node = aliased(node)
	switch {
	case node.Kind == 0 || node.Tag == "!!null":
	case node.Kind == yaml.SequenceNode:
		for _, item := range node.Content {
			p.aCase(aliased(item))
		}
	default:
		p.aCase(node)
	}
}

// aliased returns what a document holds, or what an alias stands for.
func aliased(node *yaml.Node) *yaml.Node {
	for range 100 {
		switch {
		case node.Kind == yaml.DocumentNode && len(node.Content) == 1:
			node = node.Content[0]
		case node.Kind == yaml.AliasNode && node.Alias != nil:
			node = node.Alias
		default:
			return node
		}
	}
	return node
}

func (p *caseParser) aCase(node *yaml.Node) {
	p.name = ""
	f, ok := p.fields(node, "a case", "name", "description", "fixtures", "currentConfig", "http", "assertions")
	if !ok {
		return
	}
	c := Case{File: p.file, Line: node.Line}
	c.Name = p.text(node, f, "name", true)
	p.name = c.Name
	if strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' }) {
		p.failf(f["name"], "a name is one line")
	}
	c.Description = p.text(node, f, "description", false)
	if at := f["fixtures"]; at != nil {
		c.Fixtures = p.fixtures(at)
	}
	if at := f["currentConfig"]; at != nil {
		c.Previous = p.previous(at)
	}
	if at := f["http"]; at != nil {
		c.HTTP = p.texts(at, "http")
	}
	at := f["assertions"]
	switch {
	case at == nil:
		p.failf(node, "assertions are missing")
	case at.Kind != yaml.SequenceNode:
		p.failf(at, "assertions: a list is needed")
	case len(at.Content) == 0:
		p.failf(at, "there are no assertions")
	default:
		for _, item := range at.Content {
			if a, ok := p.assertion(aliased(item)); ok {
				c.Assertions = append(c.Assertions, a)
			}
		}
	}
	p.cases = append(p.cases, c)
}

// fields returns the values of a mapping by key; others than these are errors.
func (p *caseParser) fields(node *yaml.Node, what string, known ...string) (map[string]*yaml.Node, bool) {
	if node.Kind != yaml.MappingNode {
		if len(known) == 0 {
			p.failf(node, "%s: a mapping from text to text is needed", what)
		} else {
			p.failf(node, "%s has fields: %s", what, strings.Join(known, ", "))
		}
		return nil, false
	}
	found := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], aliased(node.Content[i+1])
		switch {
		case len(known) > 0 && !slices.Contains(known, key.Value):
			p.failf(key, "%s has no field %q, there is %s", what, key.Value, strings.Join(known, ", "))
		case key.Kind != yaml.ScalarNode:
			p.failf(key, "%s: a key is a text", what)
		case found[key.Value] != nil:
			p.failf(key, "%q is given twice", key.Value)
		default:
			found[key.Value] = value
		}
	}
	return found, true
}

// text returns the text of a field; node is where it should be.
func (p *caseParser) text(node *yaml.Node, f map[string]*yaml.Node, field string, required bool) string {
	at := f[field]
	switch {
	case at == nil && required, at != nil && required && at.Kind == yaml.ScalarNode && at.Value == "":
		p.failf(node, "%s is missing", field)
	case at == nil:
	case at.Kind != yaml.ScalarNode || at.Tag == "!!null":
		p.failf(at, "%s: a text is needed", field)
	default:
		return at.Value
	}
	return ""
}

// texts returns a mapping from text to text.
func (p *caseParser) texts(node *yaml.Node, what string) map[string]string {
	f, ok := p.fields(node, what)
	if !ok {
		return nil
	}
	texts := make(map[string]string, len(f))
	for key := range f {
		texts[key] = p.text(node, f, key, false)
	}
	return texts
}

// fixtures reads manifests: one, a list, or lists under names.
func (p *caseParser) fixtures(node *yaml.Node) (objs []k8swatch.Object) {
	var read func(node *yaml.Node, depth int)
	read = func(node *yaml.Node, depth int) {
		node = aliased(node)
		switch {
		case node.Kind == yaml.SequenceNode:
			for _, item := range node.Content {
				p.manifest(aliased(item), &objs)
			}
		case node.Kind == yaml.MappingNode && depth == 0 && !hasKey(node, "apiVersion") && !hasKey(node, "kind"):
			for i := 1; i < len(node.Content); i += 2 {
				read(node.Content[i], 1)
			}
		case node.Tag == "!!null":
		default:
			p.manifest(node, &objs)
		}
	}
	read(node, 0)
	all := make([]runtime.Object, len(objs))
	for i, o := range objs {
		all[i] = o
	}
	if _, err := k8swatch.NewStatic(all...); err != nil {
		p.failf(node, "fixtures: %w", err)
	}
	return objs
}

func hasKey(node *yaml.Node, key string) bool {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return true
		}
	}
	return false
}

func (p *caseParser) manifest(node *yaml.Node, objs *[]k8swatch.Object) {
	found, err := k8swatch.DecodeManifest(p.file, node)
	if err != nil {
		p.errs = append(p.errs, err)
		return
	}
	*objs = append(*objs, found...)
}

// previous reads a configuration: the text of haproxy.cfg, or texts by target.
func (p *caseParser) previous(node *yaml.Node) *dataplane.Config {
	main, files := node.Value, []dataplane.File(nil)
	if node.Kind != yaml.ScalarNode {
		texts := p.texts(node, "currentConfig")
		main = texts[mainTarget]
		for target, text := range texts {
			kind, name, ok := fileTarget(target)
			if ok {
				files = append(files, dataplane.File{Kind: kind, Name: name, Content: []byte(text)})
			} else if target != mainTarget {
				p.failf(node, "currentConfig: no file %q, there is %s, and map:, file:, cert:, crt-list: or ca: with a name", target, mainTarget)
			}
		}
	}
	cfg, err := dataplane.NewConfig(main, files...)
	if err != nil {
		p.failf(node, "currentConfig: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return cfg
}
