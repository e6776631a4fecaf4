package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// write is a change of the stored files under way. stage makes the new generation,
// publish makes it the current one, and finish or undo ends the write.
type write struct {
	store   *store
	desired *config.Config
	before  string            // the generation to go back to
	files   int               // written or deleted, files.json not counted
	fresh   map[string][]byte // to be written, by name
	gone    map[string]bool   // to be left out, by name
	next    *snapshot         // what is stored then; nil if nothing changes
}

// stage makes the new generation durable beside the current one.
func (s *store) stage(desired *config.Config) (*write, error) {
	w := &write{store: s, desired: desired, before: s.seen.at[currentLink], fresh: make(map[string][]byte), gone: make(map[string]bool)}
	if w.collect(); len(w.fresh)+len(w.gone) == 0 {
		return w, nil
	}
	if slices.ContainsFunc(public(), s.seen.plain) {
		if err := s.adopt(); err != nil {
			return nil, err
		}
		w.before = s.seen.at[currentLink]
	}
	next, err := s.build(w.fresh, w.gone)
	if err != nil {
		return nil, errors.Join(err, s.clean())
	}
	next.main, next.files, next.listed = desired.Main, desired.Files, listOf(desired)
	w.next = next
	return w, nil
}

// collect finds what is to be written and deleted.
func (w *write) collect() {
	seen := w.store.seen
	for _, f := range w.desired.Files {
		i, ok := slices.BinarySearchFunc(seen.files, f, config.CompareFiles)
		if !ok || string(seen.files[i].Content) != string(f.Content) {
			w.fresh[nameOf(f.Kind, f.Name)] = f.Content
		}
	}
	for _, f := range seen.listed {
		if _, ok := w.desired.File(f.Kind, f.Name); !ok {
			w.gone[nameOf(f.Kind, f.Name)] = true
		}
	}
	if seen.main != w.desired.Main {
		w.fresh[mainFile] = []byte(w.desired.Main)
	}
	w.files = len(w.fresh) + len(w.gone)
	if listed := listOf(w.desired); seen.unlisted || !slices.Equal(listed, seen.listed) {
		w.fresh[manifestFile] = encode(listed)
	}
}

func listOf(cfg *config.Config) []listedFile {
	listed := make([]listedFile, len(cfg.Files))
	for i, f := range cfg.Files {
		listed[i] = listedFile{f.Kind, f.Name}
	}
	return listed
}

func encode(listed []listedFile) []byte {
	raw, _ := json.Marshal(manifest{Files: listed}) // strings never fail
	return append(raw, '\n')
}

// publish makes the new generation the current one.
func (w *write) publish() error {
	if w.next == nil {
		return nil
	}
	return w.store.flip(w.next.at[currentLink])
}

// undo goes back to the generation of before.
func (w *write) undo() error {
	if w.next == nil {
		return nil
	}
	if err := w.store.flip(w.before); err != nil {
		return err
	}
	return w.store.clean()
}

// finish remembers what is stored now, and deletes what is no longer needed.
func (w *write) finish() error {
	if w.next == nil {
		return nil
	}
	w.store.seen, w.store.disk = w.next, w.desired
	return w.store.clean()
}

// numbered returns a snapshot of the next generation, and how its folders are
// called.
func (s *store) numbered() (next *snapshot, name func(of string) string) {
	number := 0
	_, _ = fmt.Sscanf(s.seen.at[currentLink], ".gen-%d", &number) // stays 0 for the first
	name = func(of string) string { return fmt.Sprintf(".%s-%06d", of, number+1) }
	next = &snapshot{at: maps.Clone(s.seen.at), stamps: maps.Clone(s.seen.stamps)}
	next.at[currentLink] = name("gen")
	next.at[mainFile], next.at[manifestFile] = path.Join(name("gen"), mainFile), path.Join(name("gen"), manifestFile)
	return next, name
}

// adopt takes the folder over: plain folders move into a generation with all that
// they hold, and links take their place, each in one go.
func (s *store) adopt() error {
	next, name := s.numbered()
	for _, sub := range subfolders() {
		if s.seen.plain(sub) {
			next.at[sub] = name(sub)
		}
	}
	fresh := map[string][]byte{manifestFile: encode(s.seen.listed)}
	if s.seen.main != "" {
		fresh[mainFile] = []byte(s.seen.main)
	}
	if err := s.makeGeneration(next, fresh); err != nil {
		return err
	}
	if err := s.flip(next.at[currentLink]); err != nil {
		return err
	}
	for _, name := range public() {
		if !s.seen.plain(name) {
			continue
		}
		if err := s.swap(name, next.at[name]); err != nil {
			return err
		}
	}
	s.disk = nil
	if _, err := s.load(); !errors.Is(err, config.ErrInvalidConfig) {
		return err
	}
	return nil
}

// swap puts a link where something plain is, and moves a folder to its new place.
func (s *store) swap(name, to string) error {
	fresh := s.path(freshLink)
	if err := s.symlink(path.Join(currentLink, name), freshLink); err != nil {
		return err
	}
	return s.step("swap "+name, func() error {
		_, err := os.Stat(s.path(name))
		switch {
		case name == mainFile:
			return os.Rename(fresh, s.path(name))
		case err != nil: // there is none, or a link to nothing
			return errors.Join(s.makeFolder(to), os.Rename(fresh, s.path(name)))
		}
		return errors.Join(os.Rename(fresh, s.path(to)),
			unix.Renameat2(unix.AT_FDCWD, s.path(to), unix.AT_FDCWD, s.path(name), unix.RENAME_EXCHANGE))
	})
}

// build makes a generation that shares with the current one what stays. Folders
// that have something fresh or gone are made anew.
func (s *store) build(fresh map[string][]byte, gone map[string]bool) (*snapshot, error) {
	next, name := s.numbered()
	changed := make(map[string]bool)
	for at := range fresh {
		changed[path.Dir(at)] = true
	}
	for at := range gone {
		changed[path.Dir(at)] = true
		delete(next.stamps, at)
	}
	var made []string
	for _, sub := range subfolders() {
		if !changed[sub] {
			continue
		}
		next.at[sub] = name(sub)
		made = append(made, next.at[sub])
		err := s.share(s.seen.at[sub], next.at[sub], func(entry string) bool {
			_, isFresh := fresh[sub+"/"+entry]
			return isFresh || gone[sub+"/"+entry]
		})
		if err != nil {
			return nil, err
		}
	}
	return next, s.makeGeneration(next, fresh, made...)
}
