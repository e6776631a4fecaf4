package observe

import (
	"errors"
	"fmt"

	"github.com/hapticsdk/haptic/reconcile"
)

// Ready returns nil when the loop is ready, as [reconcile.State.Ready] has it,
// and otherwise an error that says what it waits for. It fits [Server].Ready.
func Ready(s reconcile.State) error {
	if s.Ready() {
		return nil
	}
	if s.Validated == "" {
		if s.LastError != "" {
			return fmt.Errorf("no valid configuration yet: %s", s.LastError)
		}
		return errors.New("no valid configuration yet")
	}
	var errs []error
	for _, e := range s.Instances {
		if e.Hash != "" {
			continue
		}
		why := "deployment under way"
		if e.Error != "" {
			why = e.Error
		}
		errs = append(errs, fmt.Errorf("instance %s has no configuration yet: %s", e.Name, why))
	}
	return errors.Join(errs...)
}
