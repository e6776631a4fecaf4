// Package render makes configurations from templates: [Templates] is the renderer of a loop.
//
//	templates := &render.Templates{
//		Engine: engine, // templating.Compile made it
//		Layout: local.Layout(),
//		Input: func(ctx context.Context) (*render.Input, error) {
//			list := services.Read(view.Snapshot()).List() // a k8swatch.View
//			return &render.Input{Vars: map[string]any{"services": list}}, nil
//		},
//	}
//	loop, err := reconcile.New(reconcile.Options{Renderer: templates, View: view, Targets: targets})
//
// Besides the variables of their [Input], templates get these from their host, by
// [HostVars]:
//
//   - fileRegistry: files that templates make on the way; see [FileRegistry]
//   - currentConfig: the deployed configuration, so that a choice survives; see
//     [CurrentConfig]
//   - http: contents by URL, used only once a valid configuration was made of them; see
//     [fetch.Store]
//
// As a global they get a [PathResolver], which knows where files lie. A [PostProcessor]
// changes what they rendered.
//
// With [Templates.Pure] the cost of a render follows the change: a text is rendered again
// only when something that it was made of has changed.
package render

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/templating"
)

// Templates is a [reconcile.Renderer] made of compiled templates. The path of an entry says
// what it renders:
//
//   - "haproxy.cfg": the text of the configuration
//   - files in "haproxy.d/": the text that follows, in the order of their names
//   - others: a file of the kind of their folder, such as "maps/hosts.map",
//     "certificates/x.pem", "ca/x.pem", "crt-lists/x.txt", "general/503.http"
//
// Render is called from one goroutine at a time; Settle from any.
type Templates struct {
	Engine *templating.Engine
	Input  func(ctx context.Context) (*Input, error)

	// Pure promises that the text of a template depends on its variables alone. The
	// functions that it calls always answer the same, and nothing that a variable points to
	// ever changes. An entry is then rendered again only when a variable that it uses has
	// another value. For pointers, maps and slices, also in a struct, that means another
	// place in memory. An item of [Each] is rendered again only when it is another item. The
	// variables of [HostVars] keep that promise: Templates compares the revisions of what a
	// text read through them, and registers its files again. Entries that use shared values
	// are rendered each time.
	Pure bool

	Layout dataplane.Layout // where HAProxy finds the files that templates register
	HTTP   *fetch.Store     // for the variable http; nil: it fetches nothing
	Post   []PostProcessor  // they change what was rendered

	texts    *texts            // nil before the first render
	last     *dataplane.Config // of the last render, with Pure
	settling settling
}

// MainEntry is the name of the template that renders haproxy.cfg.
const MainEntry = "haproxy.cfg"

// MainFolder holds the templates whose text follows that of MainEntry.
const MainFolder = "haproxy.d"

// folders maps the folder of an entry to the kind of file that it renders.
var folders = []struct { // constant in effect
	name string
	kind dataplane.FileKind
}{
	{"maps", dataplane.Map},
	{"certificates", dataplane.Certificate},
	{"ca", dataplane.CA},
	{"crt-lists", dataplane.CRTList},
	{"general", dataplane.General},
}

func isMain(entry string) bool { return entry == MainEntry || path.Dir(entry) == MainFolder }

func kindOfEntry(entry string) (dataplane.FileKind, bool) {
	for _, f := range folders {
		if path.Dir(entry) == f.name {
			return f.kind, true
		}
	}
	return "", false
}

// entryOf names the entry that makes a file.
func entryOf(f dataplane.File) string {
	for _, folder := range folders {
		if folder.kind == f.Kind {
			return path.Join(folder.name, f.Name)
		}
	}
	return f.Name
}

