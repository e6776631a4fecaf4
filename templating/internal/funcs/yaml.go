package funcs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fromYAML reads one YAML document as fromJSON reads JSON. Keys are strings; dates stay
// texts.
func fromYAML(ctx context.Context, s string) any {
	v, err := decodeYAML(ctx, s)
	if err != nil {
		Failf("from_yaml: %w", err)
	}
	return v
}

func decodeYAML(ctx context.Context, s string) (any, error) {
	if len(s) > maxDocument {
		return nil, fmt.Errorf("a document of %d bytes, at most %d are allowed", len(s), maxDocument)
	}
	// The parser takes 250 bytes for each value before decodeYAML could count them.
	nodes := strings.Count(s, "- ")
	for _, sign := range ",:[{?\n" {
		nodes += strings.Count(s, string(sign))
	}
	if nodes > maxNodes {
		return nil, fmt.Errorf("%w: a document of %d signs and lines, at most %d are allowed", ErrTooLarge, nodes, maxNodes)
	}
	dec := yaml.NewDecoder(&stoppable{ctx, strings.NewReader(s)})
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, notEmpty(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	if err := prepare(&doc); err != nil {
		return nil, err
	}
	var v any
	if err := doc.Decode(&v); err != nil { // Decode bounds the expansion of aliases
		return nil, err
	}
	return unstructured(v, 0)
}

// prepare keeps dates as texts, and refuses mappings with too many keys. For those the
// library would take seconds to look for equal ones.
func prepare(n *yaml.Node) error {
	switch keys := len(n.Content) / 2; {
	case n.Kind == yaml.MappingNode && keys > maxKeys:
		return fmt.Errorf("%w: line %d: a mapping of %d keys, at most %d are allowed: use a list, or JSON", ErrTooLarge, n.Line, keys, maxKeys)
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!timestamp":
		n.Tag = "!!str"
	}
	for _, child := range n.Content {
		if err := prepare(child); err != nil {
			return err
		}
	}
	return nil
}

// stoppable is a reader that ends with a context.
type stoppable struct {
	ctx context.Context
	io.Reader
}

func (r *stoppable) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}
