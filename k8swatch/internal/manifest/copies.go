package manifest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Copies is a folder with copies of files under their own names, for the next process.
// They may be Secrets: only the account of this process can read them.
type Copies struct{ dir string }

// OpenCopies creates the folder if it is missing, and reads the copies. A copy that
// cannot be read or has more than max bytes counts as empty. fresh says that the folder
// did not exist. OpenCopies follows no link in place of the folder or of a copy.
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
		info, err := e.Info()
		if e.IsDir() || err != nil {
			continue
		}
		texts[e.Name()] = nil
		if info.Mode().IsRegular() && info.Size() <= max {
			texts[e.Name()], _ = os.ReadFile(name)
		}
	}
	return &Copies{dir}, texts, fresh, err
}

// Mark makes an empty copy of a file without a copy. It tells the next process that no
// good text of the file is known.
func (c *Copies) Mark(name string) {
	if file, err := os.OpenFile(filepath.Join(c.dir, name), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		_ = file.Close()
	}
}

// Keep replaces a copy in one step. Without a text it deletes the copy. The error names
// no file.
func (c *Copies) Keep(name string, text []byte) error {
	at := filepath.Join(c.dir, name)
	if len(text) == 0 {
		if err := os.Remove(at); !errors.Is(err, os.ErrNotExist) {
			return cause(err)
		}
		return nil
	}
	next, err := os.CreateTemp(c.dir, ".next-*") // mode 0600
	if err != nil {
		return cause(err)
	}
	_, err = next.Write(text)
	if err = errors.Join(err, next.Close()); err == nil {
		err = os.Rename(next.Name(), at)
	}
	if err != nil {
		_ = os.Remove(next.Name())
	}
	return cause(err)
}
