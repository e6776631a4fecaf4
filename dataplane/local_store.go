package dataplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// store keeps one configuration in a folder. Names of files in it that start
// with a dot are its own; no file of a configuration can have such a name.
type store struct {
	dir      string
	account  *account
	attached bool // the folders are somebody else's: keep owner and mode

	disk  *Config              // what was read or written last
	stats map[string]fileStamp // of every file of disk, by its path within dir
}

// fileStamp tells cheaply whether somebody else wrote a file.
type fileStamp struct {
	size, mtime int64
	inode       uint64
}

const (
	mainFile     = "haproxy.cfg"
	manifestFile = "files.json"  // which files belong to the configuration, and of which kind
	freshPrefix  = ".fresh-"     // written, not yet in place
	backupPrefix = ".last-good-" // in place before a reload whose outcome is open
)

var storeDirs = []string{".", "maps", "ssl", "general", "run"}

func newStore(dir string, a *account, attached bool) *store {
	return &store{dir: dir, account: a, attached: attached}
}

// exists reports whether a configuration is stored. It needs no turn.
func (s *store) exists() bool {
	_, err := os.Lstat(filepath.Join(s.dir, mainFile))
	return err == nil
}

// manifest is the content of manifestFile.
type manifest struct {
	Files []manifestEntry `json:"files"`
}

type manifestEntry struct {
	Kind FileKind `json:"kind"`
	Name string   `json:"name"`
}

// filePath returns the path of a file within the folder.
func filePath(kind FileKind, name string) string {
	switch kind {
	case Map:
		return path.Join("maps", name)
	case Certificate:
		return path.Join("ssl", name)
	default:
		return path.Join("general", name)
	}
}

