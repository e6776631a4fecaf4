package templating

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// content is implemented by *unstructured.Unstructured.
type content interface{ UnstructuredContent() map[string]any }

// lookup follows a path such as "spec.rules[0].host" or
// "metadata.annotations['a.b/c']" through maps and lists as encoding/json
// makes them. missing is the part of the path that is not there.
func lookup(obj any, path string) (v any, missing string, err error) {
	steps, err := parsePath(path)
	if err != nil {
		return nil, "", err
	}
	v = obj
	for i, step := range steps {
		if c, ok := v.(content); ok {
			v = c.UnstructuredContent()
		}
		here := strings.Join(steps[:i+1], ".")
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[step]
			if !ok {
				return nil, fmt.Sprintf("%s: no field %q, there is %s", here, step, fields(at)), nil
			}
			v = next
		case map[string]string:
			next, ok := at[step]
			if !ok {
				return nil, fmt.Sprintf("%s: no field %q", here, step), nil
			}
			v = next
		case []any:
			n, convErr := strconv.Atoi(step)
			if convErr != nil {
				return nil, "", fmt.Errorf("%s: a list has no field %q", here, step)
			}
			if n < 0 || n >= len(at) {
				return nil, fmt.Sprintf("%s: the list has %d elements", here, len(at)), nil
			}
			v = at[n]
		case nil:
			return nil, fmt.Sprintf("%s: nothing there", here), nil
		default:
			return nil, "", fmt.Errorf("%s: cannot look into a %T", here, v)
		}
	}
	return v, "", nil
}

func fields(m map[string]any) string {
	const most = 8
	names := slices.Sorted(maps.Keys(m))
	if len(names) > most {
		names = append(names[:most], "...")
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// parsePath cuts a path into its steps.
func parsePath(path string) ([]string, error) {
	var steps []string
	bad := func(why string) ([]string, error) { return nil, fmt.Errorf("path %q: %s", path, why) }
	rest := strings.TrimPrefix(path, ".")
	for rest != "" {
		if rest[0] == '[' {
			end := strings.IndexByte(rest, ']')
			if len(rest) > 1 && (rest[1] == '\'' || rest[1] == '"') {
				if end = strings.Index(rest[2:], rest[1:2]+"]"); end >= 0 {
					end += 3
				}
			}
			if end < 0 {
				return bad("a bracket is not closed")
			}
			step := strings.Trim(rest[1:end], `'"`)
			steps, rest = append(steps, step), rest[end+1:]
		} else {
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return bad("an element is empty")
			}
			steps, rest = append(steps, rest[:end]), rest[end:]
		}
		if after, ok := strings.CutPrefix(rest, "."); ok {
			if after == "" {
				return bad("it ends in a dot")
			}
			rest = after
		}
	}
	if len(steps) == 0 {
		return bad("it is empty")
	}
	return steps, nil
}

// dig returns what is at the path and fails when nothing is.
func dig(obj any, path string) any {
	v, missing, err := lookup(obj, path)
	if err != nil {
		failf("dig: %w", err)
	}
	if missing != "" {
		failf("dig: %s", missing)
	}
	return v
}

// has reports whether there is something at the path.
func has(obj any, path string) bool {
	v, missing, err := lookup(obj, path)
	return err == nil && missing == "" && v != nil
}

// optional returns what is at the path as a T, and T's zero value when nothing
// is; another type is an error.
func optional[T any](name string, obj any, path string) (zero T) {
	v, missing, err := lookup(obj, path)
	if err != nil {
		failf("%s: %w", name, err)
	}
	if missing != "" || v == nil {
		return zero
	}
	typed, ok := v.(T)
	if !ok {
		failf("%s: %s is a %T, not a %T", name, path, v, zero)
	}
	return typed
}

func digString(obj any, path string) string { return optional[string]("digString", obj, path) }

func digList(obj any, path string) []any { return optional[[]any]("digList", obj, path) }

func digMap(obj any, path string) map[string]any {
	return optional[map[string]any]("digMap", obj, path)
}

func digInt(obj any, path string) int {
	switch n := optional[any]("digInt", obj, path).(type) {
	case nil:
		return 0
	case int:
		return n
	case int64:
		return int(n)
	case float64:
		if n == float64(int(n)) {
			return int(n)
		}
		failf("digInt: %s is %v, not a whole number", path, n)
	default:
		failf("digInt: %s is a %T, not a number", path, n)
	}
	return 0
}
