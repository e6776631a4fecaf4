package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/templating"
)

// Input is what a render reads: one consistent view of the resources.
type Input struct {
	Vars  map[string]any   // the variables that the templates were compiled with
	Each  map[string]Each  // entries that are rendered for each of several items
	Files []dataplane.File // made without a template, such as certificates out of Secrets

	// Owners are the objects that each of Files was made of, the most important
	// last, by kind and name of the file; so an error in one can name them.
	Owners map[dataplane.Position][]any

	Refused   []Refusal
	Resources map[string]int

	// Reads takes part in what [Templates.Pure] remembers, for variables that read
	// more while they are used; nil: there are none.
	Reads Reads

	host *host // of the render
}

// Each says that an entry is rendered once for each item, one after the other,
// with the variable Var set to it. In a configuration, a map and a crt-list each
// item begins on a line of its own. The other entries need the variable, too, as
// they are rendered with the same [Input.Vars]: put a zero value there, such as
// a nil pointer. Where that is a map[string]any, an item that is an
// [*unstructured.Unstructured] is seen as the map inside of it.
type Each struct {
	Var   string
	Items []any // comparable: pointers, strings, ...
}

// value is an item as the template sees it.
func (e Each) value(item any, vars map[string]any) any {
	if u, ok := item.(*unstructured.Unstructured); ok && u != nil {
		if _, isMap := vars[e.Var].(map[string]any); isMap {
			return u.Object
		}
	}
	return item
}

// values are items as the template sees them.
func (e Each) values(items []any, vars map[string]any) []any {
	seen := make([]any, len(items))
	for i, item := range items {
		seen[i] = e.value(item, vars)
	}
	return seen
}

// Templates is a [Renderer] made of compiled templates. The path of an entry
// says what it renders: "haproxy.cfg" the text of the configuration, files in
// "haproxy.d/" what follows that text, by name, and others a file of the kind
// of the folder they stand in: "maps/hosts.map", "certificates/x.pem",
// "ca/x.pem", "crt-lists/x.txt", "general/503.http".
type Templates struct {
	Engine *templating.Engine
	Input  func(ctx context.Context) (*Input, error)

	// Pure promises that what a template renders depends on its variables
	// alone: that the functions it calls always answer the same, and that what a
	// variable points to never changes. Then an entry is rendered again only
	// when a variable that it uses is another value (for pointers, maps and
	// slices: is stored elsewhere), and an item of [Each] only when it is
	// another one, so that the cost of a render follows the change. The variables
	// of [HostVars] keep that promise: what an entry or an item read through
	// them is compared, and what it registered is registered again.
	Pure bool

	Layout dataplane.Layout // where HAProxy finds the files that templates register
	HTTP   *fetch.Store     // for the variable http; nil: nothing is fetched
	Post   []PostProcessor  // of what was rendered

	remembered map[string]remembered // by entry; what the last render made
	settling   settling
}

// remembered is what an entry rendered, and from what.
type remembered struct {
	vars  map[string]any // that it uses, but for the item and those of the host
	text  string         // without Each
	notes *notes
	items map[any]string // with Each
	noted map[any]*notes // with Each, of items that asked the host
	order []any          // with Each, of entries that share values
}

// MainEntry is the name of the template that renders haproxy.cfg.
const MainEntry = "haproxy.cfg"

// MainFolder holds the templates whose text follows that of MainEntry.
const MainFolder = "haproxy.d"

