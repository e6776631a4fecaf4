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
	text    []byte // without the resource version, so that equal contents have equal texts
	version string // metadata.resourceVersion; "" if there is none
	decoded atomic.Pointer[weak.Pointer[unstructured.Unstructured]]
}

// newCompact returns nil for typed objects and for values that JSON cannot express.
func newCompact(obj Object) *compact {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	c := &compact{}
	metadata, _ := u.Object["metadata"].(map[string]any)
	if version, ok := metadata[versionField].(string); ok && version != "" {
		c.version = version
		delete(metadata, versionField)
		defer func() { metadata[versionField] = version }()
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		return nil
	}
	c.text = text
	return c
}

const versionField = "resourceVersion"

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
	if metadata, ok := u.Object["metadata"].(map[string]any); ok && c.version != "" {
		metadata[versionField] = c.version
	}
	mine := weak.Make(u)
	c.decoded.Store(&mine)
	return u
}
