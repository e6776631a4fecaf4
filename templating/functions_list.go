package templating

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// listOf returns the elements of any list; nil has none.
func listOf(name string, list any) []any {
	v := deref(reflect.ValueOf(list))
	switch v.Kind() {
	case reflect.Invalid:
		return nil
	case reflect.Slice, reflect.Array:
		return elements(v)
	}
	failf("%s: a list wanted, not a %T", name, list)
	return nil
}

func sorted[T cmp.Ordered](list []T) []T { return slices.Sorted(slices.Values(list)) }

// unique keeps the first of equal strings.
func unique(list []string) []string {
	seen := make(map[string]bool, len(list))
	var out []string
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// reversed returns a copy of a list, the last element first.
func reversed(list any) []any {
	out := slices.Clone(listOf("reverse", list))
	slices.Reverse(out)
	return out
}

// keyed is an element with what was found at a path.
type keyed struct {
	item any
	key  reflect.Value // invalid when missing or null
}

// at returns what is at a path of one element of a list.
func at(name string, i int, item any, path string, steps []string) reflect.Value {
	v, missing, err := follow(item, steps)
	if err != nil {
		failf("%s: %q of element %d: %w", name, path, i, err)
	}
	if missing != "" {
		return reflect.Value{}
	}
	return deref(reflect.ValueOf(v))
}

func keysAt(name string, list any, path string) []keyed {
	steps, err := parsePath(path)
	if err != nil {
		failf("%s: %w", name, err)
	}
	items := listOf(name, list)
	out := make([]keyed, len(items))
	for i, item := range items {
		out[i] = keyed{item, at(name, i, item, path, steps)}
	}
	return out
}

// textKeys gives each element with the text at a path, "" where nothing is.
func textKeys(name string, list any, path string, each func(i int, key string, item any)) {
	for i, k := range keysAt(name, list, path) {
		if !k.key.IsValid() {
			each(i, "", k.item)
			continue
		}
		text, err := place.Text(k.key.Interface())
		if err != nil {
			failf("%s: %q of element %d: %w", name, path, i, err)
		}
		each(i, text, k.item)
	}
}

// criterion is one of what sort_by sorts by.
type criterion struct {
	path  string
	steps []string
	desc  bool
}

// parseCriterion reads "path", "path:asc" or "path:desc".
func parseCriterion(s string) (criterion, error) {
	c := criterion{path: s}
	if path, ok := strings.CutSuffix(s, ":desc"); ok {
		c.path, c.desc = path, true
	} else if path, ok := strings.CutSuffix(s, ":asc"); ok {
		c.path = path
	}
	if i := strings.LastIndexByte(c.path, ':'); i > strings.LastIndexByte(c.path, ']') {
		return c, fmt.Errorf("%s: %s: only :asc and :desc can follow a path; a key with a colon stands in brackets", place.Shorten(s), place.Shorten(c.path[i:]))
	}
	var err error
	c.steps, err = parsePath(c.path)
	return c, err
}

// criteriaOf reads the criteria of sort_by: texts and lists of texts.
func criteriaOf(by []any) (criteria []criterion) {
	for _, arg := range by {
		texts := []any{arg}
		if _, ok := arg.(string); !ok {
			texts = listOf("sort_by", arg)
		}
		for _, text := range texts {
			path, ok := text.(string)
			if !ok {
				failf("sort_by: a path wanted, not a %T", text)
			}
			c, err := parseCriterion(path)
			if err != nil {
				failf("sort_by: %w", err)
			}
			criteria = append(criteria, c)
		}
	}
	if len(criteria) == 0 {
		failf("sort_by: nothing to sort by: give a path")
	}
	return criteria
}

// sortRow is an element, its place in the list and its keys, one for each
// criterion.
type sortRow struct {
	item  any
	index int
	keys  []sortKey
}

// sortRows finds the keys of all elements; those of one criterion are of one
// kind.
func sortRows(items []any, criteria []criterion) []sortRow {
	rows := make([]sortRow, len(items))
	first := make([]int, len(criteria)) // the first element that has a key, from 1
	for i, item := range items {
		rows[i] = sortRow{item, i, make([]sortKey, len(criteria))}
		for j, c := range criteria {
			key, err := sortKeyOf(at("sort_by", i, item, c.path, c.steps))
			switch {
			case err != nil:
				failf("sort_by: %q of element %d: %w", c.path, i, err)
			case key.kind == missingKey:
			case first[j] == 0:
				first[j] = i + 1
			case rows[first[j]-1].keys[j].kind != key.kind:
				failf("sort_by: %q is %s in element %d and %s in element %d", c.path, rows[first[j]-1].keys[j].kind, first[j]-1, key.kind, i)
			}
			rows[i].keys[j] = key
		}
	}
	return rows
}

// sortedRows sorts a list: by the first criterion, then by the next, then as
// the elements stood. Those without a value come last, whatever the direction.
func sortedRows(list any, by []any) []sortRow {
	criteria := criteriaOf(by)
	rows := sortRows(listOf("sort_by", list), criteria)
	slices.SortStableFunc(rows, func(a, b sortRow) int {
		for j, c := range criteria {
			if n := a.keys[j].compare(b.keys[j], c.desc); n != 0 {
				return n
			}
		}
		return 0
	})
	return rows
}

// sortBy returns a sorted copy of a list.
func sortBy(list any, by ...any) []any {
	rows := sortedRows(list, by)
	out := make([]any, len(rows))
	for i, r := range rows {
		out[i] = r.item
	}
	return out
}

// orderBy returns where the elements of a sorted copy stand in the list, so that
// a template has them with their type.
func orderBy(list any, by ...any) []int {
	rows := sortedRows(list, by)
	out := make([]int, len(rows))
	for i, r := range rows {
		out[i] = r.index
	}
	return out
}

// uniqueBy keeps the first element of those with the same text at the path;
// those without one count as equal.
func uniqueBy(list any, path string) []any {
	seen := map[string]bool{}
	var out []any
	textKeys("unique_by", list, path, func(_ int, key string, item any) {
		if !seen[key] {
			seen[key] = true
			out = append(out, item)
		}
	})
	return out
}

// Group is what group_by makes of the elements that have the same text at a
// path.
type Group struct {
	Key   string // "" for elements that have nothing there
	Items []any  // in the order of the list
	At    []int  // where they stand in the list
}

// groupBy returns the groups by key. A list, because a map has no order.
func groupBy(list any, path string) []Group {
	index := map[string]int{}
	var groups []Group
	textKeys("group_by", list, path, func(i int, key string, item any) {
		n, ok := index[key]
		if !ok {
			n = len(groups)
			index[key] = n
			groups = append(groups, Group{Key: key})
		}
		groups[n].Items, groups[n].At = append(groups[n].Items, item), append(groups[n].At, i)
	})
	slices.SortFunc(groups, func(a, b Group) int { return strings.Compare(a.Key, b.Key) })
	return groups
}

// indexBy finds elements by the text at a path; of several, the first.
func indexBy(list any, path string) map[string]any {
	out := map[string]any{}
	textKeys("index_by", list, path, func(_ int, key string, item any) {
		if _, ok := out[key]; !ok {
			out[key] = item
		}
	})
	return out
}

func countBy(list any, path string) map[string]int {
	out := map[string]int{}
	textKeys("count_by", list, path, func(_ int, key string, _ any) { out[key]++ })
	return out
}

// mapBy returns what each element has at the path, nil where nothing is.
func mapBy(list any, path string) []any {
	found := keysAt("map_by", list, path)
	out := make([]any, len(found))
	for i, k := range found {
		if k.key.IsValid() {
			out[i] = k.key.Interface()
		}
	}
	return out
}

// selectattr returns the elements that pass a test of what they have at a path:
// that it is there and neither false, zero nor empty, or "eq" and others with
// a value.
func selectattr(list any, path string, test ...any) []any {
	return attr("selectattr", list, path, test, true)
}

// rejectattr returns the elements that do not.
func rejectattr(list any, path string, test ...any) []any {
	return attr("rejectattr", list, path, test, false)
}

func attr(name string, list any, path string, test []any, want bool) []any {
	passes := func(v reflect.Value) (bool, error) { return !isEmpty(v), nil }
	switch len(test) {
	case 0:
	case 2:
		op, ok := test[0].(string)
		if !ok {
			failf("%s: the name of a test wanted, not a %T", name, test[0])
		}
		passes = func(v reflect.Value) (bool, error) { return compareWith(op, v, deref(reflect.ValueOf(test[1]))) }
	default:
		failf("%s: a list, a path and, for a test, its name and a value wanted", name)
	}
	var out []any
	for i, k := range keysAt(name, list, path) {
		ok, err := passes(k.key)
		if err != nil {
			failf("%s: %q of element %d: %w", name, path, i, err)
		}
		if ok == want {
			out = append(out, k.item)
		}
	}
	return out
}
