package k8swatchtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

// Objects reads manifests in YAML, separated by lines of ---, for [NewSource],
// [Source.Apply] and [Snapshot]. Objects are typed where client-go's scheme knows
// their kind. Tests that have a mistake in a manifest should not go on: it panics,
// also on a field that the kind does not have.
func Objects(manifests string) []runtime.Object {
	var objs []runtime.Object
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests)))
	for n := 1; ; n++ {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objs
		}
		if err == nil {
			var obj runtime.Object
			if obj, err = parse(text); obj != nil {
				objs = append(objs, obj)
			}
		}
		if err != nil {
			panic(fmt.Sprintf("k8swatchtest: manifest %d: %v", n, err))
		}
	}
}

// parse returns nil for a document without content.
func parse(text []byte) (runtime.Object, error) {
	data, err := yaml.ToJSON(text)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return nil, nil
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	typed, err := memapi.Strict(u)
	if err != nil {
		return nil, err
	}
	return typed, nil
}
