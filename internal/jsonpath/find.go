package jsonpath

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
)

// Bounds of [Path.Find]. They hold back an expression that is written to cost much,
// such as one with many "..".
const (
	maxWork    = 5_000_000 // values looked at: about a second
	maxResults = 10_000
	maxMore    = 1 << 20 // bytes of the results, beyond those of the data
)

// Find returns what the path selects in data, which is as from [Decode]. What has no
// value is nil. With missing, a field or position that is not there selects nothing;
// without, it is an error, unless a filter passes over it. What ".." selects, and
// ".*" of a path that is not plain, has the order of its JSON: client-go has none.
func (p *Path) Find(data any, missing bool) (found []any, err error) {
	whole := measure(data, 0)
	if p.steps != nil {
		b := &Bound{path: p, fields: make([][]int, len(p.steps))}
		found = walk(b, []any{}, reflect.ValueOf(data), 0, appendAny)
	}
	if len(found) == 0 && (p.steps == nil || !missing) {
		copies := math.Pow(2, float64(strings.Count(p.text, ",")+strings.Count(p.text, "range"))) *
			math.Pow(float64(whole.depth), max(0, float64(strings.Count(p.text, "..")-1)))
		if work := float64(whole.values) * copies; work > maxWork {
			return nil, fmt.Errorf("jsonpath %q: it looks at up to %.0f values, %d at most are possible: use fewer .. and commas", p.expr, work, maxWork)
		}
		if found, err = p.run(data, missing || strings.Contains(p.text, "?")); err != nil {
			return nil, fmt.Errorf("jsonpath %q: %w", p.expr, err)
		}
		if strings.Contains(p.text, "..") || strings.Contains(p.text, ".*") {
			slices.SortStableFunc(found, func(a, b any) int { return cmp.Compare(jsonOf(a), jsonOf(b)) })
		}
	}
	bytes := 0
	for i, v := range found {
		if bytes += measure(v, 0).bytes; i >= maxResults || bytes > whole.bytes+maxMore {
			return nil, fmt.Errorf("jsonpath %q: it selects more than %d values or %d bytes, and no more are possible", p.expr, maxResults, whole.bytes+maxMore)
		}
	}
	return found, nil
}

func jsonOf(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// Decode reads JSON for [Path.Find]. Whole numbers are int64, so that a filter can
// compare them with one.
func Decode(text []byte) (data any, err error) {
	err = utiljson.Unmarshal(text, &data)
	return data, err
}

// run asks client-go.
func (p *Path) run(data any, missing bool) ([]any, error) {
	found := []any{}
	err := guard(func() error {
		path := p.shared
		if path == nil || !missing {
			path = jsonpath.New("").AllowMissingKeys(missing)
			if err := path.Parse(p.text); err != nil {
				return err
			}
		}
		results, err := path.FindResults(data)
		for _, list := range results {
			for _, r := range list {
				found = appendAny(found, r)
			}
		}
		if missing && err != nil && strings.Contains(err.Error(), "array index out of bounds") {
			return nil
		}
		return err
	})
	return found, err
}

func appendAny(dst []any, v reflect.Value) []any {
	if !v.IsValid() || !v.CanInterface() {
		return append(dst, nil)
	}
	return append(dst, v.Interface())
}

// size is how much there is in data.
type size struct{ values, bytes, depth int }

func measure(data any, key int) size {
	s := size{values: 1, bytes: key + 8, depth: 1}
	add := func(v any, key int) {
		in := measure(v, key)
		s = size{s.values + in.values, s.bytes + in.bytes, max(s.depth, in.depth+1)}
	}
	switch data := data.(type) {
	case map[string]any:
		for k, v := range data {
			add(v, len(k))
		}
	case []any:
		for _, v := range data {
			add(v, 0)
		}
	case string:
		s.bytes += len(data)
	}
	return s
}
