package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/reconcile/cases"
)

// Bounds of settings, so that a hostile file costs little.
const (
	maxSettingsBytes = 4 << 20 // a ConfigMap holds 1 MiB
	maxSettingsDepth = 32
	maxSettingsNodes = 100_000 // aliases followed
)

// ConfigMapKey is the key of a ConfigMap that holds settings.
const ConfigMapKey = "settings.yaml"

// Parse reads settings from YAML, or JSON. It is strict: unknown and
// repeated keys, wrong types, durations, selectors, JSONPath, regular expressions
// and names of files are refused, all at once, as [Errors] in which each
// has its line. name says what the file is called in errors.
//
// Templates are not compiled, for that takes the host's functions: [NewProgram]
// does, and [ParseProgram] does both.
func Parse(name string, data []byte) (*Settings, error) {
	s, errs := readSettings(name, data)
	if len(errs) > 0 {
		return nil, errs.orNil()
	}
	return s, nil
}

// FromConfigMap reads the key [ConfigMapKey] of a ConfigMap, as
// [Parse] does; lines are those of its value. Other keys are refused:
// they would be settings that nobody reads.
func FromConfigMap(cm *corev1.ConfigMap) (*Settings, error) {
	text, errs := settingsText(cm)
	if len(errs) > 0 {
		return nil, errs.orNil()
	}
	return Parse(configMapName(cm), []byte(text))
}

// configMapName is what errors call the settings in a ConfigMap.
func configMapName(cm *corev1.ConfigMap) string {
	return "ConfigMap " + cm.Namespace + "/" + cm.Name + " " + ConfigMapKey
}

func settingsText(cm *corev1.ConfigMap) (string, Errors) {
	name := "ConfigMap " + cm.Namespace + "/" + cm.Name
	text, ok := cm.Data[ConfigMapKey]
	var errs Errors
	if !ok {
		errs = append(errs, &Error{File: name, Message: "the key " + ConfigMapKey + " is missing"})
	}
	for key := range cm.Data {
		if key != ConfigMapKey {
			errs = append(errs, &Error{File: name, Message: fmt.Sprintf("unknown key %q, only %s is read", key, ConfigMapKey)})
		}
	}
	for key := range cm.BinaryData {
		errs = append(errs, &Error{File: name, Message: fmt.Sprintf("unknown binary key %q, only %s is read", key, ConfigMapKey)})
	}
	return text, errs
}

// readSettings returns what could be read along with what is wrong, so that the
// templates of settings with a mistake elsewhere can be compiled all the same. It
// is nil where nothing could be read.
func readSettings(name string, data []byte) (*Settings, Errors) {
	p := &settingsParser{src: &settingsSource{file: name, marks: map[string]mark{}, wrong: map[string]bool{}}}
	root, err := p.document(data)
	if err != nil {
		return nil, Errors{err}
	}
	s := &Settings{source: p.src}
	p.value("", root, reflect.ValueOf(s).Elem(), "", 0)
	if p.over { // what follows would be noise
		return nil, p.errs
	}
	return s, append(p.errs, s.check()...)
}

// settingsParser decodes YAML nodes into the Go type, and notes where each value
// stands.
type settingsParser struct {
	src   *settingsSource
	errs  Errors
	nodes int
	over  bool
}

// settingsLine finds the line in a message of the YAML library.
var settingsLine = regexp.MustCompile(`^yaml: line (\d+): `)

// document parses the one document of the file.
func (p *settingsParser) document(data []byte) (*yaml.Node, *Error) {
	fail := func(line int, format string, args ...any) (*yaml.Node, *Error) {
		return nil, &Error{File: p.src.file, Line: line, Column: 1, Message: fmt.Sprintf(format, args...)}
	}
	if len(data) > maxSettingsBytes {
		return fail(0, "%d bytes are more than the %d that settings may have", len(data), maxSettingsBytes)
	}
	if !utf8.Valid(data) {
		return fail(0, "not UTF-8")
	}
	if line, what := oddBreak(data); line > 0 {
		return fail(line, "has the line break %q, after which nobody counts lines alike", what)
	}
	if depth := flowDepth(data); depth > maxSettingsDepth*4 {
		return fail(0, "brackets are nested too deeply")
	}
	p.src.lines = strings.Split(string(data), "\n")
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	var first, second yaml.Node
	if err := decoder.Decode(&first); err != nil {
		if errors.Is(err, io.EOF) {
			return fail(1, "empty")
		}
		message, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
		if m := settingsLine.FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1])
			message = err.Error()[len(m[0]):]
		}
		return fail(min(line, len(p.src.lines)), "not YAML: %s", message)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return fail(min(max(second.Line, 1), len(p.src.lines)), "more than one document")
	}
	if len(first.Content) != 1 {
		return fail(1, "empty")
	}
	return first.Content[0], nil
}

