package host

import (
	"errors"
	"io/fs"
	"os"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// account is the one that HAProxy runs under. It is nil if HAProxy runs as this
// process does.
type account struct{ *haproxyctl.Account }

// DefaultUser returns the account for HAProxy where none is named, or "".
func DefaultUser() string {
	found, err := haproxyctl.FindAccount("")
	if err != nil || found == nil {
		return ""
	}
	return found.Name
}

// findAccount looks up the account for HAProxy. To attach to a HAProxy that
// another program started takes none.
func findAccount(name string, noStart bool) (*account, error) {
	found, err := haproxyctl.FindAccount(name)
	if err != nil && name == "" && noStart || found == nil && err == nil {
		return nil, nil
	}
	return &account{found}, err
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
	return errors.Join(os.Chown(at, 0, a.GID), os.Chmod(at, mode))
}