// Check reports a missing Engine or, all at once, entries of no known kind, a wrong
// post-processor and a missing haproxy.cfg. Call it at start, before the first render. Input
// may come later.
func (t *Templates) Check() error {
	if t == nil || t.Engine == nil {
		return errors.New("render: Templates.Engine is missing: templating.Compile makes it")
	}
	var errs []error
	for _, entry := range t.Engine.Entries() {
		kind, ok := kindOfEntry(entry)
		switch {
		case isMain(entry) && templating.KindOf(entry) != templating.Config:
			errs = append(errs, fmt.Errorf("template %s: a part of the configuration has a name that ends in .cfg", entry))
		case isMain(entry):
		case !ok:
			errs = append(
				errs,
				fmt.Errorf(
					"template %s: only %s and files in %s/, maps/, certificates/, ca/, crt-lists/ and general/ can be rendered",
					entry,
					MainEntry,
					MainFolder,
				),
			)
		default:
			if err := dataplane.CheckFileName(kind, path.Base(entry)); err != nil {
				errs = append(errs, fmt.Errorf("template %s: %w", entry, err))
			}
		}
	}
	if _, err := t.postProcessing(); err != nil {
		errs = append(errs, err)
	}
	if !slices.Contains(t.Engine.Entries(), MainEntry) {
		errs = append(errs, fmt.Errorf("template %s: missing", MainEntry))
	}
	return errors.Join(errs...)
}

// Render renders every entry with the same input. An error names every failure, with the
// objects that were being rendered. The Rendered beside it has Origins, but no
// configuration. If the failed render used fetched contents that are not deployed yet,
// Render tries again without them.
func (t *Templates) Render(ctx context.Context) (*reconcile.Rendered, error) {
	if t == nil || t.Engine == nil {
		return nil, t.Check()
	}
	if t.Input == nil {
		return nil, errors.New("render: Templates.Input is missing: it gives the templates their variables")
	}
	ctx = templating.WithShared(ctx, templating.NewShared())
	in, err := t.Input(ctx)
	if err == nil && in == nil {
		err = errors.New("render: Templates.Input returned no Input")
	}
	if err != nil {
		return nil, err
	}
	for entry := range in.Each {
		if !slices.Contains(t.Engine.Entries(), entry) {
			return nil, fmt.Errorf("template %s: missing, but its items are given", entry)
		}
	}
	post, err := t.postProcessing()
	if err != nil {
		return nil, err
	}
	for {
		r := t.newRun(ctx, in, post)
		made, err := r.make(ctx)
		in.Reads.follow(nil)
		if err == nil {
			t.made(r, made.Config)
			return made, nil
		}
		var unfetched *fetch.Error
		if ctx.Err() != nil || errors.As(err, &unfetched) || !t.HTTP.Settle(r.http, err) {
			return made, &Error{located(ctx, made, err)}
		}
	}
}

// make renders every entry, and makes the configuration of their texts.
func (r *run) make(ctx context.Context) (*reconcile.Rendered, error) {
	origins := &origins{run: r, files: map[dataplane.Position]piece{}}
	rendered := &reconcile.Rendered{Refused: r.in.Refused, Resources: maps.Clone(r.in.Resources), Origins: origins, Accepted: r.in.Accepted}
	pieces, err := r.all(ctx)
	if err != nil { // the origins name the objects, if it hangs
		return rendered, err
	}
	files := slices.Clone(r.in.Files)
	for _, p := range pieces {
		if isMain(p.entry) {
			origins.main = append(origins.main, p)
			continue
		}
		kind, ok := kindOfEntry(p.entry)
		if !ok {
			return nil, fmt.Errorf("template %s: of no known kind of file", p.entry)
		}
		f := dataplane.File{Kind: kind, Name: path.Base(p.entry), Content: p.fileContent(kind != dataplane.Map && kind != dataplane.CRTList)}
		files = append(files, f)
		origins.files[dataplane.Position{Kind: f.Kind, Name: f.Name}] = p
	}
	if files, err = r.registry.with(files, pieces); err != nil {
		return rendered, err
	}
	parts := partsOf(origins.main)
	files, origins.moved = r.post.files(files)
	if r.post.squeezes() {
		parts = []string{strings.Join(parts, "")}
		parts[0], origins.moved[dataplane.Position{}] = squeeze(parts[0])
	}
	rendered.Config, err = dataplane.NewConfigFrom(r.last, parts, files...)
	return rendered, err
}

// joined is errors.Join, but returns a single error as it is.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