// oddBreak finds the first break that ends a line in YAML, but not in an editor
// or in a template, and its line.
func oddBreak(data []byte) (line int, what string) {
	line = 1
	for i := 0; i < len(data); i++ {
		switch rest := data[i:]; {
		case data[i] == '\n':
			line++
		case data[i] == '\r' && (len(rest) == 1 || rest[1] != '\n'):
			return line, "\r"
		case bytes.HasPrefix(rest, []byte("\u0085")):
			return line, "\u0085"
		case bytes.HasPrefix(rest, []byte("\u2028")), bytes.HasPrefix(rest, []byte("\u2029")):
			return line, string(rest[:3])
		}
	}
	return 0, ""
}

// flowDepth is the most brackets that are open at once; those in texts count too,
// which harms nobody as long as the bound is generous.
func flowDepth(data []byte) (most int) {
	depth := 0
	for _, c := range data {
		switch c {
		case '[', '{':
			depth++
			most = max(most, depth)
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return most
}

func (p *settingsParser) fail(n *yaml.Node, path, format string, args ...any) {
	// The library puts a value that is not there behind the last line.
	line := min(n.Line, len(p.src.lines))
	p.errs = append(p.errs, &Error{File: p.src.file, Line: line, Column: n.Column, Path: path, Message: fmt.Sprintf(format, args...)})
}

// value decodes n into v. tag is the enum of the field, "" for none.
func (p *settingsParser) value(path string, n *yaml.Node, v reflect.Value, enum string, depth int) {
	if p.over {
		return
	}
	if p.nodes++; p.nodes > maxSettingsNodes || depth > maxSettingsDepth {
		p.over = true
		p.fail(n, path, "the settings are nested too deeply, or too large once aliases are followed")
		return
	}
	if n.Kind == yaml.AliasNode {
		p.value(path, n.Alias, v, enum, depth+1)
		return
	}
	p.src.marks[path] = mark{line: min(n.Line, len(p.src.lines)), column: n.Column, literal: n.Kind == yaml.ScalarNode && n.Style&yaml.LiteralStyle != 0}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		p.fail(n, path, "no value: give one, or leave the key out")
		return
	}
	if v.Type() == reflect.TypeFor[metav1.Duration]() {
		p.duration(path, n, v)
		return
	}
	if v.Type() == reflect.TypeFor[[]cases.Case]() {
		p.cases(path, n, v)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		p.object(path, n, v, depth)
	case reflect.Map:
		p.keyed(path, n, v, depth)
	case reflect.Slice:
		p.list(path, n, v, depth)
	default:
		p.scalar(path, n, v, enum)
	}
}

// wants are the names of YAML's types for those who read the errors.
var yamlTypes = map[string]string{"!!str": "a string", "!!int": "a number", "!!float": "a number", "!!bool": "a boolean", "!!map": "a mapping", "!!seq": "a list"}

func (p *settingsParser) is(path string, n *yaml.Node, tag string) bool {
	if n.ShortTag() == tag {
		return true
	}
	have := yamlTypes[n.ShortTag()]
	if have == "" {
		have = n.ShortTag()
	}
	want, hint := yamlTypes[tag], ""
	switch {
	case tag == "!!str" && n.Kind == yaml.ScalarNode:
		hint = "; put it in quotes"
	case tag == "!!int" && n.ShortTag() == "!!float":
		want, have = "a whole number that fits", n.Value
	case tag == "!!bool" && n.Kind == yaml.ScalarNode:
		want = "true or false"
	}
	p.src.wrong[path] = true
	p.fail(n, path, "%s wanted, not %s%s", want, have, hint)
	return false
}

// object decodes a mapping into a struct.
func (p *settingsParser) object(path string, n *yaml.Node, v reflect.Value, depth int) {
	if !p.is(path, n, "!!map") {
		return
	}
	fields := settingsFields(v.Type())
	given := p.pairs(path, n, func(key, value *yaml.Node, at string) {
		i := slices.IndexFunc(fields, func(f settingsField) bool { return f.name == key.Value })
		if i < 0 {
			p.unknown(key, at, fields)
			return
		}
		p.value(at, value, v.FieldByIndex(fields[i].index), fields[i].enum, depth+1)
	})
	for _, f := range fields {
		if f.required && !given[f.name] {
			p.fail(n, childPath(path, f.name), "missing")
		}
	}
}

// unknown says what may have been meant.
func (p *settingsParser) unknown(key *yaml.Node, at string, fields []settingsField) {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	if near := nearest(key.Value, names); near != "" {
		p.fail(key, at, "unknown key; did you mean %s?", near)
		return
	}
	p.fail(key, at, "unknown key, there is %s", strings.Join(names, ", "))
}

// pairs goes over the keys of a mapping and returns them; repeated ones are
// refused.
func (p *settingsParser) pairs(path string, n *yaml.Node, each func(key, value *yaml.Node, at string)) map[string]bool {
	first := map[string]int{}
	given := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.ShortTag() == "!!merge" {
			p.fail(key, path, "merge keys (<<) are not available")
			continue
		}
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
			p.fail(key, path, "a key must be a string; put it in quotes")
			continue
		}
		at := childPath(path, key.Value)
		if line, twice := first[key.Value]; twice {
			p.fail(key, at, "given twice, first in line %d", line)
			continue
		}
		first[key.Value], given[key.Value] = key.Line, true
		each(key, n.Content[i+1], at)
	}
	return given
}

