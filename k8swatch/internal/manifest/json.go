package manifest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	yamlnode "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// jsonOf returns a document as JSON, by the rules of YAML 1.1, as kubectl does.
func jsonOf(node *yamlnode.Node) ([]byte, error) {
	if text, ok := plainJSON(nil, node); ok {
		return text, nil
	}
	text, err := yamlnode.Marshal(node)
	if err == nil {
		text, err = yaml.YAMLToJSON(text)
	}
	return text, err
}

// plainJSON appends a node as JSON if it has only values that all versions of YAML read in one
// way. Nearly all manifests do. To write and read the text again takes four times as long.
func plainJSON(b []byte, node *yamlnode.Node) ([]byte, bool) {
	ok := true
	switch node.Kind {
	case yamlnode.ScalarNode:
		return plainScalar(b, node)
	case yamlnode.SequenceNode:
		if !isTagged(node, "!!seq") {
			return b, false
		}
		b = append(b, '[')
		for i, item := range node.Content {
			if i > 0 {
				b = append(b, ',')
			}
			if b, ok = plainJSON(b, item); !ok {
				return b, false
			}
		}
		return append(b, ']'), true
	case yamlnode.MappingNode:
		return plainMapping(b, node)
	}
	return b, false
}

func plainMapping(b []byte, node *yamlnode.Node) ([]byte, bool) {
	ok := isTagged(node, "!!map")
	b = append(b, '{')
	for i := 0; ok && i+1 < len(node.Content); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		key := node.Content[i]
		if key.Kind != yamlnode.ScalarNode || key.Tag != "!!str" {
			return b, false
		}
		if b, ok = plainScalar(b, key); ok {
			b, ok = plainJSON(append(b, ':'), node.Content[i+1])
		}
	}
	return append(b, '}'), ok
}

// isTagged reports whether a node has a tag that nobody wrote.
func isTagged(node *yamlnode.Node, tag string) bool {
	return node.Tag == tag && node.Style&yamlnode.TaggedStyle == 0
}

const quoted = yamlnode.SingleQuotedStyle | yamlnode.DoubleQuotedStyle | yamlnode.LiteralStyle | yamlnode.FoldedStyle

// These match values without quotes that are one thing only.
var (
	plainWord    = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*$`)
	plainAddress = regexp.MustCompile(`^[0-9]{1,3}(\.[0-9]{1,3}){3}(/[0-9]{1,2})?$`)
	plainNumber  = regexp.MustCompile(`^(0|[1-9][0-9]{0,14})$`)
)

// words are what some version of YAML reads as a boolean, a number or nothing.
var words = strings.Fields("y n yes no on off true false null nan inf") // constant in effect

func plainScalar(b []byte, node *yamlnode.Node) ([]byte, bool) {
	switch v := node.Value; {
	case isTagged(node, "!!str") && (node.Style&quoted != 0 && isText(v) ||
		node.Style == 0 && (plainWord.MatchString(v) && !slices.Contains(words, strings.ToLower(v)) || plainAddress.MatchString(v))):
		text, err := json.Marshal(v)
		return append(b, text...), err == nil
	case node.Style == 0 && (node.Tag == "!!int" && plainNumber.MatchString(v) || node.Tag == "!!bool" && (v == "true" || v == "false") || node.Tag == "!!null" && v == "null"):
		return append(b, v...), true
	}
	return b, false
}

// isText reports whether a text has no characters that need escapes in YAML, but for line ends.
func isText(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r < ' ' && r != '\n' || r >= 0x7f {
			return false
		}
	}
	return true
}
