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

// mayNotBecome refuses a line of the desired configuration that HAProxy has the rights
// for only as root, unless the running one has it. The new worker would end there, up to
// HAProxy 3.0 when the old one has been told to go, and take the whole HAProxy with it.
// The account of a HAProxy that another program runs is not known.
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

// needsRoot reports whether a line of the global section takes the rights of root in a
// process with these ids. An id of 0 changes nothing for HAProxy, and a name that is
// unknown is an error of the configuration.
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
