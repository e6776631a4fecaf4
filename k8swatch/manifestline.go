package k8swatch

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

// failJSON notes an error of the JSON decoder, which counts bytes of a text that
// nobody wrote: the offset is turned into a path, and that into a line. The
// value is not repeated in the message; it may be a part of a Secret.
func (d *decoder) failJSON(data []byte, node *yamlnode.Node, err error) {
	var wrong *json.UnmarshalTypeError
	var corrupt base64.CorruptInputError
	if errors.As(err, &corrupt) {
		if path := notBase64(data); path != "" {
			d.fail(lineOf(node, path), fmt.Errorf("%s: the value is not base64", path))
			return
		}
	}
	if !errors.As(err, &wrong) {
		d.fail(node.Line, err)
		return
	}
	path := pathAt(data, wrong.Offset)
	d.fail(lineOf(node, path), fmt.Errorf("%s: a %s does not fit, %s is needed", path, strings.Fields(wrong.Value + " value")[0], wrong.Type))
}

// notBase64 finds the entry of a Secret or ConfigMap that cannot be decoded.
func notBase64(data []byte) string {
	var obj struct {
		Data       map[string]any `json:"data"`
		BinaryData map[string]any `json:"binaryData"`
	}
	if json.Unmarshal(data, &obj) != nil {
		return ""
	}
	for field, values := range map[string]map[string]any{"data": obj.Data, "binaryData": obj.BinaryData} {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			text, ok := values[key].(string)
			if _, err := base64.StdEncoding.DecodeString(text); ok && err != nil {
				return field + "." + key
			}
		}
	}
	return ""
}

// pathAt returns the path of the value that ends at, or contains, the offset.
func pathAt(data []byte, offset int64) string {
	type level struct {
		list bool
		key  string
		n    int
		want bool // a key comes next
	}
	var stack []level
	dec := json.NewDecoder(bytes.NewReader(data))
	path := func() string {
		var b strings.Builder
		for _, l := range stack {
			switch {
			case l.list:
				b.WriteString("[" + strconv.Itoa(l.n) + "]")
			case b.Len() > 0:
				b.WriteString("." + l.key)
			default:
				b.WriteString(l.key)
			}
		}
		return b.String()
	}
	done := func() { // a value has ended
		if n := len(stack); n > 0 {
			stack[n-1].n++
			stack[n-1].want = true
		}
	}
	for {
		token, err := dec.Token()
		if err == io.EOF || err != nil { //nolint:errorlint // data is valid JSON
			return path()
		}
		top := len(stack) - 1
		if top >= 0 && !stack[top].list && stack[top].want {
			if key, ok := token.(string); ok {
				stack[top].key, stack[top].want = key, false
				continue
			}
		}
		if dec.InputOffset() >= offset {
			return path()
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, level{want: true})
		case json.Delim('['):
			stack = append(stack, level{list: true})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:top]
			done()
		default:
			done()
		}
	}
}

// lineOf follows a path such as spec.rules[0].http as far as it goes and returns
// the line where it ends.
func lineOf(node *yamlnode.Node, path string) int {
	line := node.Line
	for path != "" {
		path = strings.TrimPrefix(path, ".")
		if inside, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]"); ok && path[0] == '[' {
			n, err := strconv.Atoi(inside)
			if err != nil || node.Kind != yamlnode.SequenceNode || n >= len(node.Content) {
				return line
			}
			node, path = node.Content[n], rest
			line = node.Line
			continue
		}
		key, value, rest := longestKey(node, path)
		if key == nil {
			return line
		}
		node, line, path = value, key.Line, rest
	}
	return line
}

// longestKey finds the key of a mapping that the path begins with. Keys may
// contain dots, so the longest that fits is taken.
func longestKey(node *yamlnode.Node, path string) (key, value *yamlnode.Node, rest string) {
	if node.Kind == yamlnode.AliasNode {
		node = node.Alias
	}
	if node.Kind != yamlnode.MappingNode {
		return nil, nil, ""
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		k := node.Content[i]
		after, ok := strings.CutPrefix(path, k.Value)
		if !ok || (after != "" && after[0] != '.' && after[0] != '[') {
			continue
		}
		if key == nil || len(k.Value) > len(key.Value) {
			key, value, rest = k, node.Content[i+1], after
		}
	}
	return key, value, rest
}

func child(node *yamlnode.Node, name string) (*yamlnode.Node, bool) {
	if node.Kind != yamlnode.MappingNode {
		return nil, false
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i+1], true
		}
	}
	return nil, false
}
