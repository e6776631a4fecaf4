package dataplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// storeReader reads a stored configuration once, each file from where a write
// that is under way has it.
type storeReader struct {
	root  *os.Root
	open  *leftovers
	stats map[string]fileStamp // of the files that were read
}

// config returns nil where no configuration is stored.
func (r *storeReader) config() (*Config, error) {
	text, err := r.read(mainFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m, err := r.manifest()
	if err != nil {
		return nil, err
	}
	files, err := r.files(m)
	if err != nil {
		return nil, err
	}
	return NewConfig(string(text), files...)
}

// manifest returns the list of files, which is empty where there is none.
func (r *storeReader) manifest() (m manifest, err error) {
	raw, err := r.read(manifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("%w: %s: %w", ErrInvalidConfig, manifestFile, err)
	}
	return m, nil
}

// files reads those that are there: the next Sync finds the others missing and
// writes them.
func (r *storeReader) files(m manifest) ([]File, error) {
	var files []File
	for _, e := range m.Files {
		content, err := r.read(filePath(e.Kind, e.Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, File{e.Kind, e.Name, content})
	}
	return files, nil
}

func (r *storeReader) read(at string) ([]byte, error) {
	at, err := r.open.source(at)
	if err != nil {
		return nil, err
	}
	info, err := r.root.Lstat(at)
	if err != nil {
		return nil, err
	}
	r.stats[at] = stampOf(info)
	return r.root.ReadFile(at)
}

// untouched looks at each file: the time of a folder tells of files that come
// and go, but not of one that somebody writes in its place.
func (s *store) untouched() bool {
	dir := s.dir + string(filepath.Separator)
	var info unix.Stat_t
	for at, stamp := range s.stats {
		if err := unix.Lstat(dir+at, &info); err != nil ||
			stamp != (fileStamp{size: info.Size, mtime: info.Mtim.Nano(), inode: info.Ino}) {
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
