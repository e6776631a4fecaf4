package dataplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"syscall"
)

// store keeps one configuration in a folder. Names of files in it that start
// with a dot are its own; no file of a configuration can have such a name. What
// happens to a write that does not come to its end is said at [write].
type store struct {
	dir      string
	account  *account
	attached bool // the folders are somebody else's: keep owner and mode

	disk    *Config              // what was read or written last
	stats   map[string]fileStamp // of every file of disk, by its path within dir
	unclean bool                 // a write of this process left something to recover

	// While Run puts the folder in order, which it does without a turn, files
	// are not where who reads them meanwhile has seen them.
	order sync.Mutex

	failpoint func(step string) // for tests: hears of each step before and after it
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

// load returns the stored configuration, nil if there is none. It reads the
// files again only if somebody else changed one.
func (s *store) load() (*Config, error) {
	if s.unclean && !s.attached {
		if err := s.recover(func() {}); err != nil {
			return nil, err
		}
		s.unclean = false
	}
	s.order.Lock()
	defer s.order.Unlock()
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
	open, err := findLeftovers(root)
	if err != nil {
		return nil, err
	}
	r := &storeReader{root: root, open: open, stats: make(map[string]fileStamp)}
	config, err := r.config()
	if err != nil || config == nil {
		return nil, err
	}
	if !open.rollsBack() { // else what is read is about to move
		s.disk, s.stats = config, r.stats
	}
	return config, nil
}
