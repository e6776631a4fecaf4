package host

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// socketsOf finds the paths of the unix sockets of a text. Those whose meaning only
// HAProxy knows are missing.
func socketsOf(x *config.Index) map[string]bool {
	all := make(map[string]bool)
	if x.Conditional() || x.Contains("unix-bind") {
		return all
	}
	for i := range x.List {
		for raw := range strings.Lines(x.List[i].Text) {
			if text := strings.Trim(raw, " \t\r\n"); !strings.HasPrefix(text, "bind") && !strings.HasPrefix(text, "stats") {
				continue
			} else if l := config.NewLine(text); l.Keyword() == "bind" && !l.Expands() {
				addSockets(all, l.Word(1))
			} else if l.Keyword() == "stats" && l.Word(1) == "socket" && !l.Expands() {
				addSockets(all, l.Word(2))
			}
		}
	}
	return all
}

func addSockets(all map[string]bool, addresses string) {
	for part := range strings.SplitSeq(addresses, ",") {
		if path := strings.TrimPrefix(part, "unix@"); strings.HasPrefix(path, "/") {
			all[path] = true
		}
	}
}

// tryToMakeSockets makes and removes a socket in each folder where HAProxy makes one
// in a reload: that of the master socket, without which HAProxy ends, and those of
// sockets that the desired configuration adds to the running one. It fails on a full
// disk, too. What it cannot judge it leaves to HAProxy, as tryToListen does.
func (h *Host) tryToMakeSockets(running, desired *config.Config, procs haproxyctl.Procs) error {
	uid, ok := accountOf(procs.MasterPID)
	if !ok || !sameFiles(procs.MasterPID) {
		return nil
	}
	fresh := socketsOf(desired.Index())
	for path := range socketsOf(running.Index()) {
		delete(fresh, path)
	}
	fresh[h.opts.MasterSocket] = true
	folders := make(map[string]string)
	for path := range fresh {
		folders[filepath.Dir(path)] = path + ".try"
	}
	var failed error
	at := ""
	gid := -1
	if h.account != nil && uid == h.account.UID {
		gid = h.account.GID
	}
	actAs(uid, gid, func() {
		for _, folder := range slices.Sorted(maps.Keys(folders)) {
			try := folders[folder]
			_ = unix.Unlink(try) // of a process that was killed here
			err := cmp.Or(unix.Mknod(try, unix.S_IFSOCK|0o600, 0), unix.Unlink(try))
			if err == nil || errors.Is(err, unix.EACCES) && h.opts.NoStart || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENAMETOOLONG) {
				continue // HAProxy may have a right that this process has not
			}
			at, failed = folder, &os.PathError{Op: "make a socket in", Path: folder, Err: err}
			return
		}
	})
	if failed == nil {
		return nil
	}
	text := fmt.Sprintf("%v; HAProxy keeps its last configuration, and what takes no reload is applied", failed)
	kinds := []error{config.ErrListen, failed}
	if at != filepath.Dir(h.opts.MasterSocket) {
		kinds = append(kinds, config.ErrReload) // another configuration helps
	}
	return &config.Error{Stage: "reload", Err: &worded{config.ErrListen.Error(), errors.Join(kinds...)}, Output: text}
}

// sameFiles reports whether paths mean the same to a process as to this one.
func sameFiles(pid int) bool {
	ours, err := os.Readlink("/proc/self/ns/mnt")
	theirs, hidden := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	return err == nil && (ours == theirs || errors.Is(hidden, os.ErrPermission))
}

// notTold goes back from a reload that the master was not told.
func (s *syncing) notTold(err error, why string) error {
	undone := fail("files", s.write.undo())
	switch {
	case why != "": // commands went before, perhaps
	case undone == nil:
		s.h.unmark()
	default: // the mark stays for a process after this one
		s.h.doubt = false
	}
	return errors.Join(err, undone)
}
