package jsonpath

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/third_party/forked/golang/template"
	"k8s.io/client-go/util/jsonpath"
)

// Bounds of [Path.Find]. They stop an expensive expression, such as one with many "..".
const (
	maxWork    = 5_000_000 // visited values: about a second
	maxResults = 10_000
	maxMore    = 1 << 20 // bytes of the results beyond the size of the data
)

// Find returns the values that the path selects in data, in the order of the data; values
// of maps by key. data has the types of [Decode]. With missing, a missing field or position
// selects nothing. Without, it is an error, unless the path has a filter. Errors contain no
// values of the data.
func (p *Path) Find(data any, missing bool) (found []any, err error) {
	e := &evaluation{missing: missing || p.filters, left: maxWork}
	found = []any{}
	if err = e.blocks(&found, data, p.blocks); err == nil {
		err = bounded(found, data)
	}
	if err != nil {
		return nil, fmt.Errorf("jsonpath %q: %w", p.expr, err)
	}
	return found, nil
}

// Decode reads JSON for [Path.Find]. Whole numbers are int64: a filter can compare them
// with its numbers.
func Decode(text []byte) (data any, err error) {
	err = utiljson.Unmarshal(text, &data)
	return data, err
}

func bounded(found []any, data any) error {
	left, whole := after(maxMore, found), 0
	if left < 0 {
		whole = math.MaxInt - after(math.MaxInt, data)
		left = after(maxMore+whole, found)
	}
	if len(found) > maxResults || left < 0 {
		return fmt.Errorf("it selects more than %d values or %d bytes: select fewer", maxResults, maxMore+whole)
	}
	return nil
}

// after returns left minus the size of v in bytes. It stops below 0.
func after(left int, v any) int {
	left -= 8
	switch v := v.(type) {
	case string:
		left -= len(v)
	case map[string]any:
		for k, part := range v {
			if left = after(left-len(k), part); left < 0 {
				break
			}
		}
	case []any:
		for _, part := range v {
			if left = after(left, part); left < 0 {
				break
			}
		}
	}
	return left
}

// evaluation evaluates the nodes of client-go's parser. It does not use client-go's own
// evaluator. That one loses the values of other lists behind an empty or shorter list. Its
// errors print the data, which may be a Secret. It also visits each byte of a text.
type evaluation struct {
	missing bool
	left    int // of maxWork
}

