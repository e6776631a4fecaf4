package manifest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
)

// maxAliased bounds the values that the aliases of one document may expand to.
const maxAliased = 100_000

// inliner copies nodes and replaces aliases by their values: the anchors may be in
// another part of the file.
type inliner struct {
	budget int
	line   int // line of the error
}

func (i *inliner) copy(node *yamlnode.Node, aliased bool) (*yamlnode.Node, error) {
	if aliased {
		i.budget--
	}
	i.line = node.Line
	switch {
	case i.budget < 0:
		return nil, fmt.Errorf("more than %d values, aliases counted as often as they are used", maxAliased)
	case node.Kind == yamlnode.AliasNode:
		return i.copy(node.Alias, true)
	case node.Kind == yamlnode.DocumentNode && len(node.Content) == 1:
		return i.copy(node.Content[0], aliased)
	}
	c := &yamlnode.Node{Kind: node.Kind, Style: node.Style, Tag: node.Tag, Value: node.Value, Line: node.Line, Column: node.Column}
	if c.Style&yamlnode.FoldedStyle != 0 { // the library would fold such a text once more
		c.Style ^= yamlnode.FoldedStyle | yamlnode.DoubleQuotedStyle
	}
	if c.Kind == yamlnode.ScalarNode && c.Tag == "!!null" { // and it would quote {key}
		c.Value = "null"
	}
	keys := map[string]bool{}
	for n, child := range node.Content {
		if node.Kind == yamlnode.MappingNode && n%2 == 0 && child.Kind == yamlnode.ScalarNode {
			if keys[child.Value] {
				i.line = child.Line
				return nil, fmt.Errorf("key %q already set in map", child.Value)
			}
			keys[child.Value] = true
		}
		copied, err := i.copy(child, aliased)
		if err != nil {
			return nil, err
		}
		c.Content = append(c.Content, copied)
	}
	return c, nil
}

// failJSON notes an error of the JSON decoder. The decoder counts bytes of generated
// JSON, so failJSON turns the offset into a path, and the path into a line.
func (p *parser) failJSON(data []byte, node *yamlnode.Node, err error) {
	var wrong *json.UnmarshalTypeError
	var corrupt base64.CorruptInputError
	switch {
	case errors.As(err, &wrong):
		path, _ := pathAt(json.NewDecoder(bytes.NewReader(data)), "", wrong.Offset)
		kind, _, _ := strings.Cut(wrong.Value, " ") // drops the value after the kind
		p.fail(lineOf(node, path), fmt.Errorf("%s: a %s does not fit, %s is needed", path, kind, wrong.Type))
	case errors.As(err, &corrupt):
		path := notBase64(data)
		p.fail(lineOf(node, path), fmt.Errorf("%s: the value is not base64", path))
	default:
		p.fail(node.Line, err)
	}
}

// notBase64 finds the entry of a Secret or ConfigMap that is not base64.
func notBase64(data []byte) string {
	var obj map[string]any
	_ = json.Unmarshal(data, &obj)
	for _, field := range []string{"data", "binaryData"} {
		values, _ := obj[field].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			text, _ := values[key].(string)
			if _, err := base64.StdEncoding.DecodeString(text); err != nil {
				return field + "." + key
			}
		}
	}
	return "a field of bytes"
}

// pathAt returns the path of the value that contains the offset or ends there. The JSON
// is valid, and path is the path of the decoder's next value.
func pathAt(dec *json.Decoder, path string, offset int64) (string, bool) {
	token, err := dec.Token()
	if err != nil || dec.InputOffset() >= offset {
		return path, true
	}
	delim, _ := token.(json.Delim)
	if delim == 0 {
		return path, false
	}
	for n := 0; dec.More(); n++ {
		at := fmt.Sprintf("%s[%d]", path, n)
		if delim == '{' {
			key, _ := dec.Token()
			at = join(path, fmt.Sprint(key))
		}
		if found, ok := pathAt(dec, at, offset); ok {
			return found, true
		}
	}
	_, _ = dec.Token() // the end of the object or list
	return path, dec.InputOffset() >= offset
}

func join(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

// lineOf follows a path such as spec.rules[0].http as far as it exists, and returns the
// line of its end. Keys may contain dots.
func lineOf(root *yamlnode.Node, path string) int {
	lines := map[string]int{"": root.Line}
	var walk func(node *yamlnode.Node, at string)
	walk = func(node *yamlnode.Node, at string) {
		for i, c := range node.Content {
			switch {
			case node.Kind == yamlnode.SequenceNode:
				item := fmt.Sprintf("%s[%d]", at, i)
				lines[item] = c.Line
				walk(c, item)
			case i%2 == 1:
				field := join(at, node.Content[i-1].Value)
				lines[field] = node.Content[i-1].Line
				walk(c, field)
			}
		}
	}
	walk(root, "")
	for {
		if line, ok := lines[path]; ok {
			return line
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

func child(node *yamlnode.Node, name string) *yamlnode.Node {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i+1]
		}
	}
	return nil
}