// prepare makes the folders.
func (s *store) prepare() error {
	if err := os.MkdirAll(s.dir, 0o750); err != nil {
		return err
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, dir := range storeDirs {
		err := root.Mkdir(dir, 0o750)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if s.account == nil || s.attached && err != nil {
			continue
		}
		uid := 0
		if dir == "run" {
			uid = s.account.uid // HAProxy makes its sockets there
		}
		if err := errors.Join(root.Chown(dir, uid, s.account.gid), root.Chmod(dir, 0o750)); err != nil {
			return err
		}
	}
	return s.reachable()
}

// reachable checks that the account may enter all folders above.
func (s *store) reachable() error {
	if s.account == nil || s.attached {
		return nil
	}
	for dir := filepath.Dir(s.dir); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		mode := info.Mode().Perm()
		if sys, ok := info.Sys().(*syscall.Stat_t); ok && mode&0o001 == 0 &&
			(mode&0o010 == 0 || int(sys.Gid) != s.account.gid) && (mode&0o100 == 0 || int(sys.Uid) != s.account.uid) {
			return &fs.PathError{Op: "enter", Path: dir, Err: fmt.Errorf("account %s: %w", s.account.name, fs.ErrPermission)}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// recover puts back what was in place before a reload whose outcome nobody
// waited for, and removes what never got into place.
func (s *store) recover() error {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, dir := range storeDirs {
		entries, err := fs.ReadDir(root.FS(), dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			at := path.Join(dir, e.Name())
			if strings.HasPrefix(e.Name(), freshPrefix) {
				err = root.Remove(at)
			} else if name, ok := strings.CutPrefix(e.Name(), backupPrefix); ok {
				err = root.Rename(at, path.Join(dir, name))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// load returns the stored configuration, nil if there is none. It reads the
// files again only if somebody else changed one.
func (s *store) load() (*Config, error) {
	if s.disk != nil && s.untouched() {
		return s.disk, nil
	}
	s.disk, s.stats = nil, nil
	root, err := os.OpenRoot(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	stats := make(map[string]fileStamp)
	read := func(at string) ([]byte, error) {
		info, err := root.Lstat(at)
		if err != nil {
			return nil, err
		}
		stats[at] = stampOf(info)
		return root.ReadFile(at)
	}
	text, err := read(mainFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var m manifest
	if raw, err := read(manifestFile); err == nil {
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrInvalidConfig, manifestFile, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var files []File
	for _, e := range m.Files {
		content, err := read(filePath(e.Kind, e.Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the next Sync finds it missing and writes it
		}
		if err != nil {
			return nil, err
		}
		files = append(files, File{e.Kind, e.Name, content})
	}
	config, err := NewConfig(string(text), files...)
	if err != nil {
		return nil, err
	}
	s.disk, s.stats = config, stats
	return config, nil
}

func (s *store) untouched() bool {
	for at, stamp := range s.stats {
		info, err := os.Lstat(filepath.Join(s.dir, at))
		if err != nil || stampOf(info) != stamp {
			return false
		}
	}
	return true
}

func stampOf(info fs.FileInfo) fileStamp {
	stamp := fileStamp{size: info.Size(), mtime: info.ModTime().UnixNano()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		stamp.inode = sys.Ino
	}
	return stamp
}

// write is a change of the stored files under way: stage puts the new files
// beside the old ones, publish moves them into place, and then either finish
// or undo ends it.
type write struct {
	store   *store
	root    *os.Root
	desired *Config
	fresh   []stored // to be written
	gone    []string // to be deleted at the end
	moved   []string // what publish has put into place
	backups map[string]bool

	published bool
}

type stored struct {
	at      string
	content []byte
}

// stage writes the files that differ from what is on the disk, beside those.
func (s *store) stage(disk, desired *Config) (w *write, err error) {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	w = &write{store: s, root: root, desired: desired, backups: make(map[string]bool)}
	if err := w.collect(disk); err != nil {
		_ = root.Close()
		return nil, err
	}
	for _, f := range w.fresh {
		if err := w.put(f); err != nil {
			w.undo()
			return nil, err
		}
	}
	return w, nil
}

// collect finds what is to be written and deleted.
func (w *write) collect(disk *Config) error {
	if disk == nil {
		disk = emptyConfig()
	}
	for _, f := range w.desired.files {
		old, ok := disk.File(f.Kind, f.Name)
		if !ok || string(old.Content) != string(f.Content) {
			w.fresh = append(w.fresh, stored{filePath(f.Kind, f.Name), f.Content})
		}
	}
	_, listed := w.store.stats[manifestFile]
	sameFiles := listed && len(disk.files) == len(w.desired.files)
	for _, f := range disk.files {
		if _, ok := w.desired.File(f.Kind, f.Name); !ok {
			sameFiles = false
			// The same path may live on as a file of another kind.
			if at := filePath(f.Kind, f.Name); !slices.ContainsFunc(w.fresh, func(s stored) bool { return s.at == at }) {
				w.gone = append(w.gone, at)
			}
		}
	}
	if !sameFiles {
		m := manifest{Files: make([]manifestEntry, 0, len(w.desired.files))}
		for _, f := range w.desired.files {
			m.Files = append(m.Files, manifestEntry{f.Kind, f.Name})
		}
		raw, err := json.Marshal(m)
		if err != nil {
			return err
		}
		w.fresh = append(w.fresh, stored{manifestFile, append(raw, '\n')})
	}
	if disk.main != w.desired.main {
		w.fresh = append(w.fresh, stored{mainFile, []byte(w.desired.main)})
	}
	return nil
}

// files returns how many files change, the list of them not counted.
func (w *write) files() int {
	n := len(w.fresh) + len(w.gone)
	if slices.ContainsFunc(w.fresh, func(s stored) bool { return s.at == manifestFile }) {
		n--
	}
	return n
}

func freshPath(at string) string { return path.Join(path.Dir(at), freshPrefix+path.Base(at)) }

func backupPath(at string) string { return path.Join(path.Dir(at), backupPrefix+path.Base(at)) }

func (w *write) put(f stored) (err error) {
	mode := fs.FileMode(0o600)
	if w.store.account != nil {
		mode = 0o640
	}
	file, err := w.root.OpenFile(freshPath(f.at), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if a := w.store.account; a != nil {
		if err := errors.Join(file.Chown(0, a.gid), file.Chmod(mode)); err != nil {
			return err
		}
	}
	_, err = file.Write(f.content)
	return err
}

// manyFiles is how many files are worth one flush of the whole file system
// instead of one for each.
const manyFiles = 16

// publish makes the new files durable and moves them into place, keeping what
// was there before until finish or undo.
func (w *write) publish() error {
	if w.published {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	dirs := make(map[string]bool)
	for _, f := range w.fresh {
		err := w.root.Link(f.at, backupPath(f.at))
		switch {
		case err == nil:
			w.backups[f.at] = true
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		if err := w.root.Rename(freshPath(f.at), f.at); err != nil {
			return err
		}
		w.moved = append(w.moved, f.at)
		dirs[path.Dir(f.at)] = true
	}
	for dir := range dirs {
		if err := w.sync(dir); err != nil {
			return err
		}
	}
	w.published = true
	return nil
}

func (w *write) flush() error {
	if len(w.fresh) > manyFiles {
		dir, err := w.root.Open(".")
		if err != nil {
			return err
		}
		err = unix.Syncfs(int(dir.Fd()))
		return errors.Join(err, dir.Close())
	}
	for _, f := range w.fresh {
		if err := w.sync(freshPath(f.at)); err != nil {
			return err
		}
	}
	return nil
}

func (w *write) sync(at string) error {
	file, err := w.root.Open(at)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// undo puts everything back as it was before stage. It takes no space on the
// disk.
func (w *write) undo() {
	for _, f := range w.fresh {
		_ = w.root.Remove(freshPath(f.at))
	}
	for _, at := range w.moved {
		if !w.backups[at] {
			_ = w.root.Remove(at)
		}
	}
	for at := range w.backups {
		_ = w.root.Rename(backupPath(at), at)
		_ = w.root.Remove(backupPath(at)) // rename leaves both names of one file
	}
	w.store.disk, w.store.stats = nil, nil // read again
	_ = w.root.Close()
}

// finish deletes what is no longer needed and remembers what is stored.
func (w *write) finish() error {
	defer func() { _ = w.root.Close() }()
	var errs []error
	for at := range w.backups {
		errs = append(errs, w.root.Remove(backupPath(at)))
	}
	for _, at := range w.gone {
		if err := w.root.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	s := w.store
	stats := maps.Clone(s.stats)
	if stats == nil {
		stats = make(map[string]fileStamp)
	}
	for _, at := range w.gone {
		delete(stats, at)
	}
	s.disk = w.desired
	for _, f := range w.fresh {
		info, err := w.root.Lstat(f.at)
		if err != nil {
			s.disk = nil // read again
			errs = append(errs, err)
			break
		}
		stats[f.at] = stampOf(info)
	}
	s.stats = stats
	return errors.Join(errs...)
}
