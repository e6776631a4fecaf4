package templating

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/open2b/scriggo/builtin"
	"go.yaml.in/yaml/v3"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// Bounds of a document that from_json and from_yaml read: its size, how deep
// its lists and objects lie in each other, and how many values it has with the
// aliases of YAML written out.
const (
	maxDocument = 4 << 20
	maxNesting  = 100
	maxValues   = 1 << 20
)

func b64decode(s string) string {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s))
	if err != nil {
		failf("b64decode: %w", err)
	}
	return string(b)
}

// hmacSHA256 returns the HMAC of a message in hexadecimal; builtin's is base64.
func hmacSHA256(message, key string) string {
	b, err := base64.StdEncoding.DecodeString(builtin.HmacSHA256(message, key))
	if err != nil {
		failf("hmac_sha256: %w", err)
	}
	return builtin.Hex(string(b))
}

// crc32Hex is the IEEE checksum in eight hexadecimal digits.
func crc32Hex(s string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(s))) }

// toJSON writes a value in JSON, the fields of objects sorted.
func toJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // "a < b" is to stay readable
	if err := enc.Encode(v); err != nil {
		failf("to_json: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// fromJSON reads one JSON value as unstructured objects hold it: int64 for
// whole numbers, float64 for others.
func fromJSON(s string) any {
	v, err := decodeJSON(s)
	if err != nil {
		failf("from_json: %w", err)
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
		if errors.Is(err, io.EOF) {
			err = errors.New("an empty document")
		}
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	return plainJSON(v, 0)
}

// plainJSON gives numbers their types.
func plainJSON(v any, depth int) (_ any, err error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("values lie more than %d deep in each other", maxNesting)
	}
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n, nil
		}
		return v.Float64()
	case []any:
		for i := range v {
			if v[i], err = plainJSON(v[i], depth+1); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = plainJSON(v[k], depth+1); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// toYAML writes a value in YAML by its names in JSON, the fields sorted.
func toYAML(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		failf("to_yaml: %w", err)
	}
	plain, err := decodeJSON(string(b))
	if err != nil {
		failf("to_yaml: %w", err)
	}
	var out strings.Builder
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(plain); err != nil {
		failf("to_yaml: %w", err)
	}
	return out.String()
}

// fromYAML reads one YAML document as fromJSON reads JSON. Keys are strings;
// dates stay the text that they are.
func fromYAML(s string) any {
	v, err := decodeYAML(s)
	if err != nil {
		failf("from_yaml: %w", err)
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
		if errors.Is(err, io.EOF) {
			err = errors.New("an empty document")
		}
		return nil, err
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	size := nodeSizes{}
	if _, err := size.of(&doc, 0); err != nil {
		return nil, err
	}
	var v any
	if err := doc.Decode(&v); err != nil {
		return nil, err
	}
	return plainYAML(v)
}

// nodeSizes counts the values of a document with aliases written out, before
// anything is: ten lines of aliases can stand for billions of values.
type nodeSizes map[*yaml.Node]nodeSize

type nodeSize struct{ values, height int }

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
	size.values = 1
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
		if size.values += more.values; size.values > maxValues {
			return size, fmt.Errorf("line %d: more than %d values with aliases written out", n.Line, maxValues)
		}
	}
	sizes[n] = size
	return size, nil
}

// plainYAML turns what yaml reads into what unstructured objects hold.
func plainYAML(v any) (_ any, err error) {
	switch v := v.(type) {
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
			if v[i], err = plainYAML(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = plainYAML(v[k]); err != nil {
				return nil, err
			}
		}
	case map[any]any:
		return nil, fmt.Errorf("a key that is not a string: %s", oddKey(v))
	case nil, bool, string, int64:
	default:
		return nil, fmt.Errorf("a value of type %s cannot be read", reflect.TypeOf(v))
	}
	return v, nil
}

// oddKey names the first key that is not a string, in the order of their text.
func oddKey(m map[any]any) (odd string) {
	for k := range m {
		if _, ok := k.(string); !ok {
			if s := fmt.Sprint(k); odd == "" || s < odd {
				odd = s
			}
		}
	}
	return place.Shorten(odd)
}
