package funcs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// fromYAML reads one YAML document as fromJSON reads JSON. Keys are strings;
// dates stay the text that they are.
func fromYAML(ctx context.Context, s string) any {
	v, err := decodeYAML(ctx, s)
	if err != nil {
		Failf("from_yaml: %w", err)
	}
	return v
}

func decodeYAML(ctx context.Context, s string) (any, error) {
	if len(s) > maxDocument {
		return nil, fmt.Errorf("a document of %d bytes, only %d can be", len(s), maxDocument)
	}
	// The parser takes 250 bytes for each value, before anything can count them.
	nodes := strings.Count(s, "- ")
	for _, sign := range ",:[{?\n" {
		nodes += strings.Count(s, string(sign))
	}
	if nodes > maxNodes {
		return nil, fmt.Errorf("%w: a document of %d signs and lines, only %d can be", ErrTooLarge, nodes, maxNodes)
	}
	dec := yaml.NewDecoder(&stoppable{ctx, strings.NewReader(s)})
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, notEmpty(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	return (&nodeReader{ctx: ctx}).value(&doc, 0)
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

// nodeReader turns a document into what unstructured objects hold. It counts bytes as
// it writes aliases out: ten lines of them can stand for gigabytes.
type nodeReader struct {
	ctx   context.Context
	bytes int
}

func (r *nodeReader) value(n *yaml.Node, depth int) (any, error) {
	going(r.ctx)
	const atLeast = 8 // bytes of a value: those of the longest document without aliases fit
	if r.bytes += len(n.Value) + atLeast; r.bytes > 2*maxDocument {
		return nil, fmt.Errorf("%w: line %d: more than %d bytes with aliases written out", ErrTooLarge, n.Line, 2*maxDocument)
	}
	if depth > maxNesting {
		return nil, fmt.Errorf("line %d: values lie more than %d deep in each other", n.Line, maxNesting)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return r.value(n.Content[0], depth+1)
	case yaml.AliasNode:
		return r.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			var err error
			if list[i], err = r.value(c, depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		return r.mapping(n, depth)
	}
	return scalar(n)
}

func scalar(n *yaml.Node) (v any, err error) {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return n.Value, nil
	}
	if err := n.Decode(&v); err != nil {
		return nil, err
	}
	return unstructured(v, 0)
}

// mapping reads a mapping. Its own keys come before those of "<<".
func (r *nodeReader) mapping(n *yaml.Node, depth int) (map[string]any, error) {
	out := make(map[string]any, min(len(n.Content)/2, maxPattern))
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		k, err := r.value(key, depth+1)
		if err != nil {
			return nil, err
		}
		name, ok := k.(string)
		if !ok {
			return nil, fmt.Errorf("a key that is not a string: %s", place.Shorten(fmt.Sprint(k)))
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("line %d: key %s already defined", key.Line, place.Shorten(name))
		}
		if out[name], err = r.value(value, depth+1); err != nil {
			return nil, err
		}
	}
	for _, m := range merged {
		if err := r.merge(out, m, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// merge adds the entries of a mapping, or of several in a list, that are not there.
func (r *nodeReader) merge(out map[string]any, n *yaml.Node, depth int) error {
	v, err := r.value(n, depth)
	if err != nil {
		return err
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, from := range list {
		entries, ok := from.(map[string]any)
		if !ok {
			return fmt.Errorf("line %d: << wants a mapping, or a list of them", n.Line)
		}
		for k, v := range entries {
			if _, taken := out[k]; !taken {
				out[k] = v
			}
		}
	}
	return nil
}
