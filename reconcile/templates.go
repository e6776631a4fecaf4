package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
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
}

// Each says that an entry is rendered once for each item, one after the other,
// with the variable Var set to it. In a configuration, a map and a crt-list each
// item begins on a line of its own.
type Each struct {
	Var   string
	Items []any // comparable: pointers, strings, ...
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
	// another one, so that the cost of a render follows the change.
	Pure bool

	remembered map[string]remembered // by entry; what the last render made
}

// remembered is what an entry rendered, and from what.
type remembered struct {
	vars  map[string]any // that it uses, but for the item
	text  string         // without Each
	items map[any]string // with Each
}

// MainEntry is the name of the template that renders haproxy.cfg.
const MainEntry = "haproxy.cfg"

// mainFolder holds the templates whose text follows that of MainEntry.
const mainFolder = "haproxy.d"

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
			errs = append(errs, fmt.Errorf("template %s: only %s and files in %s/, maps/, certificates/, ca/, crt-lists/ and general/ can be rendered", entry, MainEntry, mainFolder))
			continue
		}
		if err := dataplane.CheckFileName(kind, path.Base(entry)); err != nil {
			errs = append(errs, fmt.Errorf("template %s: %w", entry, err))
		}
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
	in, err := t.Input(ctx)
	if err != nil {
		return nil, err
	}
	for entry := range in.Each {
		if !slices.Contains(t.Engine.Entries(), entry) {
			return nil, fmt.Errorf("template %s: missing, but its items are given", entry)
		}
	}
	var main lines
	var errs []error
	files := slices.Clone(in.Files)
	origins := &templateOrigins{engine: t.Engine, in: in, files: map[fileID]piece{}}
	made := make(map[string]remembered, len(t.remembered))
	for _, entry := range t.Engine.Entries() { // sorted: haproxy.cfg goes before haproxy.d/
		p, err := t.entry(ctx, entry, in, made)
		if ctx.Err() != nil && err != nil {
			return nil, err
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
	rendered.Config, err = dataplane.NewConfig(main.text.String(), files...)
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
		if !forItems || name != each.Var {
			now.vars[name] = in.Vars[name]
		}
	}
	before, ok := t.remembered[entry]
	ok = ok && sameVars(before.vars, now.vars)
	if forItems {
		return t.items(ctx, entry, in, each, before.items, ok, now, made)
	}
	if ok && before.items == nil {
		made[entry] = before
		return piece{entry: entry, text: before.text}, nil
	}
	text, err := t.Engine.Render(ctx, entry, in.Vars)
	if err != nil {
		return piece{}, t.allErrors(ctx, entry, in.Vars, err)
	}
	now.text = text
	made[entry] = now
	return piece{entry: entry, text: text}, nil
}

// allErrors renders an entry that failed once more, to find all values in it
// that are refused, each with what it belongs to.
func (t *Templates) allErrors(ctx context.Context, entry string, vars map[string]any, err error) error {
	if ctx.Err() != nil {
		return err
	}
	traced, again := t.Engine.RenderTraced(ctx, entry, vars)
	if traced == nil || len(traced.Refused) == 0 {
		return cmp.Or(again, err)
	}
	var errs []error
	for _, refused := range traced.Refused {
		errs = append(errs, refused)
	}
	var other *templating.Error
	if errors.As(again, &other) && !slices.Contains(traced.Refused, other) {
		errs = append(errs, other)
	}
	return joined(errs)
}

func (t *Templates) items(ctx context.Context, entry string, in *Input, each Each, before map[any]string, valid bool, now remembered, made map[string]remembered) (piece, error) {
	now.items = make(map[any]string, len(each.Items))
	var missing []any
	for i, item := range each.Items {
		if !reflect.ValueOf(item).Comparable() {
			return piece{}, fmt.Errorf("template %s: item %d is a %T, which cannot be compared: give a pointer to it", entry, i, item)
		}
		if text, ok := before[item]; ok && valid {
			now.items[item] = text
		} else {
			missing = append(missing, item)
		}
	}
	texts, err := t.Engine.RenderEach(ctx, entry, each.Var, missing, in.Vars)
	if err != nil {
		return piece{}, t.eachError(ctx, entry, in, each, missing, err)
	}
	for i, item := range missing {
		now.items[item] = texts[i]
	}
	kind, _ := kindOfEntry(entry)
	all := lines{plain: !isMain(entry) && kind != dataplane.Map && kind != dataplane.CRTList}
	for _, item := range each.Items {
		all.add(now.items[item])
	}
	made[entry] = now
	return piece{entry: entry, text: all.text.String(), each: &each, items: now.items}, nil
}

// eachError finds all items with which an entry fails.
func (t *Templates) eachError(ctx context.Context, entry string, in *Input, each Each, items []any, err error) error {
	var errs []error
	for _, item := range items {
		vars := withItem(in.Vars, each.Var, item)
		_, failed := t.Engine.Render(ctx, entry, vars)
		if ctx.Err() != nil {
			return err
		}
		if failed == nil {
			continue
		}
		failed = t.allErrors(ctx, entry, vars, failed)
		for _, e := range templateErrors(failed) {
			if len(resourcesOf(e.Owners)) == 0 {
				e.Owners = []any{item}
			}
		}
		errs = append(errs, failed)
	}
	if len(errs) == 0 { // it failed with all of them in one run alone, such as by the size of the output
		return err
	}
	return joined(errs)
}

// withItem returns the variables of a render for one item.
func withItem(vars map[string]any, name string, item any) map[string]any {
	own := make(map[string]any, len(vars)+1)
	maps.Copy(own, vars)
	own[name] = item
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
	return entry == MainEntry || path.Dir(entry) == mainFolder
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
