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

// account is the one that HAProxy runs under.
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
	if err != nil && name == "" && noStart {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("no account for HAProxy to run under: %w", err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil || uid == 0 {
		return nil, err
	}
	return &account{name: u.Username, uid: uid, gid: gid}, nil
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
