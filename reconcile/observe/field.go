package observe

import (
	"encoding/json"
	"fmt"

	"github.com/hapticsdk/haptic/internal/jsonpath"
)

// field returns a part of a value by JSONPath, as in kubectl -o jsonpath: {.a.b}, .a.b,
// {.instances[*].name}, {.instances[?(@.failures>0)].name}. It returns a single result as it
// is, and any other number of results as a list.
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
	found, err := path.Find(data)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && path.Single():
		return nil, fmt.Errorf("jsonpath %q: the value has nothing there", expr)
	}
	return found, nil
}
