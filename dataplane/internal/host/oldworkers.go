package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// reserve is how many old workers there may be beyond MaxOldWorkers. They are for owners of
// backends that asked for none of the reloads before: one whose clients keep old workers alive
// would otherwise hold up the reloads of all others, until "hard-stop-after".
func (h *Host) reserve() int { return max(1, h.opts.MaxOldWorkers/4) }

// whyTooMany says that a reload has to wait for old workers to end, or returns nil.
func (s *syncing) whyTooMany(procs haproxyctl.Procs) error {
	h, old, most := s.h, len(procs.Old), s.h.opts.MaxOldWorkers
	lives := func(pid int) bool {
		return slices.ContainsFunc(procs.Old, func(p haproxyctl.Proc) bool { return p.PID == pid })
	}
	for pid := range h.causes {
		if !lives(pid) {
			delete(h.causes, pid)
		}
	}
	switch {
	case old < most:
		return nil
	case old < most+h.reserve() && slices.ContainsFunc(s.owners(), h.isQuiet):
		return nil
	}
	return fail("reload", fmt.Errorf("%w: %d have connections, and at most %d may", config.ErrOldWorkers, old, most))
}

// isQuiet reports whether an owner asked for none of the reloads that left old workers.
func (h *Host) isQuiet(owner string) bool {
	for _, owners := range h.causes {
		if slices.Contains(owners, owner) {
			return false
		}
	}
	return true
}

// owners returns whose backends need a reload. Other sections belong to nobody.
func (s *syncing) owners() (all []string) {
	for i := range s.steps {
		step := &s.steps[i]
		if step.Impact != change.Reload {
			continue
		}
		kind, name := step.Kind, step.Name
		if step.Parent != "" {
			kind, name, _ = strings.Cut(step.Parent, " ")
		}
		if kind != "backend" || change.IsSpare(name) {
			continue
		}
		if owner := change.OwnerOf(name); !slices.Contains(all, owner) {
			all = append(all, owner)
		}
	}
	return all
}
