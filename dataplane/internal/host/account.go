package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the one that HAProxy runs under. It is nil if HAProxy runs as this
// process does.
type account struct {
	name     string
	uid, gid int
}

// findAccount looks up the account for HAProxy, which only root can choose.
func findAccount(name string, noStart bool) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if name == "" {
		if u, err = user.Lookup("haproxy"); err != nil {
			u, err = user.Lookup("nobody")
		}
	}
	switch {
	case err != nil && name == "" && noStart:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("no account for HAProxy to run under: %w", err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil || uid == 0 {
		return nil, err
	}
	return &account{name: u.Username, uid: uid, gid: gid}, nil
}

// own lets the group of the account read a file or enter a folder of ours.
func (a *account) own(at string) error {
	if a == nil {
		return nil
	}
	info, err := os.Stat(at)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o640)
	if info.IsDir() {
		mode = 0o750
	}
	return errors.Join(os.Chown(at, 0, a.gid), os.Chmod(at, mode))
}

// reaches checks that the account may enter all folders above dir.
func (a *account) reaches(dir string) error {
	for dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		mode := info.Mode().Perm()
		if sys, ok := info.Sys().(*syscall.Stat_t); ok && mode&0o001 == 0 &&
			(mode&0o010 == 0 || int(sys.Gid) != a.gid) && (mode&0o100 == 0 || int(sys.Uid) != a.uid) {
			return &fs.PathError{Op: "enter", Path: dir, Err: fmt.Errorf("account %s: %w", a.name, fs.ErrPermission)}
		}
	}
	return nil
}
