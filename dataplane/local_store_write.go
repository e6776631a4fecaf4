package dataplane

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// write is a change of the stored files under way. First, stage puts the new
// files beside the old ones. Then publish moves them into place, first what
// the configuration refers to, then the configuration: HAProxy accepts what
// lies there at each moment. The old files stay as backups. At last, either
// finish or undo ends it.
//
// Whoever comes after a process that was killed in between puts the old files
// back, unless finish has got so far that nothing of the new ones is missing.
// A single file needs nothing but its backup for that. With several files a
// journal names them all, so that the removal of one name decides for all.
type write struct {
	store   *store
	root    *os.Root
	desired *Config
	fresh   []stored // to be written, in the order in which they get into place
	gone    []string // to be deleted at the end
	moved   []journalEntry

	journalled bool // there may be a journal
	published  bool
}

type stored struct {
	at      string
	content []byte
	stamp   fileStamp // as it was written
}

// stage writes the files that differ from what is on the disk, beside those.
func (s *store) stage(disk, desired *Config) (w *write, err error) {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	w = &write{store: s, root: root, desired: desired}
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
			w.fresh = append(w.fresh, stored{at: filePath(f.Kind, f.Name), content: f.Content})
		}
	}
	// Lists of certificates name files themselves, and so come after them.
	slices.SortStableFunc(w.fresh, func(a, b stored) int { return order(a.at) - order(b.at) })
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
		w.fresh = append(w.fresh, stored{at: manifestFile, content: append(raw, '\n')})
	}
	if disk.main != w.desired.main {
		w.fresh = append(w.fresh, stored{at: mainFile, content: []byte(w.desired.main)})
	}
	return nil
}

// order puts the files that others may name first.
func order(at string) int {
	if strings.HasPrefix(at, "general/") {
		return 1
	}
	return 0
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

func (w *write) put(f stored) error {
	return w.store.step("write "+freshPath(f.at), func() error { return w.putFile(f) })
}

func (w *write) putFile(f stored) (err error) {
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
	if len(w.fresh)+len(w.gone) > 1 {
		if err := w.writeJournal(); err != nil {
			return err
		}
	}
	for i, f := range w.fresh {
		// From now on somebody else may write it.
		info, err := w.root.Lstat(freshPath(f.at))
		if err != nil {
			return err
		}
		w.fresh[i].stamp = stampOf(info)
		entry := journalEntry{Path: f.at}
		err = w.store.step("link "+backupPath(f.at), func() error { return w.root.Link(f.at, backupPath(f.at)) })
		switch {
		case errors.Is(err, fs.ErrNotExist):
			entry.New = true
		case err != nil:
			return err
		}
		w.moved = append(w.moved, entry) // undo can tell whether it was
		if err := w.rename(freshPath(f.at), f.at); err != nil {
			return err
		}
	}
	w.published = true
	return nil
}

// writeJournal notes, before the first file moves, which of them will.
func (w *write) writeJournal() error {
	j := journal{Gone: w.gone}
	for _, f := range w.fresh {
		_, err := w.root.Lstat(f.at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		j.Files = append(j.Files, journalEntry{Path: f.at, New: err != nil})
	}
	raw, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if err := w.put(stored{at: journalFile, content: raw}); err != nil {
		return err
	}
	w.journalled = true
	if err := w.sync(freshPath(journalFile)); err != nil {
		return err
	}
	if err := w.rename(freshPath(journalFile), journalFile); err != nil {
		return err
	}
	return w.sync(".")
}

func (w *write) flush() error {
	if len(w.fresh) > manyFiles {
		return w.store.step("flush all", func() error {
			dir, err := w.root.Open(".")
			if err != nil {
				return err
			}
			err = unix.Syncfs(int(dir.Fd()))
			return errors.Join(err, dir.Close())
		})
	}
	for _, f := range w.fresh {
		if err := w.sync(freshPath(f.at)); err != nil {
			return err
		}
	}
	return nil
}

func (w *write) sync(at string) error { return syncPath(w.store, w.root, at) }

func (w *write) rename(from, to string) error {
	return w.store.step("rename "+from, func() error { return w.root.Rename(from, to) })
}

// syncDirs makes durable what happened in the folders of these files.
func (w *write) syncDirs() error {
	dirs := map[string]bool{}
	for _, e := range w.moved {
		dirs[path.Dir(e.Path)] = true
	}
	for dir := range dirs {
		if err := w.sync(dir); err != nil {
			return err
		}
	}
	return nil
}

// undo puts everything back as it was before stage. It takes no space on the
// disk.
func (w *write) undo() {
	s := w.store
	l := leftovers{root: w.root, store: s, journal: journal{Files: w.moved}, hasJournal: w.journalled}
	for _, f := range w.fresh {
		l.fresh = append(l.fresh, freshPath(f.at))
	}
	if w.journalled {
		l.fresh = append(l.fresh, freshPath(journalFile))
	}
	s.unclean = l.rollBack() != nil || s.unclean
	s.disk, s.stats = nil, nil // read again
	_ = w.root.Close()
}

// finish makes the new files the stored ones for good, deletes what is no
// longer needed and remembers what is stored.
func (w *write) finish() error {
	defer func() { _ = w.root.Close() }()
	s := w.store
	err := w.commit()
	s.unclean = s.unclean || err != nil
	if err == nil {
		w.remember()
	}
	if err != nil {
		s.disk, s.stats = nil, nil // read again
	}
	return err
}

func (w *write) commit() error {
	l := leftovers{root: w.root, store: w.store, journal: journal{Files: w.moved, Gone: w.gone}}
	if !w.journalled {
		return errors.Join(l.clean(), w.syncDirs())
	}
	if err := w.syncDirs(); err != nil {
		return err
	}
	if err := w.rename(journalFile, settledFile); err != nil {
		return err
	}
	if err := w.sync("."); err != nil {
		return err
	}
	l.hasSettled = true
	return l.clean()
}

// remember keeps what is stored now, and by which signs a change shows.
func (w *write) remember() {
	s := w.store
	stats := maps.Clone(s.stats)
	if stats == nil {
		stats = make(map[string]fileStamp)
	}
	for _, at := range w.gone {
		delete(stats, at)
	}
	for _, f := range w.fresh {
		stats[f.at] = f.stamp
	}
	s.disk, s.stats = w.desired, stats
}
