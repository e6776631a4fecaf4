package funcs

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

func listFunctions() native.Declarations {
	return native.Declarations{
		"sort":      func(env native.Env, list []string) []string { return sortTexts(env.Context(), list) },
		"unique":    func(env native.Env, list []string) []string { return unique(env.Context(), list) },
		"reverse":   func(env native.Env, list any) []any { return reversed(env.Context(), list) },
		"unique_by": func(env native.Env, list any, path string) []any { return uniqueBy(env.Context(), list, path) },
		"sort_by":   func(env native.Env, list any, by ...any) []any { return sortBy(env.Context(), list, by...) },
		"order_by":  func(env native.Env, list any, by ...any) []int { return orderBy(env.Context(), list, by...) },
		"map_by":    func(env native.Env, list any, path string) []any { return mapBy(env.Context(), list, path) },
		"group_by":  func(env native.Env, list any, path string) []Group { return groupBy(env.Context(), list, path) },
		"index_by":  func(env native.Env, list any, path string) map[string]any { return indexBy(env.Context(), list, path) },
		"count_by":  func(env native.Env, list any, path string) map[string]int { return countBy(env.Context(), list, path) },
		"selectattr": func(env native.Env, list any, path string, test ...any) []any {
			return attr(env.Context(), "selectattr", list, path, test, true)
		},
		"rejectattr": func(env native.Env, list any, path string, test ...any) []any {
			return attr(env.Context(), "rejectattr", list, path, test, false)
		},
	}
}

func sortTexts(ctx context.Context, list []string) []string {
	checkList("sort", len(list))
	return slices.SortedFunc(slices.Values(list), func(a, b string) int {
		going(ctx)
		return strings.Compare(a, b)
	})
}

// listOf returns the elements of any list, none for nil.
func listOf(ctx context.Context, name string, list any) []any {
	going(ctx)
	v := deref(reflect.ValueOf(list))
	switch v.Kind() {
	case reflect.Invalid:
		return nil
	case reflect.Slice, reflect.Array:
		checkList(name, v.Len())
		return elements(v)
	}
	Failf("%s: a list wanted, not a %T", name, list)
	return nil
}

