package host

import (
	"errors"
	"os"
)

// mark notes that a change is under way. A process that comes after this one goes
// back to the generation.
func (h *Host) mark(generation string) error {
	err := os.WriteFile(h.markPath(), []byte(generation), 0o600)
	h.doubt = h.doubt || err == nil
	return err
}

func (h *Host) unmark() {
	h.doubt = false
	_ = os.Remove(h.markPath())
}

func (h *Host) markPath() string { return h.store.path("run", "half-done") }

// recover goes back to the last good configuration, if there is one and a process
// was killed while it changed something. If its HAProxy lives, the next Sync
// reloads that.
func (h *Host) recover(lives bool) error {
	before, err := os.ReadFile(h.markPath())
	if err != nil {
		return h.store.clean()
	}
	if _, err := os.Stat(h.store.path(string(before), mainFile)); err == nil && stored.Match(before) {
		if err := h.store.flip(string(before)); err != nil {
			return err
		}
	}
	if lives {
		h.doubt = true
		return h.store.clean()
	}
	return errors.Join(os.Remove(h.markPath()), h.store.clean())
}
