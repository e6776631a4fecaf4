package observe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hapticsdk/haptic/internal/jsonpath"
)

// Bounds of a field expression: what a short one can do to a value is bounded
// too, as long as it descends at most once and does not list the same again and
// again.
const (
	maxField       = 256 // bytes
	maxFieldCommas = 8
	maxFieldFound  = 10_000
)

// field picks a part of a value by JSONPath, as kubectl's -o jsonpath: {.a.b},
// .a.b, {.instances[*].name}, {.instances[?(@.failures>0)].name}. One result is
// returned as it is, any other number as a list.
func field(value any, expr string) (any, error) {
	if err := checkField(expr); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	if err := json.NewEncoder(&buf).Encode(value); err != nil {
		return nil, err
	}
	var data any
	if err := json.Unmarshal(buf.Bytes(), &data); err != nil {
		return nil, err
	}
	data = whole(data)
	query, err := jsonpath.NewQuery(expr, strings.Contains(expr, "?")) // a filter passes over what has not got the field
	if err != nil {
		return nil, err
	}
	found, err := query.Find(data)
	switch {
	case err != nil:
		return nil, err
	case len(found) > maxFieldFound:
		return nil, fmt.Errorf("more than %d results", maxFieldFound)
	case len(found) == 1:
		return found[0], nil
	}
	return found, nil
}

// checkField refuses expressions that could be made to cost much.
func checkField(expr string) error {
	inside := expr
	if strings.HasPrefix(expr, "{") && strings.HasSuffix(expr, "}") {
		inside = expr[1 : len(expr)-1]
	}
	switch {
	case len(expr) > maxField:
		return fmt.Errorf("longer than %d bytes", maxField)
	case strings.ContainsAny(inside, "{}"):
		return errors.New("want one expression, such as {.instances[*].name}")
	case strings.Contains(expr, "range"):
		return errors.New("range is not supported: use [*]")
	case strings.Count(expr, "..") > 1:
		return errors.New("more than one recursive descent (..)")
	case strings.Count(expr, ",") > maxFieldCommas:
		return fmt.Errorf("more than %d commas", maxFieldCommas)
	case strings.Count(expr, "?") > 2:
		return errors.New("more than two filters")
	}
	return nil
}

// whole makes integers of the whole numbers that JSON gave as floats, so that a
// filter can compare them with one.
func whole(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = whole(e)
		}
	case []any:
		for i, e := range v {
			v[i] = whole(e)
		}
	case float64:
		if n := int64(v); float64(n) == v {
			return n
		}
	}
	return v
}
