// Package strictyaml reads YAML into Go structs and reports all errors at once, each with
// its line. The tags of the fields have their names and their rules; see [Field].
package strictyaml

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of a file: a hostile one costs little.
const (
	maxBytes = 4 << 20 // a ConfigMap holds 1 MiB
	maxDepth = 32
	maxNodes = 100_000 // aliases followed
)

// Document is a file with the positions of its values. For values made in Go, use a nil
// Document.
type Document struct {
	File string
	Errs Errors // all errors so far

	// Elsewhere returns a hint for an unknown key, or for a key whose value has the wrong
	// type: what to write instead, or "". It gets the path. May be nil.
	Elsewhere func(path string) string

	lines []string
	marks map[string]*yaml.Node // by path
	wrong map[string]bool       // paths with an error
	nodes int
	over  bool
}

// Unmarshaler is a value that reads itself. It reports errors with d.Fail, and reads the
// values below it with d.Value. Implement it with a pointer receiver.
type Unmarshaler interface {
	UnmarshalStrict(d *Document, path string, n *yaml.Node)
}

// yamlLine finds the line in a message of the YAML library.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// Read parses a file and returns the roots of its documents. If the file is not YAML, the
// Document has the error.
func Read(file string, data []byte) (*Document, []*yaml.Node) {
	d := &Document{File: file, marks: map[string]*yaml.Node{}, wrong: map[string]bool{}, lines: strings.Split(string(data), "\n")}
	fail := func(line int, format string, args ...any) {
		d.Errs = append(d.Errs, &Error{File: file, Line: min(line, len(d.lines)), Column: 1, Message: fmt.Sprintf(format, args...)})
	}
	if len(data) > maxBytes {
		fail(0, "%d bytes are more than the %d that a file may have", len(data), maxBytes)
		return d, nil
	}
	if !utf8.Valid(data) {
		fail(0, "not UTF-8")
		return d, nil
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(data)))
	var roots []*yaml.Node
	for {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return d, roots
		}
		if err != nil {
			line, message := Broken(data, err)
			fail(line, "not YAML: %s", message)
			return d, nil
		}
		roots = append(roots, doc.Content...)
	}
}

// Broken returns the line, from 1, and the message of an error of the YAML library. For a
// tab the library names the first line of the previous value; Broken finds the line of the
// tab.
func Broken(data []byte, err error) (line int, message string) {
	message = err.Error()
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = message[len(m[0]):]
	}
	line = max(line, 1)
	if strings.HasPrefix(message, "found a tab character") {
		for n, text := range strings.Split(string(data), "\n")[min(line-1, bytes.Count(data, []byte("\n"))):] {
			if strings.HasPrefix(strings.TrimLeft(text, " "), "\t") {
				return line + n, message
			}
		}
	}
	return line, message
}

// Decode reads the document of a file into the value that v points to. It is an error if
// the file has several documents or none.
func (d *Document) Decode(roots []*yaml.Node, v any) {
	switch {
	case len(d.Errs) > 0:
	case len(roots) == 0:
		d.Errs = append(d.Errs, &Error{File: d.File, Line: 1, Column: 1, Message: "empty"})
	case len(roots) > 1:
		// The separator stands above the second document.
		d.Errs = append(d.Errs, &Error{File: d.File, Line: max(roots[1].Line-1, 1), Column: 1, Message: "more than one document"})
	default:
		d.Value("", roots[0], reflect.ValueOf(v).Elem())
	}
}

// Over reports whether the file exceeds a bound. Its values are incomplete then.
func (d *Document) Over() bool { return d.over }

// Fail notes an error of a node.
func (d *Document) Fail(n *yaml.Node, path, format string, args ...any) {
	e := d.Problem(path, format, args...)
	e.Line, e.Column = d.line(n), n.Column
	d.Errs, d.wrong[path] = append(d.Errs, e), true
}

// Failed reports whether reading the value at a path failed, or the value is missing.
func (d *Document) Failed(path string) bool { return d != nil && d.wrong[path] }

// line returns the line of a node: the library puts a missing value behind the last line.
func (d *Document) line(n *yaml.Node) int { return min(n.Line, len(d.lines)) }

func literal(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Style&yaml.LiteralStyle != 0 }

// Value decodes the node at path into v.
func (d *Document) Value(path string, n *yaml.Node, v reflect.Value) { d.value(path, n, v, 0) }

func (d *Document) value(path string, n *yaml.Node, v reflect.Value, depth int) {
	if d.over {
		return
	}
	d.nodes++
	if d.nodes > maxNodes || depth > maxDepth {
		d.tooLarge(n, path)
		return
	}
	if n.Kind == yaml.AliasNode {
		d.value(path, n.Alias, v, depth+1)
		return
	}
	d.marks[path] = n
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		d.Fail(n, path, "no value: give one, or leave the key out")
		return
	}
	if own, ok := v.Addr().Interface().(Unmarshaler); ok {
		d.nodes += size(n, maxNodes-d.nodes, depth)
		if d.nodes >= maxNodes {
			d.tooLarge(n, path)
			return
		}
		own.UnmarshalStrict(d, path, n)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Duration]() {
			d.duration(path, n, v)
		} else {
			d.object(path, n, v, depth)
		}
	case reflect.Map:
		if d.Is(path, n, "!!map") {
			v.Set(reflect.MakeMap(v.Type()))
			d.pairs(path, n, func(key, value *yaml.Node, at string) {
				item := reflect.New(v.Type().Elem()).Elem()
				d.value(at, value, item, depth+1)
				v.SetMapIndex(reflect.ValueOf(key.Value), item)
			})
		}
	case reflect.Slice:
		if d.Is(path, n, "!!seq") {
			v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
			for i, item := range n.Content {
				d.value(path+"["+strconv.Itoa(i)+"]", item, v.Index(i), depth+1)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(path, n, v.Elem(), depth)
	default:
		d.scalar(path, n, v)
	}
}