// Check reports entries that are of no known kind, and a missing haproxy.cfg,
// all at once: call it at start, before the first render.
func (t *Templates) Check() error {
	var errs []error
	for _, entry := range t.Engine.Entries() {
		if isMain(entry) {
			continue
		}
		kind, ok := kindOfEntry(entry)
		if !ok {
			errs = append(errs, fmt.Errorf("template %s: only %s and files in %s/, maps/, certificates/, ca/, crt-lists/ and general/ can be rendered", entry, MainEntry, MainFolder))
			continue
		}
		if err := dataplane.CheckFileName(kind, path.Base(entry)); err != nil {
			errs = append(errs, fmt.Errorf("template %s: %w", entry, err))
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

// Render renders every entry with the same input. An error has everything that
// failed, with what was being rendered; what was made goes with it as
// [Rendered.Origins] alone.
func (t *Templates) Render(ctx context.Context) (*Rendered, error) {
	ctx = templating.WithShared(ctx, templating.NewShared())
	in, err := t.Input(ctx)
	if err != nil {
		return nil, err
	}
	for entry := range in.Each {
		if !slices.Contains(t.Engine.Entries(), entry) {
			return nil, fmt.Errorf("template %s: missing, but its items are given", entry)
		}
	}
	return t.renderInput(ctx, in)
}

// render renders every entry with an input that its host has filled.
func (t *Templates) render(ctx context.Context, in *Input) (*Rendered, error) {
	var main lines
	var errs []error
	files := slices.Clone(in.Files)
	origins := &templateOrigins{engine: t.Engine, in: in, files: map[fileID]piece{}}
	made := make(map[string]remembered, len(t.remembered))
	t.forgetShared(in)
	for _, entry := range t.Engine.Entries() { // sorted: haproxy.cfg goes before haproxy.d/
		p, err := t.entry(ctx, entry, in, made)
		if ctx.Err() != nil && err != nil { // the origins say of what it was made, where it hangs
			return &Rendered{Refused: in.Refused, Origins: origins}, err
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if isMain(entry) {
			main.add(p.text)
			origins.main = append(origins.main, p)
			continue
		}
		kind, ok := kindOfEntry(entry)
		if !ok {
			return nil, fmt.Errorf("template %s: of no known kind of file", entry)
		}
		files = append(files, dataplane.File{Kind: kind, Name: path.Base(entry), Content: []byte(p.text)})
		origins.files[fileID{kind, path.Base(entry)}] = p
	}
	rendered := &Rendered{Refused: in.Refused, Resources: maps.Clone(in.Resources), Origins: origins}
	if len(errs) > 0 {
		return rendered, joined(errs)
	}
	text, files, err := in.host.finish(main.text.String(), files)
	if err != nil {
		return rendered, err
	}
	rendered.Config, err = dataplane.NewConfig(text, files...)
	if err != nil {
		return rendered, err
	}
	if t.Pure {
		t.remembered = made
	}
	return rendered, nil
}

// joined is errors.Join, but for a single error that error.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// entry renders one entry, or remembers what it rendered from the same.
func (t *Templates) entry(ctx context.Context, entry string, in *Input, made map[string]remembered) (piece, error) {
	each, forItems := in.Each[entry]
	now := remembered{vars: map[string]any{}}
	for _, name := range t.Engine.Uses(entry) {
		if (!forItems || name != each.Var) && !in.host.gives(name, in.Vars[name]) {
			now.vars[name] = in.Vars[name]
		}
	}
	before, ok := t.remembered[entry]
	ok = ok && sameVars(before.vars, now.vars)
	if forItems {
		return t.items(ctx, entry, in, each, before, ok, now, made)
	}
	if ok && before.items == nil && in.host.again(entry, nil, before.notes) {
		made[entry] = before
		return piece{entry: entry, text: before.text}, nil
	}
	now.notes = t.begin(entry, nil, in)
	text, err := t.Engine.Render(ctx, entry, in.Vars)
	if err != nil {
		return piece{}, err
	}
	now.text = in.host.replace(entry, text)
	made[entry] = now
	return piece{entry: entry, text: now.text}, nil
}

func (t *Templates) items(ctx context.Context, entry string, in *Input, each Each, before remembered, valid bool, now remembered, made map[string]remembered) (piece, error) {
	now.items, now.noted = make(map[any]string, len(each.Items)), map[any]*notes{}
	if t.Engine.Shares(entry) {
		now.order = slices.Clone(each.Items)
	}
	var missing []any
	for i, item := range each.Items {
		if !reflect.ValueOf(item).Comparable() {
			return piece{}, fmt.Errorf("template %s: item %d is a %T, which cannot be compared: give a pointer to it", entry, i, item)
		}
		if text, ok := before.items[item]; ok && valid && in.host.again(entry, item, before.noted[item]) {
			now.keep(item, text, before.noted[item])
		} else {
			missing = append(missing, item)
		}
	}
	texts, notes, err := t.renderItems(ctx, entry, each, missing, in)
	if err != nil {
		return piece{}, err
	}
	for i, item := range missing {
		now.keep(item, in.host.replace(entry, texts[i]), notes[i])
	}
	kind, _ := kindOfEntry(entry)
	all := lines{plain: !isMain(entry) && kind != dataplane.Map && kind != dataplane.CRTList}
	for _, item := range each.Items {
		all.add(now.items[item])
	}
	made[entry] = now
	return piece{entry: entry, text: all.text.String(), each: &each, items: now.items}, nil
}

// withItem returns the variables of a render for one item.
func (e Each) withItem(vars map[string]any, item any) map[string]any {
	own := make(map[string]any, len(vars)+1)
	maps.Copy(own, vars)
	own[e.Var] = e.value(item, vars)
	return own
}

// lines puts texts one behind the other. Each begins on a line of its own, as
// its template was escaped for, unless they are plain.
type lines struct {
	text  strings.Builder
	plain bool
	open  bool // the last line has no line feed
}

func (l *lines) add(text string) {
	if text == "" {
		return
	}
	if l.open && !l.plain {
		l.text.WriteByte('\n')
	}
	l.text.WriteString(text)
	l.open = !strings.HasSuffix(text, "\n")
}

func isMain(entry string) bool {
	return entry == MainEntry || path.Dir(entry) == MainFolder
}

func kindOfEntry(entry string) (dataplane.FileKind, bool) {
	dir, name, _ := strings.Cut(entry, "/")
	if name == "" || strings.Contains(name, "/") {
		return "", false
	}
	kind, ok := map[string]dataplane.FileKind{
		"maps":         dataplane.Map,
		"certificates": dataplane.Certificate,
		"ca":           dataplane.CA,
		"crt-lists":    dataplane.CRTList,
		"general":      dataplane.General,
	}[dir]
	return kind, ok
}
