package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// account is the account that HAProxy runs under. It is nil if HAProxy runs under the account
// of this process.
type account struct{ *haproxyctl.Account }

// DefaultUser returns the account for HAProxy if none is named, or "".
func DefaultUser() string {
	found, err := haproxyctl.FindAccount("")
	if err != nil || found == nil {
		return ""
	}
	return found.Name
}

// findAccount looks up the account for HAProxy. A Host that attaches to the HAProxy of
// another program needs none.
func findAccount(name string, noStart bool) (*account, error) {
	found, err := haproxyctl.FindAccount(name)
	if err != nil && name == "" && noStart || found == nil && err == nil {
		return nil, nil
	}
	return &account{found}, err
}

// own gives the group of the account access to a file or folder of ours.
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

// mayNotBecome refuses a new line of the global section that needs root if HAProxy does not
// run as root. With such a line the new worker would end, and take the whole HAProxy with it.
// Up to HAProxy 3.0 it would end after the old worker was told to go. For a HAProxy that
// another program runs, the account is unknown, so mayNotBecome refuses nothing.
func (h *Host) mayNotBecome(running, desired *config.Config) error {
	uid, gid := h.user(), os.Getegid()
	if h.account != nil {
		gid = h.account.GID
	}
	if h.opts.NoStart || uid == 0 {
		return nil
	}
	lines := func(c *config.Config) (all []config.Line) {
		for _, s := range c.Index().List {
			if s.Kind == "global" {
				all = append(all, s.Lines()...)
			}
		}
		return all
	}
	before := lines(running)
	for _, l := range lines(desired) {
		if needsRoot(l, strconv.Itoa(uid), strconv.Itoa(gid)) && !slices.ContainsFunc(before, l.Equal) {
			return &config.Error{Stage: "reload", File: config.MainFile, Err: fmt.Errorf("%w: \"%s %s\" of the global section takes the rights of root, "+
				"and HAProxy runs as user id %d, group id %d: remove the line", config.ErrReload, l.Keyword(), l.Word(1), uid, gid)}
		}
	}
	return nil
}

// needsRoot reports whether a process with these ids needs root for a line of the global
// section. An id of 0 changes nothing for HAProxy. An unknown name is an error of the
// configuration.
func needsRoot(l config.Line, uid, gid string) bool {
	id, have := l.Word(1), uid
	switch l.Keyword() {
	case "chroot":
		return true
	case "uid":
	case "gid":
		have = gid
	case "user":
		u, err := user.Lookup(id)
		if err != nil {
			return false
		}
		id = u.Uid
	case "group":
		g, err := user.LookupGroup(id)
		if err != nil {
			return false
		}
		id, have = g.Gid, gid
	default:
		return false
	}
	return id != have && id != "0"
}
