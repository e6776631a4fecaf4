package haproxyctl

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

// Account is the account that a haproxy runs under. Nil means the account of this process.
type Account struct {
	Name     string
	UID, GID int
}

// FindAccount looks up the account for a haproxy. Only root can choose one. An empty name
// means the account "haproxy", or else the account "nobody". FindAccount returns nil if this
// process is not root, or if the account is root itself.
func FindAccount(name string) (*Account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if name == "" {
		if u, err = user.Lookup("haproxy"); err != nil {
			u, err = user.Lookup("nobody")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("no account for HAProxy to run under: %w", err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil || uid == 0 {
		return nil, err
	}
	return &Account{Name: u.Username, UID: uid, GID: gid}, nil
}

// Credential returns the credential for a process of the account. It is nil for the account
// of this process.
func (a *Account) Credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.UID), Gid: uint32(a.GID)}
}

// Reaches checks that the account may enter all folders above dir.
func (a *Account) Reaches(dir string) error {
	for dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		mode := info.Mode().Perm()
		if sys, ok := info.Sys().(*syscall.Stat_t); ok && mode&0o001 == 0 &&
			(mode&0o010 == 0 || int(sys.Gid) != a.GID) && (mode&0o100 == 0 || int(sys.Uid) != a.UID) {
			return &fs.PathError{Op: "enter", Path: dir, Err: fmt.Errorf("account %s: %w", a.Name, fs.ErrPermission)}
		}
	}
	return nil
}
