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
	"slices"

	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// write is a change of the stored files under way. stage makes the new generation,
// publish makes it the current one, and finish or undo ends the write.
type write struct {
	store  *store
	before string    // the generation to go back to
	files  int       // written or deleted, files.json not counted
	next   *snapshot // what is stored then; that of before if nothing changes
}

// stage makes the new generation beside the current one.
func (s *store) stage(desired *config.Config) (*write, error) {
	fresh, gone := make(map[string][]byte), make(map[string]bool)
	for _, f := range desired.Files {
		name := nameOf(f.Kind, f.Name)
		is, _ := s.seen.config.File(f.Kind, f.Name)
		if _, there := s.seen.stamps[name]; !there || is.Kind == "" || string(is.Content) != string(f.Content) {
			fresh[name] = f.Content
		}
	}
	for _, f := range s.seen.config.Files {
		if _, ok := desired.File(f.Kind, f.Name); !ok {
			gone[nameOf(f.Kind, f.Name)] = true
		}
	}
	if !s.seen.config.SameMain(desired) {
		fresh[mainFile] = []byte(desired.Main())
	}
	w := &write{store: s, files: len(fresh) + len(gone), next: s.seen, before: s.seen.generation}
	same := func(a, b config.File) bool { return config.CompareFiles(a, b) == 0 }
	if _, there := s.seen.stamps[manifestFile]; !there || !slices.EqualFunc(desired.Files, s.seen.config.Files, same) {
		fresh[manifestFile] = encode(desired.Files)
	}
	if len(fresh) == 0 {
		s.seen.config = desired // so that the next Sync sees at once that it is the same
		return w, nil
	}
	var err error
	if !s.seen.linked {
		err = s.adopt()
	}
	if err == nil {
		w.next, err = s.build(desired, fresh, gone)
	}
	if err != nil {
		return nil, errors.Join(err, s.clean())
	}
	w.before = s.seen.generation
	return w, nil
}

func encode(files []config.File) []byte {
	m := manifest{Files: make([]listedFile, len(files))}
	for i, f := range files {
		m.Files[i] = listedFile{f.Kind, f.Name}
	}
	raw, _ := json.Marshal(m) // strings never fail
	return append(raw, '\n')
}

// publish makes the new generation the current one.
func (w *write) publish() error { return w.store.flip(w.next.generation) }

// undo goes back to the generation of before.
func (w *write) undo() error {
	if err := w.store.flip(w.before); err != nil {
		return err
	}
	return w.store.clean()
}

// finish remembers what is stored now, and deletes what is no longer needed.
func (w *write) finish() error {
	w.store.seen, w.store.bad = w.next, nil
	return w.store.clean()
}

// adopt takes the folder over: a generation gets what lies in plain places, and
// links take their place, each in one go.
func (s *store) adopt() error {
	delete(s.seen.stamps, plainManifest)
	fresh := map[string][]byte{manifestFile: encode(s.seen.config.Files)}
	if s.seen.config.Size() > 0 {
		fresh[mainFile] = []byte(s.seen.config.Main())
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

// build makes a generation that shares with the current one what stays. Folders
// that have something fresh or gone are made anew.
func (s *store) build(cfg *config.Config, fresh map[string][]byte, gone map[string]bool) (*snapshot, error) {
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
		err = s.put(next, fresh)
	}
	return next, err
}

// manyFiles is how many files are worth one flush of the whole file system
// instead of one for each.
const manyFiles = 16

// put writes files that are not there yet and makes them durable. The names of
// files, folders and links follow in the order in which they were made.
func (s *store) put(next *snapshot, fresh map[string][]byte) error {
	for name, content := range fresh {
		at := path.Join(cmp.Or(next.folders[path.Dir(name)], next.generation), path.Base(name))
		err := s.step("write "+at, func() error {
			f, err := os.OpenFile(s.path(at), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			_, err = f.Write(content)
			if err == nil && len(fresh) <= manyFiles {
				err = f.Sync()
			}
			return errors.Join(err, s.account.own(f.Name()), f.Close())
		})
		if err != nil {
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
	return errors.Join(unix.Syncfs(int(dir.Fd())), dir.Close())
}

// makeFolder makes an empty folder.
func (s *store) makeFolder(at string) error {
	// A write that failed may have left it.
	return errors.Join(os.RemoveAll(s.path(at)), os.Mkdir(s.path(at), 0o750), s.account.own(s.path(at)))
}

// share makes a folder with hard links of what stays of another one, if that is
// there.
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

// shareFile makes a hard link, or a copy if the owner of the file or the file
// system forbids links.
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

// freshLink is a link that is about to take the place of something, and then what
// it replaced.
const freshLink = ".fresh"

// stored matches a generation or a folder of one.
var stored = regexp.MustCompile(`^\.(gen|maps|ssl|general)-[0-9]{6,}$`)

// flip makes a generation the current one, unless it is.
func (s *store) flip(generation string) error {
	if s.current() == generation {
		return nil
	}
	return s.link(generation, currentLink)
}

// link puts a symbolic link in the place of something, in one go.
func (s *store) link(target, name string) error {
	fresh, at := s.path(freshLink), s.path(name)
	err := s.step("link "+name, func() error { return errors.Join(os.RemoveAll(fresh), os.Symlink(target, fresh)) })
	if err != nil {
		return err
	}
	return s.step("rename "+name, func() error {
		if info, err := os.Lstat(at); err == nil && info.IsDir() {
			return unix.Renameat2(unix.AT_FDCWD, fresh, unix.AT_FDCWD, at, unix.RENAME_EXCHANGE)
		}
		return os.Rename(fresh, at)
	})
}

// clean deletes all generations but the current one, and the folders that it does
// not use.
func (s *store) clean() error {
	generation := s.current()
	keep := map[string]bool{generation: true, plainManifest: generation == ""}
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
		ours := name == freshLink || name == plainManifest || stored.MatchString(name)
		if ours && !keep[name] {
			errs = append(errs, s.step("remove "+name, func() error { return os.RemoveAll(s.path(name)) }))
		}
	}
	return errors.Join(errs...)
}

// step takes one step that changes the folder.
func (s *store) step(name string, do func() error) error {
	if s.failpoint == nil {
		return do()
	}
	s.failpoint("before " + name)
	err := do()
	s.failpoint("after " + name)
	return err
}
