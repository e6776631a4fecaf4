package dataplane

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

const (
	journalFile = ".journal.json" // a write of several files that is to be undone
	settledFile = ".settled.json" // one that is complete but for what it leaves behind
)

// journal says what a write of several files does.
type journal struct {
	Files []journalEntry `json:"files"`
	Gone  []string       `json:"gone,omitempty"`
}

// journalEntry is a file that gets into place.
type journalEntry struct {
	Path string `json:"path"`
	New  bool   `json:"new,omitempty"` // there was none before
}

// leftovers are what a write leaves in the folder, until it ends or, if its
// process is killed, until somebody cleans up.
type leftovers struct {
	root  *os.Root
	store *store // nil to look only

	journal    journal
	hasJournal bool     // it is to be undone
	hasSettled bool     // it is complete
	fresh      []string // files that did not get into place
}

// findLeftovers looks for what a write that is under way, or whose process was
// killed, has in the folder.
func findLeftovers(root *os.Root) (l *leftovers, err error) {
	l = &leftovers{root: root}
	settled, err := readJournal(root, settledFile)
	if err != nil {
		return nil, err
	}
	pending, err := readJournal(root, journalFile)
	if err != nil {
		return nil, err
	}
	switch {
	case pending != nil:
		// One that is complete at the same time is so since long ago.
		l.journal, l.hasJournal = *pending, true
	case settled != nil:
		l.journal, l.hasSettled = *settled, true
	}
	listed := make(map[string]bool)
	for _, e := range l.journal.Files {
		listed[e.Path] = true
	}
	for _, dir := range storeDirs {
		names, err := ownNames(root, dir)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if strings.HasPrefix(n, freshPrefix) {
				l.fresh = append(l.fresh, path.Join(dir, n))
			} else if name, ok := strings.CutPrefix(n, backupPrefix); ok && !listed[path.Join(dir, name)] {
				l.journal.Files = append(l.journal.Files, journalEntry{Path: path.Join(dir, name)})
			}
		}
	}
	return l, nil
}

// ownNames lists, in order, the names in a folder that start with a dot. The
// other files, which may be many, cost nothing but the reading of the folder.
func ownNames(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(-1)
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, ".") })
	slices.Sort(names)
	return names, err
}

// readJournal returns nil where there is none, or somebody spoilt it: the
// backups are put back then.
func readJournal(root *os.Root, name string) (*journal, error) {
	raw, err := root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j := new(journal)
	if err := json.Unmarshal(raw, j); err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	return j, nil
}

// rollsBack reports whether files that are in place are to be replaced by those
// of before. Who reads them meanwhile wants the latter.
func (l *leftovers) rollsBack() bool { return len(l.journal.Files) > 0 && !l.hasSettled }

// source returns where the content of a file lies.
func (l *leftovers) source(at string) (string, error) {
	if !l.rollsBack() {
		return at, nil
	}
	for _, e := range l.journal.Files {
		if e.Path != at {
			continue
		}
		if e.New {
			return "", &fs.PathError{Op: "open", Path: at, Err: fs.ErrNotExist}
		}
		if _, err := l.root.Lstat(backupPath(at)); err == nil {
			return backupPath(at), nil
		}
	}
	return at, nil
}

// recover puts back what was in place before a write that did not come to its
// end, or does what is left of one that did, and removes what never got into
// place. It calls unfinished first where it is going to put something back. It
// touches only the folder, for Run calls it without a turn.
func (s *store) recover(unfinished func()) error {
	s.order.Lock()
	defer s.order.Unlock()
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	l, err := findLeftovers(root)
	if err != nil {
		return err
	}
	l.store = s
	if l.rollsBack() {
		unfinished()
	}
	if l.hasSettled {
		return l.clean()
	}
	return l.rollBack()
}

// rollBack undoes a write, the last step first: the configuration is the old
// one again before the files that it names are. It can be repeated.
func (l *leftovers) rollBack() error {
	var errs []error
	for _, e := range slices.Backward(l.journal.Files) {
		if e.New {
			continue
		}
		err := l.store.step("put back "+e.Path, func() error { return l.root.Rename(backupPath(e.Path), e.Path) })
		if err == nil {
			err = l.remove(backupPath(e.Path)) // rename leaves both names of one file
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err // new files may still be named
	}
	for _, e := range slices.Backward(l.journal.Files) {
		if e.New {
			errs = append(errs, l.remove(e.Path))
		}
	}
	for _, at := range l.fresh {
		errs = append(errs, l.remove(at))
	}
	errs = append(errs, l.syncDirs())
	if err := errors.Join(errs...); err != nil || !l.hasJournal {
		return err
	}
	if err := l.remove(settledFile); err != nil {
		return err
	}
	return errors.Join(l.remove(journalFile), syncPath(l.store, l.root, "."))
}

// clean removes what a complete write leaves behind. It can be repeated.
func (l *leftovers) clean() error {
	var errs []error
	for _, e := range l.journal.Files {
		if !e.New {
			errs = append(errs, l.remove(backupPath(e.Path)))
		}
	}
	for _, at := range l.journal.Gone {
		errs = append(errs, l.remove(at))
	}
	for _, at := range l.fresh {
		errs = append(errs, l.remove(at))
	}
	if err := errors.Join(errs...); err != nil || !l.hasSettled {
		return err
	}
	// Were the note to come back after a power failure, it would delete
	// files that have come back since.
	return errors.Join(l.remove(settledFile), syncPath(l.store, l.root, "."))
}

// remove removes a file that need not be there.
func (l *leftovers) remove(at string) error {
	if _, err := l.root.Lstat(at); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return l.store.step("remove "+at, func() error { return l.root.Remove(at) })
}

// syncDirs makes durable what happened in the folders of the files.
func (l *leftovers) syncDirs() error {
	dirs := make(map[string]bool)
	for _, e := range l.journal.Files {
		dirs[path.Dir(e.Path)] = true
	}
	var errs []error
	for dir := range dirs {
		errs = append(errs, syncPath(l.store, l.root, dir))
	}
	return errors.Join(errs...)
}

func syncPath(s *store, root *os.Root, at string) error {
	return s.step("sync "+at, func() error {
		file, err := root.Open(at)
		if err != nil {
			return err
		}
		return errors.Join(file.Sync(), file.Close())
	})
}
