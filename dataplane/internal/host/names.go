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

// storedNames is the content of the file that says what a worker calls backends.
type storedNames struct {
	Worker   int           `json:"worker"`
	Began    time.Time     `json:"began"`
	Backends []change.Name `json:"backends"`
}

// namesFile is not in run, where HAProxy may write.
const namesFile = ".names.json"

// clocksDiffer is how far two readings of when a worker began may be apart: it tells
// seconds.
const clocksDiffer = 2 * time.Second

// sameBegin tells apart two workers with one process id, as containers have.
func sameBegin(a, b time.Time) bool { return a.Sub(b).Abs() <= clocksDiffer }

// meet finds out whether the worker is the one of the last Sync. If it is another one,
// only the stored table tells its names.
func (s *syncing) meet() {
	h := s.h
	if s.pid == 0 {
		return
	}
	if s.pid != h.worker || s.conn != nil && !h.began.IsZero() && !sameBegin(h.began, s.conn.Started()) {
		h.worker, h.began, h.running, h.leaving, h.names = s.pid, time.Time{}, nil, make(socket.Leaving), nil
	}
	if s.conn == nil {
		return // it can be told nothing
	}
	if h.began.IsZero() {
		h.began = s.conn.Started()
		h.names = h.loadNames(s.pid)
	}
	s.target.Names = h.names
	s.conn.SetNames(h.names)
}

// loadNames returns the names of that worker. What is stored about another one, or
// cannot be read, tells nothing: the worker was told nothing before it was stored.
func (h *Host) loadNames(worker int) *change.Names {
	var is storedNames
	raw, err := os.ReadFile(h.store.path(namesFile))
	if err != nil || json.Unmarshal(raw, &is) != nil || is.Worker != worker || !sameBegin(is.Began, h.began) {
		return nil
	}
	return change.NewNames(is.Backends)
}

// namesFit reports whether the names belong to the stored configuration. They do not if
// a full disk had room for the names alone, or if another program put older files back.
// A map would then get a name that the process does not have, and a backend could take a
// second spare.
func namesFit(names *change.Names, stored *config.Config) bool {
	return !slices.ContainsFunc(names.List(), func(n change.Name) bool {
		isStored := stored.Index().Find(config.Key{Kind: "backend", Name: n.Backend}) != nil
		return isStored == (n.Gone != nil)
	})
}

// rename stores what the worker will call backends, before it is told. On a full disk
// it goes without: a process that comes after this one finds that HAProxy lacks the
// backends, and reloads.
func (s *syncing) rename(tells []*change.Do) {
	if after := s.h.names.After(tells); after != s.h.names {
		s.storeNames(after)
	}
}

// apply tells the worker. It no longer has the names of backends that it deleted.
func (s *syncing) apply(ctx context.Context, tells []*change.Do) (sent int, err error) {
	sent, err = s.conn.Apply(ctx, s.h.layout, s.h.leaving, tells)
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

// forgetNames is for a worker that has loaded the configuration: it has all names as
// they are there.
func (h *Host) forgetNames() {
	h.names, h.began = nil, time.Time{}
	_ = os.Remove(h.store.path(namesFile)) // it is about another worker by now
}
