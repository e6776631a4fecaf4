package store

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"weak"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// compact is an unstructured object as JSON, which takes a sixth of the memory of nested
// maps. A read decodes it. All readers share the result until the garbage collector takes it.
// Numbers are as in JSON: a whole number is an int64, however it was written.
type compact struct {
	text    []byte
	decoded atomic.Pointer[weak.Pointer[unstructured.Unstructured]]
}

// newCompact returns nil for typed objects and for values that JSON cannot express.
func newCompact(obj Object) *compact {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil
	}
	return &compact{text: text}
}

func (c *compact) object() *unstructured.Unstructured {
	if last := c.decoded.Load(); last != nil {
		if u := last.Value(); u != nil {
			return u
		}
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(c.text, &u.Object); err != nil {
		panic(fmt.Sprintf("store: what was encoded cannot be decoded: %v", err))
	}
	mine := weak.Make(u)
	c.decoded.Store(&mine)
	return u
}
