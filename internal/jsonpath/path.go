// Package jsonpath is the path language of haptic: fields, keys, positions and filters of
// kubectl -o jsonpath, parsed by [k8s.io/client-go/util/jsonpath].
//
//	metadata.namespace
//	{.metadata.labels['kubernetes.io/service-name']}
//	{.spec.ports[?(@.name=="http")].port}
//
// Unlike kubectl it accepts an expression without braces, a quoted key with unescaped dots,
// and [*] of a map. It selects values and prints nothing: it refuses text. It also refuses
// "..", ranges and lists of positions: an index does not need them. [Path.Bind] refuses
// misspelt fields of a type. Such a mistake fails the start of a watcher, and does not
// become an index that stays empty.
//
// The package reads a path without a filter from typed objects directly, 5 to 20 times as
// fast as one with a filter. It reads that from nested maps.
package jsonpath

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// MaxLength bounds an expression, in bytes.
const MaxLength = 1024

// SyntaxError says what [Compile] refuses, and where.
type SyntaxError struct {
	Path   string // the expression
	Offset int    // position in Path, in bytes; -1 if unknown
	Reason string
}

func (e *SyntaxError) Error() string {
	at := ""
	if e.Offset >= 0 {
		at = fmt.Sprintf("wrong at offset %d: ", e.Offset)
	}
	return fmt.Sprintf("jsonpath %q: %s%s: use .field, ['key'], [3], [-1], [*] or [?(@.field==\"x\")]", e.Path, at, e.Reason)
}

// step is one part of a path.
type step struct {
	kind stepKind
	name string  // of a key
	pos  int     // of a position: from the end if negative
	test *filter // of a filter
}

type stepKind int

const (
	key stepKind = iota // a field of a struct, or a key of a map
	position
	all
	where // the elements of a list that pass a filter
)

// at returns the position in a list of n elements.
func (s step) at(n int) int {
	if s.pos < 0 {
		return s.pos + n
	}
	return s.pos
}

// Path is a compiled expression. It is immutable and safe for concurrent use.
type Path struct {
	expr    string
	text    string // the expression for client-go
	steps   []step
	filters bool
}

// String returns the expression of [Compile].
func (p *Path) String() string { return p.expr }

// rewritten matches text that client-go reads differently: a quoted key, and a dot before a
// bracket. Compile does not rewrite the quoted text of a filter: no bracket or comma is
// before it.
var rewritten = regexp.MustCompile(`\.\.|(\.?[\[,] *)?("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\.\[`)

// special matches a character that ends a field, escaped or not.
var special = regexp.MustCompile(`\\?([.,\[\]$@{}\s])`)

// Compile parses an expression. The braces and the first dot are optional: "{.spec.host}",
// "$.spec.host" and "spec.host" are the same path. The error is a [*SyntaxError].
func Compile(expr string) (*Path, error) {
	if len(expr) > MaxLength {
		return nil, &SyntaxError{Path: expr[:MaxLength/8] + "...", Offset: -1, Reason: fmt.Sprintf("it has %d bytes, at most %d are allowed", len(expr), MaxLength)}
	}
	text, end := expr, 0
	if !strings.HasPrefix(text, "{") {
		if !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "$") && !strings.HasPrefix(text, "@") {
			text = "." + text
		}
		text, end = "{"+text+"}", 1
	}
	text = rewritten.ReplaceAllStringFunc(text, func(s string) string {
		m := rewritten.FindStringSubmatch(s)
		switch {
		case s == ".[":
			return "["
		case m[1] == "":
			return s
		}
		return strings.TrimPrefix(m[1], ".") + "'" + special.ReplaceAllString(m[2][1:len(m[2])-1], `\$1`) + "'"
	})
	p := &Path{expr: expr, text: text}
	parser := jsonpath.NewParser("")
	if err := guard(func() error { return parser.Parse(text) }); err != nil {
		offset := -1
		if start := reflect.ValueOf(parser).Elem().FieldByName("start"); start.IsValid() && start.CanInt() { // client-go does not tell
			offset = max(0, len(expr)+end-(len(text)-int(start.Int())))
		}
		return nil, &SyntaxError{Path: expr, Offset: min(offset, len(expr)), Reason: err.Error()}
	}
	var err error
	if blocks := parser.Root.Nodes; len(blocks) != 1 {
		err = errors.New("a text or a range is outside of the braces")
	} else if block, ok := blocks[0].(*jsonpath.ListNode); !ok || len(block.Nodes) == 0 {
		err = errors.New("no field is named")
	} else {
		p.steps, err = stepsOf(block.Nodes)
	}
	if err != nil {
		return nil, &SyntaxError{Path: expr, Offset: -1, Reason: err.Error()}
	}
	p.filters = slices.ContainsFunc(p.steps, func(s step) bool { return s.kind == where })
	return p, nil
}

// guard makes an error of a panic of client-go.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it cannot be read: %v", r)
		}
	}()
	return f()
}

// CompileField parses an expression for [Bound.Delete]: a path without a filter.
func CompileField(expr string) (*Path, error) {
	p, err := Compile(expr)
	if err == nil && p.filters {
		return nil, fmt.Errorf("jsonpath %q: a path to a dropped field has a filter: use .field, ['key'], [3], [-1] and [*] only", expr)
	}
	return p, err
}

// stepsOf returns the steps of nodes of client-go's parser.
func stepsOf(nodes []jsonpath.Node) (steps []step, err error) {
	for _, node := range nodes {
		s := step{}
		switch n := node.(type) {
		case *jsonpath.FieldNode:
			s.name = n.Value
			if s.name == "" {
				return nil, errors.New("a field has no name")
			}
		case *jsonpath.WildcardNode:
			s.kind = all
		case *jsonpath.ArrayNode:
			from, to, by := n.Params[0], n.Params[1], n.Params[2]
			switch s.kind, s.pos = position, from.Value; {
			case !from.Known && !to.Known && !by.Known:
				s.kind = all
			case !from.Known || !to.Derived || by.Known:
				return nil, errors.New("a range of positions is not allowed")
			}
		case *jsonpath.FilterNode:
			s.kind = where
			if s.test, err = filterOf(n); err != nil {
				return nil, err
			}
		case *jsonpath.RecursiveNode:
			return nil, errors.New(".. is not allowed")
		case *jsonpath.UnionNode:
			return nil, errors.New("a list of keys or positions is not allowed")
		case *jsonpath.IdentifierNode:
			return nil, fmt.Errorf("%q is not allowed here", n.Name)
		default:
			return nil, errors.New("a text or a number is outside of a filter")
		}
		steps = append(steps, s)
	}
	return steps, nil
}
