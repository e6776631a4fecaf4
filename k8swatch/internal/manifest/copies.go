package manifest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Copies is a folder in which files are kept under their names, for the next
// process. They may be Secrets: only the account of this process can read them.
type Copies struct{ dir string }

// OpenCopies makes the folder where it is missing, and reads what it has. A copy that
// cannot be read or has more than max bytes counts as missing. fresh says that the
// folder was not there. A link in place of the folder or of a copy is not followed.
func OpenCopies(dir string, max int64) (c *Copies, texts map[string][]byte, fresh bool, err error) {
	at, err := os.Lstat(dir)
	switch fresh = errors.Is(err, os.ErrNotExist); {
	case fresh:
		err = errors.Join(os.MkdirAll(filepath.Dir(dir), 0o750), os.Mkdir(dir, 0o700))
	case err == nil && !at.IsDir():
		err = fmt.Errorf("%s is no folder", dir)
	case err == nil:
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		return nil, nil, fresh, err
	}
	entries, err := os.ReadDir(dir)
	texts = map[string][]byte{}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".next-") {
			_ = os.Remove(name) // of a process that ended while it wrote
			continue
		}
		if info, err := e.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > max {
			continue
		}
		if text, err := os.ReadFile(name); err == nil && len(text) > 0 {
			texts[e.Name()] = text
		}
	}
	return &Copies{dir}, texts, fresh, err
}

// Keep replaces a copy in one step; without a text it deletes it.
func (c *Copies) Keep(name string, text []byte) error {
	at := filepath.Join(c.dir, name)
	if len(text) == 0 {
		if err := os.Remove(at); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	next, err := os.CreateTemp(c.dir, ".next-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = next.Write(text)
	if err = errors.Join(err, next.Close()); err == nil {
		err = os.Rename(next.Name(), at)
	}
	if err != nil {
		_ = os.Remove(next.Name())
	}
	return err
}
