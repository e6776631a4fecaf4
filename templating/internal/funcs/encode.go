package funcs

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// Bounds of a document that from_json and from_yaml read: its bytes, with the
// aliases of YAML written out, and how deep its lists and objects lie in each other.
const (
	maxDocument = 4 << 20
	maxNesting  = 100
)

func b64decode(s string) string {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s))
	if err != nil {
		Failf("b64decode: %w", err)
	}
	return string(b)
}

// toJSON writes a value in JSON, the fields of objects sorted.
func toJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // "a < b" is to stay readable
	if err := enc.Encode(v); err != nil {
		Failf("to_json: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// fromJSON reads one JSON value as unstructured objects hold it: int64 for
// whole numbers, float64 for others.
func fromJSON(s string) any {
	v, err := decodeJSON(s)
	if err != nil {
		Failf("from_json: %w", err)
	}
	return v
}

func decodeJSON(s string) (any, error) {
	if len(s) > maxDocument {
		return nil, fmt.Errorf("a document of %d bytes, only %d can be", len(s), maxDocument)
	}
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, notEmpty(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	return unstructured(v, 0)
}

func notEmpty(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("an empty document")
	}
	return err
}

// toYAML writes a value in YAML by its names in JSON, the fields sorted.
func toYAML(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		Failf("to_yaml: %w", err)
	}
	plain, err := decodeJSON(string(b))
	if err != nil {
		Failf("to_yaml: %w", err)
	}
	var out strings.Builder
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(plain); err != nil {
		Failf("to_yaml: %w", err)
	}
	return out.String()
}

// fromYAML reads one YAML document as fromJSON reads JSON. Keys are strings;
// dates stay the text that they are.
func fromYAML(s string) any {
	v, err := decodeYAML(s)
	if err != nil {
		Failf("from_yaml: %w", err)
	}
	return v
}

func decodeYAML(s string) (any, error) {
	if len(s) > maxDocument {
		return nil, fmt.Errorf("a document of %d bytes, only %d can be", len(s), maxDocument)
	}
	dec := yaml.NewDecoder(strings.NewReader(s))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, notEmpty(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	if _, err := (nodeSizes{}).of(&doc, 0); err != nil {
		return nil, err
	}
	var v any
	if err := doc.Decode(&v); err != nil {
		return nil, err
	}
	return unstructured(v, 0)
}

// nodeSizes counts the bytes of a document with aliases written out, before
// anything is: ten lines of aliases can stand for gigabytes.
type nodeSizes map[*yaml.Node]nodeSize

type nodeSize struct{ bytes, height int }

func (sizes nodeSizes) of(n *yaml.Node, depth int) (nodeSize, error) {
	size, known := sizes[n]
	if depth+size.height > maxNesting {
		return size, fmt.Errorf("line %d: values lie more than %d deep in each other", n.Line, maxNesting)
	}
	if known {
		return size, nil
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!timestamp" {
		n.Tag = "!!str"
	}
	size.bytes = len(n.Value) + 2
	children := n.Content
	if n.Kind == yaml.AliasNode {
		children = []*yaml.Node{n.Alias}
	}
	for _, c := range children {
		more, err := sizes.of(c, depth+1)
		if err != nil {
			return size, err
		}
		size.height = max(size.height, more.height+1)
		if size.bytes += more.bytes; size.bytes > 2*maxDocument {
			return size, fmt.Errorf("line %d: more than %d bytes with aliases written out", n.Line, 2*maxDocument)
		}
	}
	sizes[n] = size
	return size, nil
}

// unstructured turns what the decoders of JSON and YAML make into what unstructured
// objects hold.
func unstructured(v any, depth int) (_ any, err error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("values lie more than %d deep in each other", maxNesting)
	}
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	case int:
		return int64(v), nil
	case uint64:
		return float64(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v is not a number of JSON", v)
		}
	case []any:
		for i := range v {
			if v[i], err = unstructured(v[i], depth+1); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = unstructured(v[k], depth+1); err != nil {
				return nil, err
			}
		}
	case map[any]any:
		for k := range v {
			if _, ok := k.(string); !ok {
				return nil, fmt.Errorf("a key that is not a string: %s", place.Shorten(fmt.Sprint(k)))
			}
		}
	case nil, bool, string, int64:
	default:
		return nil, fmt.Errorf("a value of type %T cannot be read", v)
	}
	return v, nil
}
