package reconcile

import (
	"context"
	"errors"
	"iter"
	"maps"
	"path"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/templating"
)

// templated renders templates, haproxy.d/ingress.cfg for each item: in small what
// package render does, which these tests cannot import.
type templated struct {
	engine *templating.Engine
	vars   map[string]any
	items  []*networkingv1.Ingress // nil: no entry is rendered for items
}

// part is what one entry, or an item of one, wrote.
type part struct {
	entry, text string
	vars        map[string]any
	item        any
	file        dataplane.Position // by kind and name; zero: haproxy.cfg
}

type templatedOrigins struct {
	*templated
	parts []part
}

func (t *templated) Render(ctx context.Context) (*Rendered, error) {
	origins := &templatedOrigins{templated: t}
	var main strings.Builder
	var files []dataplane.File
	var errs []error
	for _, entry := range t.engine.Entries() {
		var texts []string
		var err error
		items := []any{nil}
		if t.items != nil && entry == "haproxy.d/ingress.cfg" {
			items = items[:0]
			for _, item := range t.items {
				items = append(items, item)
			}
			texts, err = t.engine.RenderEach(ctx, entry, "ing", items, t.vars)
		} else {
			texts = make([]string, 1)
			texts[0], err = t.engine.Render(ctx, entry, t.vars)
		}
		if ctx.Err() != nil && err != nil {
			return &Rendered{Origins: origins}, &templateError{err}
		}
		errs = append(errs, err)
		for i, text := range texts {
			p := part{entry: entry, text: text, vars: maps.Clone(t.vars), item: items[i]}
			if p.item != nil {
				p.vars["ing"] = p.item
			}
			if kind, ok := folderKinds[path.Dir(entry)]; ok {
				p.file = dataplane.Position{Kind: kind, Name: path.Base(entry)}
				files = append(files, dataplane.File{Kind: kind, Name: path.Base(entry), Content: []byte(text)})
			} else {
				main.WriteString(text)
			}
			origins.parts = append(origins.parts, p)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return &Rendered{Origins: origins}, &templateError{err}
	}
	cfg, err := dataplane.NewConfig(main.String(), files...)
	return &Rendered{Config: cfg, Origins: origins}, err
}

var folderKinds = map[string]dataplane.FileKind{"maps": dataplane.Map, "crt-lists": dataplane.CRTList, "general": dataplane.General}

func (o *templatedOrigins) Origin(ctx context.Context, at dataplane.Position) (Origin, error) {
	line := at.Line
	for _, p := range o.parts {
		n := strings.Count(p.text, "\n")
		if p.file != (dataplane.Position{Kind: at.Kind, Name: at.Name}) {
			continue
		}
		if line > n || line < 1 {
			line -= n
			continue
		}
		traced, err := o.engine.RenderTraced(ctx, p.entry, p.vars)
		if err != nil {
			return Origin{}, err
		}
		wrote := traced.Origin(line)
		origin := Origin{TemplateLine: TemplateLine{File: wrote.File, Line: wrote.Line, Column: wrote.Column, Text: wrote.Text}, Owners: wrote.Owners}
		if p.item != nil && len(resourcesOf(origin.Owners)) == 0 {
			origin.Owners = []any{p.item}
		}
		return origin, nil
	}
	return Origin{}, nil
}

// templateError is an error of a render, as the loop knows it.
type templateError struct{ error }

func (e *templateError) Unwrap() error { return e.error }

func (e *templateError) Origins() iter.Seq2[Origin, string] {
	return func(yield func(Origin, string) bool) {
		for _, t := range templating.Errors(e.error) {
			if !yield(Origin{TemplateLine: TemplateLine{File: t.File, Line: t.Line, Column: t.Column, Text: t.Text}, Owners: t.Owners}, t.Message) {
				return
			}
		}
	}
}
