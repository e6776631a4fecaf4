package reconcile

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/templating"
)

// FileRegistry collects the files that templates make while they render the
// configuration. [Templates] gives each render one of its own, as the variable
// fileRegistry ([HostVars]).
//
// Where a file has an entry of its own, such as maps/hosts.map, use that: what it
// shows is escaped for a map. What is registered as one text is checked, but
// nobody can tell which part of it was a value.
type FileRegistry struct {
	layout dataplane.Layout

	mu    sync.Mutex
	files map[string]registered // by path
	order []string              // of registration
	size  int
	notes *notes // of what is rendered now
	entry string
	item  any // of the entry; nil where it is rendered once
}

// registered is a file and where it comes from.
type registered struct {
	dataplane.File
	entry string // that made it; "" if it was given
	item  any    // for which it was made, if for one
}

func (f registered) from() string {
	if f.entry == "" {
		return "the input"
	}
	return "template " + f.entry
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
	r := &FileRegistry{layout: layout, files: make(map[string]registered, len(given))}
	for _, f := range given { // two of one name are for NewConfig to refuse
		r.files[r.key(f)] = registered{File: f}
	}
	return r
}

// key is where a file would lie, whatever the folder is called: kinds that share
// a folder share their names.
func (r *FileRegistry) key(f dataplane.File) string { return dataplane.Layout{}.Path(f.Kind, f.Name) }

// Register adds a file to the configuration and returns its path. The kind is
// one of those of [PathResolver.Path].
//
// The content is a text: what a macro wrote, raw(...), a string or bytes. For a
// map it may also be a map[string]string, and for any kind a []string of lines.
// A map and a crt-list of more than one line must be one of these, a macro or
// raw(...): in a string that a template put together nobody can tell a line of
// the template from one that a value brought along. Registering the same content
// again is nothing new.
//
// What is wrong ends the render, with the position of the call: an unknown kind,
// a name that [dataplane.CheckFileName] refuses, a content that is none, and a
// [*FileConflictError] where the file has another content already. Called from
// Go it panics with that error.
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

func newFile(kind, name string, content any) (dataplane.File, error) {
	f := dataplane.File{Name: name}
	var err error
	if f.Kind, err = fileKind(kind); err != nil {
		return f, err
	}
	if err := dataplane.CheckFileName(f.Kind, name); err != nil {
		return f, err
	}
	text, err := contentOf(f.Kind, content)
	if err == nil {
		err = checkContent(f.Kind, text)
	}
	if err != nil {
		return f, fmt.Errorf("%s %q: %w", f.Kind, name, err)
	}
	f.Content = []byte(text)
	return f, nil
}

// contentOf makes a text of what a template gave.
func contentOf(kind dataplane.FileKind, content any) (string, error) {
	switch content := content.(type) {
	case []byte:
		return string(content), checkPlain(kind, string(content))
	case string:
		return content, checkPlain(kind, content)
	case []string:
		for i, line := range content {
			if j := strings.IndexFunc(line, isControl); j >= 0 {
				return "", fmt.Errorf("line %d has the control character %q", i+1, line[j])
			}
		}
		if len(content) == 0 {
			return "", nil
		}
		return strings.Join(content, "\n") + "\n", nil
	case map[string]string:
		if kind != dataplane.Map {
			return "", fmt.Errorf("keys and values are the content of a map")
		}
		return mapText(content)
	}
	if v := reflect.ValueOf(content); v.Kind() == reflect.String { // also what a macro wrote, and raw
		return v.String(), nil
	}
	return "", fmt.Errorf("the content must be a text, a []string of lines or, for a map, a map[string]string, not a %T", content)
}

// checkPlain refuses a text of several lines where each line counts and a value
// may have added one.
func checkPlain(kind dataplane.FileKind, text string) error {
	if (kind == dataplane.Map || kind == dataplane.CRTList) && strings.Contains(strings.TrimSuffix(text, "\n"), "\n") {
		return fmt.Errorf("a string or bytes may have one line only, so that no value adds another: give a []string of lines, what a macro wrote, raw(...) or, for a map, a map[string]string")
	}
	return nil
}

func isControl(c rune) bool { return c < 0x20 || c == 0x7f }

