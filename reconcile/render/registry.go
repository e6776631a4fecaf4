package render

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/templating"
)

// FileRegistry collects the files that templates make while they render the configuration.
// [Templates] gives each render its own, as the variable fileRegistry ([HostVars]). Each text
// keeps the files that it registered.
//
// If a file has an entry of its own, such as maps/hosts.map, use that: its values are
// escaped for a map. The registry checks a registered text, but cannot know which part of it
// was a value.
type FileRegistry struct {
	layout dataplane.Layout

	mu    sync.Mutex
	given []dataplane.File
	entry string                // that is rendered now
	size  int                   // of all files that this render registered
	now   []dataplane.File      // registered by the text that is rendered now
	all   map[string]registered // by path, once the render is over
}

// registered is a file and the text that registered it.
type registered struct {
	dataplane.File
	textOf
}

// FileConflictError says that one file would have two contents.
type FileConflictError struct {
	Kind  dataplane.FileKind
	Name  string
	First string // what made the first one: "template haproxy.cfg"
	Other string // and the second
}

func (e *FileConflictError) Error() string {
	return fmt.Sprintf("%s %q: %s makes another content, or another kind of file, than %s made before", e.Kind, e.Name, e.Other, e.First)
}

// maxRegistered bounds what one render may register, names included, in bytes.
const maxRegistered = 4 * templating.DefaultMaxOutput

func newFileRegistry(layout dataplane.Layout, given []dataplane.File) *FileRegistry {
	return &FileRegistry{layout: layout, given: given}
}

// pathOf returns the path of a file, whatever its folder is called: kinds that share a
// folder share their names.
func pathOf(f dataplane.File) string { return dataplane.Layout{}.Path(f.Kind, f.Name) }

// Register adds a file to the configuration and returns its path. The kinds are those of
// [PathResolver.Path].
//
// The content is a text: that of a macro, raw(...), a string or bytes. For a map it may also
// be a map[string]string, and for any kind a []string of lines. It must fit the use that the
// name says, see [templating.KindOf]:
//
//   - The text of a macro is escaped for its own template. It must not have backslashes nor,
//     in a map or a list, quotes.
//   - Regular expressions (hosts_reg.map, paths_reg.lst), log-format strings (sorry_lf.html)
//     and files of no known use can only be raw(...).
//   - A map or a crt-list of several lines cannot be a string or bytes. In a string, a line
//     that a value brought along looks like a line of the template.
//
// Registering the same content again changes nothing.
//
// An error ends the render, with the position of the call. Errors are an unknown kind, a
// name that [dataplane.CheckFileName] refuses, and an unfit content. A file that has another
// content already is a [*FileConflictError]; if another text made it, the error names both.
// Called from Go, Register panics with the error.
func (r *FileRegistry) Register(kind, name string, content any) string {
	f, err := newFile(kind, name, content)
	if err == nil {
		err = r.add(f)
	}
	if err != nil {
		panic(err)
	}
	return r.layout.Path(f.Kind, f.Name)
}

// add registers a file for the text that is rendered now.
func (r *FileRegistry) add(f dataplane.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	is := func(known dataplane.File) bool { return pathOf(known) == pathOf(f) }
	if i := slices.IndexFunc(r.given, is); i >= 0 && !sameFile(r.given[i], f) {
		return &FileConflictError{Kind: f.Kind, Name: f.Name, First: "the input", Other: "template " + r.entry}
	}
	if i := slices.IndexFunc(r.now, is); i >= 0 && !sameFile(r.now[i], f) {
		return &FileConflictError{Kind: f.Kind, Name: f.Name, First: "template " + r.entry, Other: "template " + r.entry}
	}
	r.size += len(f.Name) + len(f.Content)
	if r.size > maxRegistered {
		return tooManyRegistered(f)
	}
	r.now = append(r.now, f)
	return nil
}

func sameFile(a, b dataplane.File) bool { return a.Kind == b.Kind && bytes.Equal(a.Content, b.Content) }

func tooManyRegistered(f dataplane.File) error {
	return fmt.Errorf("%s %q: %w: files of more than %d bytes were registered", f.Kind, f.Name, templating.ErrTooLarge, maxRegistered)
}

// begin says which entry is rendered from here on.
func (r *FileRegistry) begin(entry string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entry, r.now = entry, nil
}

// made returns what was registered since begin.
func (r *FileRegistry) made() []dataplane.File {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// with adds the registered files of all texts to the given ones. If a file would have two
// contents, the error names the texts of both.
func (r *FileRegistry) with(files []dataplane.File, pieces []piece) ([]dataplane.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, size := map[string]registered{}, 0
	r.all = map[string]registered{}
	for _, p := range pieces {
		for item, t := range p.all() {
			for _, f := range t.files {
				if len(known) == 0 {
					for _, given := range files {
						known[pathOf(given)] = registered{File: given}
					}
				}
				now := registered{f, textOf{p.entry, item}}
				first, ok := known[pathOf(f)]
				if ok && !sameFile(first.File, f) {
					return nil, r.conflict(first, now)
				}
				if ok {
					continue
				}
				size += len(f.Name) + len(f.Content)
				if size > maxRegistered {
					return nil, tooManyRegistered(f)
				}
				known[pathOf(f)], r.all[pathOf(f)] = now, now
				files = append(files, f)
			}
		}
	}
	return files, nil
}

// conflict is the error of a text that registers another content than a file has. The file of
// an entry counts as made after it.
func (r *FileRegistry) conflict(first, other registered) error {
	e := &FileConflictError{Kind: other.Kind, Name: other.Name, First: "template " + first.entry, Other: "template " + other.entry}
	entry := other.entry
	switch isGiven := func(f dataplane.File) bool { return pathOf(f) == pathOf(first.File) }; {
	case slices.ContainsFunc(r.given, isGiven):
		e.First = "the input"
	case first.entry == "":
		entry = entryOf(first.File)
		e.First, e.Other = "template "+other.entry, "template "+entry
	}
	return &templating.Error{Entry: entry, File: entry, Message: e.Error(), Err: e, Owners: appendOwners(appendOwners(nil, first.item), other.item)}
}

// origin returns the entry that registered a file, and its item.
func (r *FileRegistry) origin(kind dataplane.FileKind, name string) (o reconcile.Origin) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.all[pathOf(dataplane.File{Kind: kind, Name: name})]
	o.File = f.entry
	if f.item != nil {
		o.Owners = []any{f.item}
	}
	return o
}