// unique keeps the first of equal strings.
func unique(ctx context.Context, list []string) (out []string) {
	checkList("unique", len(list))
	seen := make(map[string]bool, len(list))
	for _, s := range list {
		going(ctx)
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// reversed returns a copy of a list, the last element first.
func reversed(ctx context.Context, list any) []any {
	out := slices.Clone(listOf(ctx, "reverse", list))
	slices.Reverse(out)
	return out
}

// keyed is an element with its value at a path.
type keyed struct {
	item any
	at   reflect.Value // invalid if missing or null
}

func keysAt(ctx context.Context, name string, list any, path string) []keyed {
	steps, err := parsePath(path)
	if err != nil {
		Failf("%s: %w", name, err)
	}
	items := listOf(ctx, name, list)
	out := make([]keyed, len(items))
	for i, item := range items {
		going(ctx)
		v, missing, err := follow(item, steps)
		switch {
		case err != nil:
			Failf("%s: %q of element %d: %w", name, path, i, err)
		case missing == "":
			out[i].at = deref(v)
		}
		out[i].item = item
	}
	return out
}

// textKeys calls each with every element and its text at a path, "" if there is none.
func textKeys(ctx context.Context, name string, list any, path string, each func(i int, text string, item any)) {
	for i, k := range keysAt(ctx, name, list, path) {
		going(ctx)
		text := ""
		if k.at.IsValid() {
			var err error
			if text, err = place.Text(k.at.Interface()); err != nil {
				Failf("%s: %q of element %d: %w", name, path, i, err)
			}
		}
		each(i, text, k.item)
	}
}

// row is an element, its place in the list and its keys, one for each criterion.
type row struct {
	item  any
	index int
	keys  []key
}

// sorted sorts a list by criteria, "path", "path:asc" or "path:desc". Later criteria decide
// between elements that are equal in earlier ones; equal elements keep their order.
// Elements without a value come last in both directions.
func sorted(ctx context.Context, list any, by []any) []row {
	items := listOf(ctx, "sort_by", list)
	rows := make([]row, len(items))
	for i, item := range items {
		rows[i] = row{item: item, index: i}
	}
	var desc []bool
	for _, arg := range by {
		criteria := []any{arg}
		if _, ok := arg.(string); !ok {
			criteria = listOf(ctx, "sort_by", arg)
		}
		for _, c := range criteria {
			path, ok := c.(string)
			if !ok {
				Failf("sort_by: a path wanted, not a %T", c)
			}
			path, down := strings.CutSuffix(path, ":desc")
			path = strings.TrimSuffix(path, ":asc")
			if i := strings.LastIndexByte(path, ':'); i > strings.LastIndexByte(path, ']') {
				Failf("sort_by: %s: %s: only :asc and :desc can follow a path; a key with a colon stands in brackets", place.Shorten(c.(string)), place.Shorten(path[i:]))
			}
			desc = append(desc, down)
			addKeys(ctx, rows, list, path)
		}
	}
	if len(desc) == 0 {
		Failf("sort_by: nothing to sort by: give a path")
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		going(ctx)
		for j, down := range desc {
			x, y := a.keys[j], b.keys[j]
			if n := cmp.Compare(missing(x), missing(y)); n != 0 {
				return n
			}
			if n := x.compare(y); n != 0 && down {
				return -n
			} else if n != 0 {
				return n
			}
		}
		return 0
	})
	return rows
}

func missing(k key) int {
	if k.kind == missingKey {
		return 1
	}
	return 0
}

// addKeys adds to each row its value at a path. All values must be of one kind.
func addKeys(ctx context.Context, rows []row, list any, path string) {
	kind, first := "", 0
	for i, found := range keysAt(ctx, "sort_by", list, path) {
		k, err := keyOf(found.at)
		switch {
		case err != nil:
			Failf("sort_by: %q of element %d: %w", path, i, err)
		case k.kind == missingKey:
		case kind == "":
			kind, first = k.kind, i
		case kind != k.kind:
			Failf("sort_by: %q is %s in element %d and %s in element %d", path, kind, first, k.kind, i)
		}
		rows[i].keys = append(rows[i].keys, k)
	}
}

// sortBy returns a sorted copy of a list.
func sortBy(ctx context.Context, list any, by ...any) []any {
	rows := sorted(ctx, list, by)
	out := make([]any, len(rows))
	for i, r := range rows {
		out[i] = r.item
	}
	return out
}

// orderBy returns the indexes of the elements in sorted order. With them a template reads
// the elements with their type.
func orderBy(ctx context.Context, list any, by ...any) []int {
	rows := sorted(ctx, list, by)
	out := make([]int, len(rows))
	for i, r := range rows {
		out[i] = r.index
	}
	return out
}

// uniqueBy keeps the first of all elements with the same text at the path. Elements without
// one count as equal.
func uniqueBy(ctx context.Context, list any, path string) (out []any) {
	seen := map[string]bool{}
	textKeys(ctx, "unique_by", list, path, func(_ int, text string, item any) {
		if !seen[text] {
			seen[text] = true
			out = append(out, item)
		}
	})
	return out
}

// Group is a result of group_by: the elements with the same text at a path.
type Group struct {
	Key   string // "" for elements without a value there
	Items []any  // in the order of the list
	At    []int  // their indexes in the list
}

// groupBy returns the groups, sorted by key. It returns a list, because a map has no order.
func groupBy(ctx context.Context, list any, path string) []Group {
	index := map[string]int{}
	var groups []Group
	textKeys(ctx, "group_by", list, path, func(i int, text string, item any) {
		n, ok := index[text]
		if !ok {
			n = len(groups)
			index[text] = n
			groups = append(groups, Group{Key: text})
		}
		groups[n].Items, groups[n].At = append(groups[n].Items, item), append(groups[n].At, i)
	})
	slices.SortFunc(groups, func(a, b Group) int { return strings.Compare(a.Key, b.Key) })
	return groups
}

// indexBy returns the elements by their text at a path. If several have the same text, it
// returns the first.
func indexBy(ctx context.Context, list any, path string) map[string]any {
	out := map[string]any{}
	textKeys(ctx, "index_by", list, path, func(_ int, text string, item any) {
		if _, ok := out[text]; !ok {
			out[text] = item
		}
	})
	return out
}

func countBy(ctx context.Context, list any, path string) map[string]int {
	out := map[string]int{}
	textKeys(ctx, "count_by", list, path, func(_ int, text string, _ any) { out[text]++ })
	return out
}

// mapBy returns the value of each element at the path, nil if there is none.
func mapBy(ctx context.Context, list any, path string) []any {
	found := keysAt(ctx, "map_by", list, path)
	out := make([]any, len(found))
	for i, k := range found {
		if k.at.IsValid() {
			out[i] = k.at.Interface()
		}
	}
	return out
}

// attr returns the elements whose value at a path passes a test, or, without want, those
// whose value fails. The test is "eq" or another one, with a value to compare. Without a
// test, a value passes if it is neither missing nor false, zero or empty.
func attr(ctx context.Context, name string, list any, path string, test []any, want bool) (out []any) {
	check := func(v reflect.Value) (bool, error) { return !isEmpty(v), nil }
	switch len(test) {
	case 0:
	case 2:
		op, ok := test[0].(string)
		if !ok {
			Failf("%s: the name of a test wanted, not a %T", name, test[0])
		}
		check = func(v reflect.Value) (bool, error) { return passes(ctx, op, v, deref(reflect.ValueOf(test[1]))) }
	default:
		Failf("%s: a test is not complete: give its name and a value behind the path", name)
	}
	for i, k := range keysAt(ctx, name, list, path) {
		ok, err := check(k.at)
		if err != nil {
			err = fmt.Errorf("%q of element %d: %w", path, i, err)
			Failf("%s: %w", name, err)
		}
		if ok == want {
			out = append(out, k.item)
		}
	}
	return out
}
