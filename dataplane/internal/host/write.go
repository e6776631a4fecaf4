package host

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// write is a change of the stored files under way. stage makes a new generation, or one new
// file of the current one. publish makes it current. finish or undo ends the write.
type write struct {
	store  *store
	before string    // the generation to go back to
	files  int       // files written or deleted, not counting files.json
	next   *snapshot // what is stored after the write; the last snapshot if nothing changes

	name  string    // the one file that changes in place; "" for a new generation
	was   bytesOf   // its former content
	stamp fileStamp // its stamp, once it has changed
}

// stage makes the new generation beside the current one. With inPlace, a change of one file
// needs no generation: HAProxy finds either the old file or the new one, whole.
func (s *store) stage(desired *config.Config, inPlace bool) (*write, error) {
	d, files := s.differs(desired)
	w := &write{store: s, files: files, next: s.seen, before: s.seen.generation}
	if len(d.fresh) == 0 && len(d.gone) == 0 {
		s.seen.config = desired // the next Sync then sees at once that nothing differs
		return w, nil
	}
	var err error
	if _, listed := d.fresh[manifestFile]; inPlace && len(d.fresh) == 1 && !listed && s.seen.linked && !s.seen.missing {
		next := *s.seen
		w.next, next.config, w.was = &next, desired, d.was
		for w.name = range d.fresh {
			err = s.put(freshLink, d.fresh[w.name], true)
		}
		return w, w.failed(err)
	}
	if !s.seen.linked {
		err = s.adopt()
	}
	if err == nil {
		w.next, err = s.build(desired, d.fresh, d.gone)
	}
	w.before = s.seen.generation
	return w, w.failed(err)
}

// failed cleans up after a stage that failed.
func (w *write) failed(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(err, w.store.clean())
}

func encode(files []config.File) []byte {
	m := manifest{Files: make([]listedFile, len(files))}
	for i, f := range files {
		m.Files[i] = listedFile{f.Kind, f.Name}
	}
	raw, _ := json.Marshal(m) // cannot fail for strings
	return append(raw, '\n')
}

// publish makes the staged files current.
func (w *write) publish() error {
	if w.name == "" {
		return w.store.flip(w.next.generation)
	}
	if w.stamp != (fileStamp{}) {
		return nil // already done
	}
	stamp := stampOf(w.store.path(freshLink))
	err := w.replace()
	if err == nil {
		w.stamp = stamp
	}
	return err
}

// replace puts the fresh file in the place of the old one, in one step.
func (w *write) replace() error {
	s := w.store
	return s.step("rename "+w.name, func() error { return os.Rename(s.path(freshLink), s.path(w.next.place(w.name))) })
}

// undo goes back to the former files.
func (w *write) undo() error {
	s := w.store
	if w.stamp != (fileStamp{}) {
		return errors.Join(s.put(freshLink, w.was, true), w.replace())
	}
	if err := s.flip(w.before); err != nil {
		return err
	}
	return s.clean()
}

// finish notes what is stored now, and deletes what is no longer needed.
func (w *write) finish() error {
	w.store.seen, w.store.bad = w.next, nil
	if w.name != "" {
		w.next.stamps[w.name] = w.stamp
		return nil
	}
	return w.store.clean()
}

// adopt takes over a folder with plain files. It puts them into a generation, and then
// replaces each place by a link, in one step each.
func (s *store) adopt() error {
	fresh := map[string]bytesOf{manifestFile: {bytes: encode(s.seen.config.Files)}}
	if s.seen.config.Size() > 0 {
		fresh[mainFile] = bytesOf{textOf: s.seen.config}
	}
	next, err := s.build(s.seen.config, fresh, nil)
	if err == nil {
		err = s.flip(next.generation)
	}
	for _, name := range public() {
		if err == nil {
			err = s.link(path.Join(currentLink, name), name)
		}
	}
	if err == nil {
		s.seen = next
	}
	return err
}

// build makes a generation that shares unchanged files with the current one. It makes a
// folder anew if one of its files is fresh or gone.
func (s *store) build(cfg *config.Config, fresh map[string]bytesOf, gone map[string]bool) (*snapshot, error) {
	number := 0
	_, _ = fmt.Sscanf(s.seen.generation, ".gen-%d", &number) // stays 0 for the first
	name := func(of string) string { return fmt.Sprintf(".%s-%06d", of, number+1) }
	next := &snapshot{generation: name("gen"), folders: maps.Clone(s.seen.folders), linked: true, config: cfg, stamps: maps.Clone(s.seen.stamps)}
	changed := make(map[string]bool)
	for at := range fresh {
		changed[path.Dir(at)] = true
	}
	for at := range gone {
		changed[path.Dir(at)] = true
		delete(next.stamps, at)
	}
	stays := func(at string) bool { _, isFresh := fresh[at]; return !isFresh && !gone[at] }
	err := s.step("make "+next.generation, func() error { return s.makeFolder(next.generation) })
	for _, sub := range subfolders() {
		if err == nil && (changed[sub] || !s.seen.linked) {
			next.folders[sub] = name(sub)
			err = s.step("make "+next.folders[sub], func() error {
				return s.share(sub, next.folders[sub], func(entry string) bool { return stays(sub + "/" + entry) })
			})
		}
		if err == nil {
			err = os.Symlink(path.Join("..", next.folders[sub]), s.path(next.generation, sub))
		}
	}
	for _, name := range []string{mainFile, manifestFile} {
		if _, there := s.seen.stamps[name]; err == nil && there && stays(name) && s.seen.linked {
			err = shareFile(s.path(currentLink, path.Base(name)), s.path(next.generation, path.Base(name)))
		}
	}
	if err == nil {
		err = s.putAll(next, fresh)
	}
	return next, err
}

