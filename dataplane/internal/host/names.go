package host

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/socket"
)

// storedNames is the content of the file with the names of backends in a worker.
type storedNames struct {
	Worker   int           `json:"worker"`
	Began    time.Time     `json:"began"`
	Backends []change.Name `json:"backends"`
}

// namesFile is not in run, where HAProxy may write.
const namesFile = ".names.json"

// clocksDiffer bounds the difference between two readings of the start of one worker: HAProxy
// reports seconds.
const clocksDiffer = 2 * time.Second

// sameBegin reports whether two starts are of the same worker. In containers, two workers may
// have the same process id.
func sameBegin(a, b time.Time) bool { return a.Sub(b).Abs() <= clocksDiffer }

// meet finds out whether the worker is that of the last Sync. The names of another worker are
// only in the stored table.
func (s *syncing) meet() {
	h := s.h
	if s.pid == 0 {
		return
	}
	if s.pid != h.worker || s.conn != nil && !h.began.IsZero() && !sameBegin(h.began, s.conn.Started()) {
		h.worker, h.began, h.running, h.leaving, h.names = s.pid, time.Time{}, nil, make(socket.Leaving), nil
	}
	if s.conn == nil {
		return // it takes no commands
	}
	if h.began.IsZero() {
		h.began = s.conn.Started()
		h.names = h.loadNames(s.pid)
	}
	s.target.Names = h.names
	s.conn.SetNames(h.names)
}

// loadNames returns the names of that worker. It ignores a file about another worker, and one
// that it cannot read: names are stored before the worker gets them.
func (h *Host) loadNames(worker int) *change.Names {
	var is storedNames
	raw, err := os.ReadFile(h.store.path(namesFile))
	if err != nil || json.Unmarshal(raw, &is) != nil || is.Worker != worker || !sameBegin(is.Began, h.began) {
		return nil
	}
	return change.NewNames(is.Backends)
}

// namesFit reports whether the names belong to the stored configuration. They do not if a
// full disk had room for the names alone, or if another program put older files back. Then a
// map would get a name that the process does not have, and a backend could take a second
// spare.
func namesFit(names *change.Names, stored *config.Config) bool {
	return !slices.ContainsFunc(names.List(), func(n change.Name) bool {
		isStored := stored.Index().Find(config.Key{Kind: "backend", Name: n.Backend}) != nil
		return isStored == (n.Gone != nil)
	})
}

// rename stores the names that backends will have in the worker, before the worker gets them.
// On a full disk it does not store them. The next process then finds that HAProxy lacks the
// backends, and reloads.
func (s *syncing) rename(dos []change.Do) {
	if after := s.h.names.After(dos); after != s.h.names {
		s.storeNames(after)
	}
}

// apply sends the changes to the worker. It then drops the names of backends that the worker
// deleted.
func (s *syncing) apply(ctx context.Context, dos []change.Do) (sent int, err error) {
	sent, err = s.conn.Apply(ctx, s.h.layout, s.h.leaving, dos)
	if gone := s.conn.Deleted(); len(gone) > 0 {
		s.storeNames(s.h.names.Without(gone))
	}
	return sent, err
}

func (s *syncing) storeNames(after *change.Names) {
	h := s.h
	h.names = after
	s.conn.SetNames(after)
	fresh := h.store.path(namesFile + ".fresh")
	raw, err := json.Marshal(storedNames{Worker: s.pid, Began: h.began, Backends: after.List()})
	if err == nil {
		err = h.store.step("write names", func() error { return os.WriteFile(fresh, raw, 0o600) })
	}
	if err == nil {
		err = h.store.step("rename names", func() error { return os.Rename(fresh, h.store.path(namesFile)) })
	}
	if err != nil {
		h.log.Warn("the names of backends in HAProxy are not stored", "error", err)
	}
}

// forgetNames drops all names: the worker has loaded the configuration and uses its names.
func (h *Host) forgetNames() {
	h.names, h.began = nil, time.Time{}
	_ = os.Remove(h.store.path(namesFile)) // the file is about another worker by now
}