func (d *Document) tooLarge(n *yaml.Node, path string) {
	d.over = true
	d.Fail(n, path, "nested too deeply, or too large once aliases are followed")
}

// size counts nodes up to most, and follows aliases.
func size(n *yaml.Node, most, depth int) int {
	if depth > 2*maxDepth {
		return most
	}
	total := 1
	if n.Kind == yaml.AliasNode {
		return total + size(n.Alias, most-total, depth+1)
	}
	for _, child := range n.Content {
		if total >= most {
			return most
		}
		total += size(child, most-total, depth+1)
	}
	return total
}

// typeNames are the names of YAML's types in errors.
var typeNames = map[string]string{
	"!!str":   "a string",
	"!!int":   "a number",
	"!!float": "a number",
	"!!bool":  "a boolean",
	"!!map":   "a mapping",
	"!!seq":   "a list",
}

// Is reports whether a node has a type, and notes an error otherwise.
func (d *Document) Is(path string, n *yaml.Node, tag string) bool {
	if n.ShortTag() == tag {
		return true
	}
	have := typeNames[n.ShortTag()]
	if have == "" {
		have = n.ShortTag()
	}
	want, hint := typeNames[tag], ""
	switch {
	case tag == "!!str" && n.Kind == yaml.ScalarNode:
		hint = "; put it in quotes"
	case tag == "!!int" && n.ShortTag() == "!!float":
		want, have = "a whole number that fits", n.Value
	case tag == "!!bool" && n.Kind == yaml.ScalarNode:
		want = "true or false"
	}
	if n.Kind != yaml.ScalarNode {
		hint = d.elsewhere(path)
	}
	d.Fail(n, path, "%s wanted, not %s%s", want, have, hint)
	return false
}

// elsewhere returns the hint of Elsewhere as the end of a message.
func (d *Document) elsewhere(path string) string {
	if d.Elsewhere == nil {
		return ""
	}
	if say := d.Elsewhere(path); say != "" {
		return "; " + say
	}
	return ""
}

// object decodes a mapping into a struct.
func (d *Document) object(path string, n *yaml.Node, v reflect.Value, depth int) {
	if !d.Is(path, n, "!!map") {
		return
	}
	fields := Fields(v.Type())
	given := d.pairs(path, n, func(key, value *yaml.Node, at string) {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == key.Value })
		if i >= 0 {
			d.value(at, value, v.Field(fields[i].Index), depth+1)
			return
		}
		if say := d.elsewhere(at); say != "" {
			d.Fail(key, at, "unknown key%s", say)
			return
		}
		names := make([]string, len(fields))
		for i, f := range fields {
			names[i] = f.Name
		}
		d.Fail(key, at, "%s", Unknown(key.Value, names))
	})
	for _, f := range fields {
		if f.Required != "" && !given[f.Name] {
			d.Fail(n, Child(path, f.Name), "missing")
		}
	}
}

// pairs calls each with the pairs of a mapping and returns the keys. It refuses repeated
// keys.
func (d *Document) pairs(path string, n *yaml.Node, each func(key, value *yaml.Node, at string)) map[string]bool {
	first, given := map[string]int{}, map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := Child(path, key.Value)
		switch line, twice := first[key.Value]; {
		case key.ShortTag() == "!!merge":
			d.Fail(key, path, "merge keys (<<) are not available")
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			d.Fail(key, path, "a key must be a string; put it in quotes")
		case twice:
			d.Fail(key, at, "given twice, first in line %d", line)
		default:
			first[key.Value], given[key.Value] = key.Line, true
			each(key, n.Content[i+1], at)
		}
	}
	return given
}

// insteadOf returns the end of a message that names a scalar value.
func insteadOf(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		return ""
	}
	return ", in place of " + n.Value
}

func (d *Document) duration(path string, n *yaml.Node, v reflect.Value) {
	if n.ShortTag() != "!!str" {
		d.Fail(n, path, "a duration with its unit wanted, such as 500ms or 2s%s", insteadOf(n))
		return
	}
	value, err := time.ParseDuration(n.Value)
	if err != nil {
		d.Fail(n, path, "%q is no duration, such as 500ms or 2s", n.Value)
		return
	}
	v.Set(reflect.ValueOf(metav1.Duration{Duration: value}))
}

func (d *Document) scalar(path string, n *yaml.Node, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if d.Is(path, n, "!!str") {
			v.SetString(n.Value)
		}
	case reflect.Bool:
		if d.Is(path, n, "!!bool") {
			v.SetBool(strings.EqualFold(n.Value, "true"))
		}
	case reflect.Int:
		if !d.Is(path, n, "!!int") {
			return
		}
		i, err := strconv.ParseInt(n.Value, 0, 32)
		if err != nil {
			d.Fail(n, path, "%s is no number that fits", n.Value)
			return
		}
		v.SetInt(i)
	}
}
