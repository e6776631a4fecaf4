package observe

import (
	"encoding/json"

	"github.com/hapticsdk/haptic/internal/jsonpath"
)

// field returns a part of a value by JSONPath, as in kubectl -o jsonpath: {.a.b}, .a.b,
// {.instances[*].name}, {.instances[?(@.failures>0)].name}. It returns a single result as it
// is, and any other number of results as a list. It refuses an expression that would take
// seconds, or return much more than the value.
func field(value any, expr string) (any, error) {
	path, err := jsonpath.Compile(expr)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	data, err := jsonpath.Decode(text)
	if err != nil {
		return nil, err
	}
	found, err := path.Find(data, false)
	if err == nil && len(found) == 1 {
		return found[0], nil
	}
	return found, err
}
