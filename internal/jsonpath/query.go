package jsonpath

import (
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// Query is an expression as kubectl -o jsonpath takes it. It is for one goroutine
// at a time.
type Query struct {
	path *jsonpath.JSONPath
}

// NewQuery parses an expression. The braces and the first dot of kubectl may be
// left out. With missing, a field that is not there selects nothing; without, it
// is an error of [Query.Find].
func NewQuery(expr string, missing bool) (*Query, error) {
	if !strings.HasPrefix(expr, "{") {
		if !strings.HasPrefix(expr, ".") && !strings.HasPrefix(expr, "[") && !strings.HasPrefix(expr, "$") {
			expr = "." + expr
		}
		expr = "{" + expr + "}"
	}
	q := &Query{jsonpath.New("query").AllowMissingKeys(missing)}
	return q, q.path.Parse(expr)
}

// Find returns what the query selects in data, which is as from encoding/json.
// What has no value is nil.
func (q *Query) Find(data any) ([]any, error) {
	results, err := q.path.FindResults(data)
	if err != nil {
		return nil, err
	}
	found := []any{}
	for _, list := range results {
		for _, r := range list {
			if r.IsValid() && r.CanInterface() {
				found = append(found, r.Interface())
			} else {
				found = append(found, nil)
			}
		}
	}
	return found, nil
}