// mapText writes the lines of a map in the order of their keys.
func mapText(entries map[string]string) (string, error) {
	keys := make([]string, 0, len(entries))
	for k, v := range entries {
		switch {
		case k == "" || k[0] == '#':
			return "", fmt.Errorf("a line cannot start with the key %q", k)
		case strings.ContainsFunc(k, isControl) || strings.Contains(k, " "):
			return "", fmt.Errorf("the key %q has white space or a control character", k)
		case strings.ContainsFunc(v, isControl):
			return "", fmt.Errorf("the value of %q has a control character", k)
		}
		keys = append(keys, k)
	}
	slices.Sort(keys)
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(strings.TrimRight(k+" "+entries[k], " "))
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// maxMapLine is the longest line of a map, in bytes with its line feed: HAProxy
// takes what is beyond for a line of its own (tune.bufsize, 16384, less one).
const maxMapLine = 16383

// checkContent refuses what HAProxy would read as something else than it looks
// like, in the kinds that it reads line by line.
func checkContent(kind dataplane.FileKind, text string) error {
	if kind != dataplane.Map && kind != dataplane.CRTList {
		return nil
	}
	if !utf8.ValidString(text) {
		return fmt.Errorf("the content is not UTF-8")
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if kind == dataplane.Map && len(line) > maxMapLine {
			return fmt.Errorf("line %d has %d bytes: HAProxy takes what is beyond %d for another line", n, len(line), maxMapLine)
		}
		i := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(c rune) bool { return isControl(c) && c != '\t' })
		if i >= 0 {
			return fmt.Errorf("line %d has the control character %q", n, line[i])
		}
	}
	return nil
}

// add registers a file for the entry that is rendered now.
func (r *FileRegistry) add(f dataplane.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.check(f); err != nil {
		return err
	}
	if r.size+len(f.Name)+len(f.Content) > maxRegistered {
		return fmt.Errorf("%s %q: %w: files of more than %d bytes were registered", f.Kind, f.Name, templating.ErrTooLarge, maxRegistered)
	}
	r.notes.file(r.key(f), r.put(f))
	return nil
}

// check says whether a file conflicts with one that is there. The caller holds
// r.mu.
func (r *FileRegistry) check(f dataplane.File) error {
	before, ok := r.files[r.key(f)]
	if !ok || before.Kind == f.Kind && bytes.Equal(before.Content, f.Content) {
		return nil
	}
	return &FileConflictError{Kind: f.Kind, Name: f.Name, First: before.from(), Other: "template " + r.entry}
}

// put returns the file as it was registered first.
func (r *FileRegistry) put(f dataplane.File) dataplane.File {
	key := r.key(f)
	if before, ok := r.files[key]; ok {
		return before.File
	}
	r.files[key] = registered{f, r.entry, r.item}
	r.order = append(r.order, key)
	r.size += len(f.Name) + len(f.Content)
	return f
}

// again registers what an entry registered when its text was made. It reports
// false, and does nothing, where that is a conflict now.
func (r *FileRegistry) again(entry string, item any, files map[string]dataplane.File) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entry, r.item = entry, item
	for _, f := range files {
		if r.check(f) != nil {
			return false
		}
	}
	for _, key := range slices.Sorted(maps.Keys(files)) {
		r.put(files[key])
	}
	return true
}

// begin says what is rendered from here on.
func (r *FileRegistry) begin(entry string, item any, n *notes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entry, r.item, r.notes = entry, item, n
}

// origin says what registered a file, and for whom.
func (r *FileRegistry) origin(kind dataplane.FileKind, name string) (o Origin) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.files[r.key(dataplane.File{Kind: kind, Name: name})]
	o.File = f.entry
	if f.item != nil {
		o.Owners = []any{f.item}
	}
	return o
}

// with returns the files given and those that were registered. A file that an
// entry made must not have been registered with another content.
func (r *FileRegistry) with(files []dataplane.File) ([]dataplane.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	skip := map[string]bool{}
	for _, f := range files {
		key := r.key(f)
		before, ok := r.files[key]
		if !ok || before.entry == "" {
			continue
		}
		if before.Kind != f.Kind || !bytes.Equal(before.Content, f.Content) {
			return nil, &FileConflictError{Kind: f.Kind, Name: f.Name, First: before.from(), Other: "template " + entryOf(f)}
		}
		skip[key] = true
	}
	for _, key := range r.order {
		if !skip[key] {
			files = append(files, r.files[key].File)
		}
	}
	return files, nil
}

// entryOf names the entry that made a file.
func entryOf(f dataplane.File) string {
	for _, folder := range []string{"maps", "certificates", "ca", "crt-lists", "general"} {
		if kind, _ := kindOfEntry(folder + "/" + f.Name); kind == f.Kind {
			return folder + "/" + f.Name
		}
	}
	return f.Name
}