// blocks appends the values that {..}{..} select, including ranges.
func (e *evaluation) blocks(found *[]any, data any, blocks []jsonpath.Node) error {
	for i := 0; i < len(blocks); i++ {
		nodes := blocks[i].(*jsonpath.ListNode).Nodes
		selected, err := e.list([]any{data}, nodes)
		if err != nil {
			return err
		}
		if !is(nodes, "range") {
			*found = append(*found, selected...)
			continue
		}
		begin := i + 1
		for open := 1; open > 0; {
			if i++; is(blocks[i].(*jsonpath.ListNode).Nodes, "range") {
				open++
			} else if is(blocks[i].(*jsonpath.ListNode).Nodes, "end") {
				open--
			}
		}
		for _, v := range selected {
			if err := e.blocks(found, v, blocks[begin:i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// is reports whether a block begins with range or end.
func is(nodes []jsonpath.Node, name string) bool {
	id, ok := nodes[0].(*jsonpath.IdentifierNode)
	return ok && id.Name == name
}

// list applies nodes one after the other.
func (e *evaluation) list(in []any, nodes []jsonpath.Node) (out []any, err error) {
	for _, node := range nodes {
		out = nil
		if union, ok := node.(*jsonpath.UnionNode); ok {
			for _, part := range union.Nodes {
				some, err := e.list(in, part.Nodes)
				if err != nil {
					return nil, err
				}
				out = append(out, some...)
			}
			in = out
			continue
		}
		for _, v := range in {
			if out, err = e.step(out, v, node); err != nil {
				return nil, err
			}
			if e.left--; e.left < 0 {
				return nil, errWork
			}
		}
		if field, ok := node.(*jsonpath.FieldNode); ok && len(in) > 0 && len(out) == 0 && !e.missing {
			return nil, fmt.Errorf("%s is not found", field.Value)
		}
		in = out
	}
	return in, nil
}

var errWork = fmt.Errorf("it looks at more than %d values: use fewer .. and commas", maxWork)

// step appends the values that a node selects in one value.
func (e *evaluation) step(out []any, v any, node jsonpath.Node) ([]any, error) {
	switch n := node.(type) {
	case *jsonpath.FieldNode:
		if m, ok := v.(map[string]any); ok {
			if part, ok := m[n.Value]; ok {
				out = append(out, part)
			}
		}
	case *jsonpath.WildcardNode:
		out = append(out, e.parts(v)...)
	case *jsonpath.RecursiveNode:
		out = e.recursive(out, v)
	case *jsonpath.ArrayNode:
		return e.array(out, v, n)
	case *jsonpath.FilterNode:
		return e.filter(out, v, n)
	case *jsonpath.IdentifierNode: // range
		out = append(out, v)
	case *jsonpath.TextNode:
		out = append(out, n.Text)
	case *jsonpath.IntNode:
		out = append(out, n.Value)
	case *jsonpath.FloatNode:
		out = append(out, n.Value)
	case *jsonpath.BoolNode:
		out = append(out, n.Value)
	}
	return out, nil
}

// parts returns the elements of a list, or the values of a map by key.
func (e *evaluation) parts(v any) (parts []any) {
	switch v := v.(type) {
	case []any:
		parts = v
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, v[k])
		}
	}
	e.left -= len(parts)
	return parts
}

// recursive appends v and all values in it that have parts.
func (e *evaluation) recursive(out []any, v any) []any {
	if parts := e.parts(v); len(parts) > 0 {
		out = append(out, v)
		for i := 0; i < len(parts) && e.left >= 0; i++ {
			out = e.recursive(out, parts[i])
		}
	}
	return out
}

func (e *evaluation) array(out []any, v any, n *jsonpath.ArrayNode) ([]any, error) {
	from, to, by := n.Params[0], n.Params[1], n.Params[2]
	if !from.Known && !to.Known && !by.Known {
		return append(out, e.parts(v)...), nil
	}
	list, ok := v.([]any)
	if !ok {
		if v != nil && !e.missing {
			return nil, fmt.Errorf("a position is applied to a %T: apply it to a list", v)
		}
		return out, nil
	}
	if from.Value < 0 {
		from.Value += len(list)
	}
	if !to.Known || to.Value < 0 || to.Value == 0 && to.Derived {
		to.Value += len(list)
	}
	first, end := max(from.Value, 0), min(to.Value, len(list))
	if !e.missing && from.Value != to.Value && (first != from.Value || end != to.Value || first >= end) {
		return nil, fmt.Errorf("array index out of bounds: index %d to %d, length %d", from.Value, to.Value-1, len(list))
	}
	e.left -= max(end-first, 0)
	for i := first; i < end; i += max(by.Value, 1) {
		out = append(out, list[i])
	}
	return out, nil
}

func (e *evaluation) filter(out []any, v any, n *jsonpath.FilterNode) ([]any, error) {
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("a filter is applied to a %T: apply it to a list", v)
	}
	for _, element := range list {
		left, err := e.list([]any{element}, n.Left.Nodes)
		if err == nil && n.Operator == "exists" {
			if len(left) > 0 {
				out = append(out, element)
			}
			continue
		}
		var right []any
		if err == nil {
			right, err = e.list([]any{element}, n.Right.Nodes)
		}
		switch {
		case err != nil:
			return nil, err
		case len(left) > 1 || len(right) > 1:
			return nil, errors.New("a filter compares several values at once: select one on each side")
		case len(left) == 0 || len(right) == 0 || left[0] == nil || right[0] == nil:
			continue
		}
		pass, err := compare(n.Operator, left[0], right[0])
		if err != nil {
			return nil, err
		}
		if pass {
			out = append(out, element)
		}
	}
	return out, nil
}

func compare(operator string, left, right any) (bool, error) {
	switch operator {
	case "<":
		return template.Less(left, right)
	case ">":
		return template.Greater(left, right)
	case "<=":
		return template.LessEqual(left, right)
	case ">=":
		return template.GreaterEqual(left, right)
	case "!=":
		return template.NotEqual(left, right)
	}
	return template.Equal(left, right)
}
