package funcs

import (
	"bytes"
	"context"
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

func b64decode(s string) string {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s))
	if err != nil {
		Failf("b64decode: %w", err)
	}
	return string(b)
}

// toJSON writes a value in JSON, with the keys of maps sorted.
func toJSON(ctx context.Context, v any) string {
	measure(ctx, "to_json", v, maxText)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // "a < b" stays readable
	if err := enc.Encode(v); err != nil {
		Failf("to_json: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// fromJSON reads one JSON value with the types of unstructured objects: int64 for whole
// numbers, float64 for others.
func fromJSON(s string) any {
	v, err := decodeJSON(s)
	if err != nil {
		Failf("from_json: %w", err)
	}
	return v
}

func decodeJSON(s string) (any, error) {
	if len(s) > maxDocument {
		return nil, fmt.Errorf("a document of %d bytes, at most %d are allowed", len(s), maxDocument)
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

// toYAML writes a value in YAML with its names in JSON, sorted.
func toYAML(ctx context.Context, v any) string {
	measure(ctx, "to_yaml", v, 2*maxDocument)
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

// unstructured converts values of the JSON and YAML decoders to the types of unstructured
// objects.
func unstructured(v any, depth int) (_ any, err error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("values are nested more than %d deep", maxNesting)
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
		return nil, errors.New("a key in base64")
	case nil, bool, string, int64:
	default:
		return nil, fmt.Errorf("a value of type %T cannot be read", v)
	}
	return v, nil
}