// keyed decodes a mapping into a map.
func (p *settingsParser) keyed(path string, n *yaml.Node, v reflect.Value, depth int) {
	if !p.is(path, n, "!!map") {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	p.pairs(path, n, func(key, value *yaml.Node, at string) {
		item := reflect.New(v.Type().Elem()).Elem()
		p.value(at, value, item, "", depth+1)
		v.SetMapIndex(reflect.ValueOf(key.Value), item)
	})
}

func (p *settingsParser) list(path string, n *yaml.Node, v reflect.Value, depth int) {
	if !p.is(path, n, "!!seq") {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		p.value(path+"["+strconv.Itoa(i)+"]", item, v.Index(i), "", depth+1)
	}
}

func (p *settingsParser) duration(path string, n *yaml.Node, v reflect.Value) {
	if n.ShortTag() != "!!str" {
		p.fail(n, path, "a duration with its unit wanted, such as 500ms or 2s")
		return
	}
	d, err := time.ParseDuration(n.Value)
	switch {
	case err != nil:
		p.fail(n, path, "%q is no duration, such as 500ms or 2s", n.Value)
	case d < 0:
		p.fail(n, path, "%s is negative", n.Value)
	default:
		v.Set(reflect.ValueOf(metav1.Duration{Duration: d}))
	}
}

// cases decodes validation tests, which have a parser of their own.
func (p *settingsParser) cases(path string, n *yaml.Node, v reflect.Value) {
	if !p.is(path, n, "!!seq") {
		return
	}
	if p.nodes += treeSize(n, maxSettingsNodes-p.nodes, 0); p.nodes >= maxSettingsNodes {
		p.over = true
		p.fail(n, path, "the cases are nested too deeply, or too large once aliases are followed")
		return
	}
	found, err := cases.Decode(p.src.file, n)
	for _, err := range flatten(err) {
		e := &Error{File: p.src.file, Line: n.Line, Column: n.Column, Path: path, Message: err.Error(), Err: err}
		var at *cases.Error
		if errors.As(err, &at) {
			e.Message = at.Err.Error()
			if at.Case != "" {
				e.Message = fmt.Sprintf("case %q: %s", at.Case, e.Message)
			}
			if at.Line > 0 {
				e.Line, e.Column = at.Line, 1
			}
		}
		p.errs = append(p.errs, e)
	}
	v.Set(reflect.ValueOf(found))
	p.src.cases, err = yaml.Marshal(n)
	if err != nil {
		p.fail(n, path, "%v", err)
	}
}

// treeSize counts nodes with aliases followed, up to most.
func treeSize(n *yaml.Node, most, depth int) int {
	if depth > maxSettingsDepth {
		return most
	}
	size := 1
	if n.Kind == yaml.AliasNode {
		return size + treeSize(n.Alias, most-size, depth+1)
	}
	for _, child := range n.Content {
		if size >= most {
			return most
		}
		size += treeSize(child, most-size, depth+1)
	}
	return size
}

// flatten takes joined errors apart.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}

func (p *settingsParser) scalar(path string, n *yaml.Node, v reflect.Value, enum string) {
	switch v.Kind() {
	case reflect.String:
		if !p.is(path, n, "!!str") {
			return
		}
		if options := strings.Split(enum, ","); enum != "" && !slices.Contains(options, n.Value) {
			p.fail(n, path, "%q is not one of %s", n.Value, strings.Join(options, ", "))
			return
		}
		v.SetString(n.Value)
	case reflect.Bool:
		if p.is(path, n, "!!bool") {
			v.SetBool(strings.EqualFold(n.Value, "true"))
		}
	case reflect.Int:
		if !p.is(path, n, "!!int") {
			return
		}
		i, err := strconv.ParseInt(n.Value, 0, 32)
		if err != nil {
			p.fail(n, path, "%s is no number that fits", n.Value)
			return
		}
		v.SetInt(i)
	}
}