// manyFiles is the number of files above which one flush of the whole file system is cheaper
// than one flush per file.
const manyFiles = 16

// putAll writes the files of a generation and makes them durable. The names of files, folders
// and links become durable in the order in which they were made.
func (s *store) putAll(next *snapshot, fresh map[string]bytesOf) error {
	for name, c := range fresh {
		at := path.Join(cmp.Or(next.folders[path.Dir(name)], next.generation), path.Base(name))
		if err := s.put(at, c, len(fresh) <= manyFiles); err != nil {
			return err
		}
		next.stamps[name] = stampOf(s.path(at))
	}
	if len(fresh) <= manyFiles {
		return nil
	}
	dir, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(syncAll(dir), dir.Close())
}

// put writes a new file. With flush it makes the file durable.
func (s *store) put(at string, c bytesOf, flush bool) error {
	return s.step("write "+at, func() error {
		f, err := os.OpenFile(s.path(at), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if err = c.write(f); err == nil && flush {
			err = f.Sync()
		}
		return errors.Join(err, s.account.own(f.Name()), f.Close())
	})
}

// makeFolder makes an empty folder.
func (s *store) makeFolder(at string) error {
	// A failed write may have left the folder.
	return errors.Join(os.RemoveAll(s.path(at)), os.Mkdir(s.path(at), 0o750), s.account.own(s.path(at)))
}

// share makes a folder with hard links to the files of another one that stay. The other
// folder may be missing.
func (s *store) share(from, to string, stays func(entry string) bool) error {
	if err := s.makeFolder(to); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.path(from))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		old, fresh := path.Join(from, e.Name()), path.Join(to, e.Name())
		switch {
		case err != nil:
			return err
		case !stays(e.Name()):
		case e.IsDir():
			err = s.share(old, fresh, func(string) bool { return true })
		default:
			err = shareFile(s.path(old), s.path(fresh))
		}
	}
	return err
}

// shareFile makes a hard link, or a copy if the owner of the file or the file system forbids
// links.
func shareFile(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o640) //nolint:gosec // the group of the folder may enter
}

// freshLink is the name of a link or file that will replace another one. After an exchange it
// names the replaced one.
const freshLink = ".fresh"

// stored matches the name of a generation, or of one of its folders.
var stored = regexp.MustCompile(`^\.(gen|maps|ssl|general)-[0-9]{6,}$`)

// flip makes a generation the current one, if it is not.
func (s *store) flip(generation string) error {
	if s.current() == generation {
		return nil
	}
	return s.link(generation, currentLink)
}

// link puts a symbolic link in the place of something, in one step.
func (s *store) link(target, name string) error {
	fresh, at := s.path(freshLink), s.path(name)
	err := s.step("link "+name, func() error { return errors.Join(os.RemoveAll(fresh), os.Symlink(target, fresh)) })
	if err != nil {
		return err
	}
	return s.step("rename "+name, func() error {
		if info, err := os.Lstat(at); err == nil && info.IsDir() {
			return exchange(fresh, at)
		}
		return os.Rename(fresh, at)
	})
}

// clean deletes all generations except the current one, and the folders that it does not use.
func (s *store) clean() error {
	generation := s.current()
	keep := map[string]bool{generation: true}
	for _, sub := range subfolders() {
		target, _ := os.Readlink(s.path(generation, sub))
		keep[path.Base(target)] = true
	}
	dir, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	errs := []error{err, dir.Close()}
	for _, name := range names {
		ours := name == freshLink || stored.MatchString(name)
		if ours && !keep[name] {
			errs = append(errs, s.step("remove "+name, func() error { return os.RemoveAll(s.path(name)) }))
		}
	}
	return errors.Join(errs...)
}

// step carries out one step that changes the folder.
func (s *store) step(name string, do func() error) error {
	if s.failpoint == nil {
		return do()
	}
	s.failpoint("before " + name)
	err := do()
	s.failpoint("after " + name)
	return err
}
