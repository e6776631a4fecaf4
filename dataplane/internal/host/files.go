package host

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"regexp"

	"golang.org/x/sys/unix"
)

// freshLink is a link that is about to become current.
const freshLink = ".fresh-current"

// stored matches a generation or a folder of one.
var stored = regexp.MustCompile(`^\.(gen|maps|ssl|general)-[0-9]{6,}$`)

// current returns the current generation, or "" if there is none.
func (s *store) current() string {
	target, _ := os.Readlink(s.path(currentLink))
	return target
}

// flip makes a generation the current one, unless it is.
func (s *store) flip(generation string) error {
	if s.current() == generation {
		return nil
	}
	if err := s.symlink(generation, freshLink); err != nil {
		return err
	}
	if err := s.step("rename "+currentLink, func() error { return os.Rename(s.path(freshLink), s.path(currentLink)) }); err != nil {
		return err
	}
	return s.sync(".", unix.Fsync)
}

// clean deletes all generations but the current one, and the folders that it does
// not use.
func (s *store) clean() error {
	generation := s.current()
	keep := map[string]bool{generation: true, manifestFile: generation == ""}
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
		if !keep[name] && (name == freshLink || name == manifestFile || stored.MatchString(name)) {
			errs = append(errs, s.remove(name))
		}
	}
	return errors.Join(errs...)
}

// remove removes a file or a folder that need not be there.
func (s *store) remove(name string) error {
	return s.step("remove "+name, func() error { return os.RemoveAll(s.path(name)) })
}

func (s *store) symlink(target, at string) error {
	return s.step("link "+at, func() error { return errors.Join(os.RemoveAll(s.path(at)), os.Symlink(target, s.path(at))) })
}

// sync makes durable what is in a folder.
func (s *store) sync(at string, how func(fd int) error) error {
	return s.step("sync "+at, func() error {
		dir, err := os.Open(s.path(at))
		if err != nil {
			return err
		}
		return errors.Join(how(int(dir.Fd())), dir.Close())
	})
}

// manyFiles is how many files are worth one flush of the whole file system
// instead of one for each.
const manyFiles = 16

// makeGeneration makes the folder of a generation, writes what is fresh, and makes
// both and the folders durable.
func (s *store) makeGeneration(next *snapshot, fresh map[string][]byte, folders ...string) error {
	generation := next.at[currentLink]
	err := s.step("make "+generation, func() error {
		err := s.makeFolder(generation)
		for _, sub := range subfolders() {
			err = errors.Join(err, os.Symlink(path.Join("..", next.at[sub]), s.path(generation, sub)))
		}
		for _, name := range []string{mainFile, manifestFile} {
			if _, isFresh := fresh[name]; !isFresh && err == nil && next.stamps[name] != (fileStamp{}) {
				err = shareFile(s.path(s.seen.at[name]), s.path(next.at[name]))
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	many := len(fresh) > manyFiles
	for name, content := range fresh {
		if next.stamps[name], err = s.put(next.resolve(name), content, !many); err != nil {
			return err
		}
	}
	if many {
		return s.sync(".", unix.Syncfs)
	}
	for _, folder := range append(folders, generation) {
		if err := s.sync(folder, unix.Fsync); err != nil {
			return err
		}
	}
	return nil
}

// put writes a file that is not there yet.
func (s *store) put(at string, content []byte, durable bool) (stamp fileStamp, err error) {
	err = s.step("write "+at, func() error {
		mode := fs.FileMode(0o600)
		if s.account != nil {
			mode = 0o640
		}
		f, err := os.OpenFile(s.path(at), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		if s.account != nil {
			err = errors.Join(f.Chown(0, s.account.gid), f.Chmod(mode))
		}
		if err == nil {
			_, err = f.Write(content)
		}
		if err == nil && durable {
			err = f.Sync()
		}
		return errors.Join(err, f.Close())
	})
	return stampOf(s.path(at)), err
}

// makeFolder makes an empty folder.
func (s *store) makeFolder(at string) error {
	// A write that failed may have left it.
	err := errors.Join(os.RemoveAll(s.path(at)), os.Mkdir(s.path(at), 0o750))
	if s.account == nil || err != nil {
		return err
	}
	return errors.Join(os.Chown(s.path(at), 0, s.account.gid), os.Chmod(s.path(at), 0o750))
}

// share makes a folder with hard links of what another one holds.
func (s *store) share(from, to string, except func(entry string) bool) error {
	return s.step("make "+to, func() error {
		if err := s.makeFolder(to); err != nil {
			return err
		}
		entries, err := os.ReadDir(s.path(from))
		for _, e := range entries {
			old, fresh := path.Join(from, e.Name()), path.Join(to, e.Name())
			switch {
			case err != nil:
				return err
			case except(e.Name()):
			case e.IsDir():
				err = s.share(old, fresh, func(string) bool { return false })
			default:
				err = shareFile(s.path(old), s.path(fresh))
			}
		}
		return err
	})
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
