package render

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/templating"
)

// FileRegistry collects the files that templates make while they render the configuration.
// [Templates] gives each render its own, as the variable fileRegistry ([HostVars]).
//
// If a file has an entry of its own, such as maps/hosts.map, use that: its values are
// escaped for a map. The registry checks a registered text, but cannot know which part of it
// was a value.
type FileRegistry struct {
	layout dataplane.Layout

	mu    sync.Mutex
	given []dataplane.File
	files map[string]registered // by path, with the given ones; nil: nothing was registered
	order []string              // of registration
	size  int

	entry string // that is rendered now
	item  any    // of the entry, if that is rendered for items
	now   []dataplane.File
}

// registered is a file and where it comes from.
type registered struct {
	dataplane.File
	entry string // that made it; "" if it was given
	item  any    // the item for which it was made, if any
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

// index maps the given files by path. The caller holds r.mu.
func (r *FileRegistry) index() {
	if r.files != nil {
		return
	}
	r.files = make(map[string]registered, len(r.given))
	for _, f := range r.given { // NewConfig refuses two of one name
		r.files[pathOf(f)] = registered{File: f}
	}
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
// content already is a [*FileConflictError]. Called from Go, Register panics with that
// error.
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

// add registers a file for the entry that is rendered now.
func (r *FileRegistry) add(f dataplane.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.index()
	if err := r.conflict(f, r.entry); err != nil {
		return err
	}
	if r.size+len(f.Name)+len(f.Content) > maxRegistered {
		return fmt.Errorf("%s %q: %w: files of more than %d bytes were registered", f.Kind, f.Name, templating.ErrTooLarge, maxRegistered)
	}
	r.put(f)
	return nil
}

// conflict returns an error if another content of a file is there already. entry makes the
// file. The caller holds r.mu.
func (r *FileRegistry) conflict(f dataplane.File, entry string) error {
	before, ok := r.files[pathOf(f)]
	if !ok || before.Kind == f.Kind && bytes.Equal(before.Content, f.Content) {
		return nil
	}
	first := "the input"
	if before.entry != "" {
		first = "template " + before.entry
	}
	return &FileConflictError{Kind: f.Kind, Name: f.Name, First: first, Other: "template " + entry}
}

func (r *FileRegistry) put(f dataplane.File) {
	key := pathOf(f)
	if before, ok := r.files[key]; ok {
		f = before.File // so that one content is kept once
	} else {
		r.files[key] = registered{f, r.entry, r.item}
		r.order = append(r.order, key)
		r.size += len(f.Name) + len(f.Content)
	}
	r.now = append(r.now, f)
}

// begin says which entry and item is rendered from here on.
func (r *FileRegistry) begin(entry string, item any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entry, r.item, r.now = entry, item, nil
}

// made returns what was registered since begin.
func (r *FileRegistry) made() []dataplane.File {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// again registers the files that an entry registered for an earlier text; nil notes have
// none. If that is a conflict now, it does nothing and returns false.
func (r *FileRegistry) again(entry string, item any, n *notes) bool {
	if n == nil || len(n.files) == 0 {
		return true
	}
	r.begin(entry, item)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.index()
	for _, f := range n.files {
		if r.conflict(f, entry) != nil {
			return false
		}
	}
	for _, f := range n.files {
		r.put(f)
	}
	return true
}

// origin returns the entry that registered a file, and its item.
func (r *FileRegistry) origin(kind dataplane.FileKind, name string) (o reconcile.Origin) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.files[pathOf(dataplane.File{Kind: kind, Name: name})]
	o.File = f.entry
	if f.item != nil {
		o.Owners = []any{f.item}
	}
	return o
}

// with returns the given files and the registered ones. It fails if an entry made a file
// that was registered with another content.
func (r *FileRegistry) with(files []dataplane.File) ([]dataplane.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files == nil {
		return files, nil
	}
	there := map[string]bool{}
	for _, f := range files {
		there[pathOf(f)] = true
		if r.files[pathOf(f)].entry == "" {
			continue
		}
		if err := r.conflict(f, entryOf(f)); err != nil {
			return nil, err
		}
	}
	for _, key := range r.order {
		if !there[key] {
			files = append(files, r.files[key].File)
		}
	}
	return files, nil
}
