package jsonpath

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/client-go/third_party/forked/golang/template"
	"k8s.io/client-go/util/jsonpath"
)

// filter is the condition of [?(...)].
type filter struct {
	left, right operand
	compare     func(left, right any) (bool, error) // nil: left exists
}

// operand is a path below the element, or a constant.
type operand struct {
	path     []step
	constant any
}

var operators = map[string]func(left, right any) (bool, error){
	"exists": nil,
	"==":     func(l, r any) (bool, error) { return template.Equal(l, r) },
	"!=":     func(l, r any) (bool, error) { return template.NotEqual(l, r) },
	"<":      func(l, r any) (bool, error) { return template.Less(l, r) },
	"<=":     func(l, r any) (bool, error) { return template.LessEqual(l, r) },
	">":      func(l, r any) (bool, error) { return template.Greater(l, r) },
	">=":     func(l, r any) (bool, error) { return template.GreaterEqual(l, r) },
}

func filterOf(n *jsonpath.FilterNode) (*filter, error) {
	compare, ok := operators[n.Operator]
	if !ok {
		return nil, fmt.Errorf("a filter has no operator %s", n.Operator)
	}
	left, err := operandOf(n.Left.Nodes)
	if err != nil {
		return nil, err
	}
	f := &filter{left: left, compare: compare}
	if compare != nil {
		f.right, err = operandOf(n.Right.Nodes)
	}
	return f, err
}

func operandOf(nodes []jsonpath.Node) (o operand, err error) {
	if len(nodes) == 1 {
		switch n := nodes[0].(type) {
		case *jsonpath.TextNode:
			return operand{constant: n.Text}, nil
		case *jsonpath.IntNode:
			return operand{constant: n.Value}, nil
		case *jsonpath.FloatNode:
			return operand{constant: n.Value}, nil
		case *jsonpath.BoolNode:
			return operand{constant: n.Value}, nil
		}
	}
	o.path, err = stepsOf(nodes)
	return o, err
}

// passes reports whether an element of a list passes. Errors contain no values.
func (f *filter) passes(element reflect.Value) (bool, error) {
	left, err := f.left.values(element)
	if err != nil || f.compare == nil {
		return len(left) > 0, err
	}
	right, err := f.right.values(element)
	switch {
	case err != nil:
		return false, err
	case len(left) > 1 || len(right) > 1:
		return false, errors.New("a filter compares several values at once: select one on each side")
	case len(left) == 0 || len(right) == 0 || left[0] == nil || right[0] == nil:
		return false, nil
	}
	return f.compare(left[0], right[0])
}

func (o operand) values(element reflect.Value) (found []any, err error) {
	if o.constant != nil {
		return []any{o.constant}, nil
	}
	return (&walk{steps: o.path}).find(element)
}
