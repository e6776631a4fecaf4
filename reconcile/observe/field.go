package observe

import (
	"encoding/json"

	"github.com/hapticsdk/haptic/internal/jsonpath"
)

// field picks a part of a value by JSONPath, as kubectl's -o jsonpath: {.a.b},
// .a.b, {.instances[*].name}, {.instances[?(@.failures>0)].name}. One result is
// returned as it is, any other number as a list. An expression that would take
// seconds or answer with much more than the value is refused.
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
