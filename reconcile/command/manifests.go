package command

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hapticsdk/haptic/k8swatch"
)

// Manifests is a folder of manifests that is watched in place of a cluster.
type Manifests struct {
	*k8swatch.Folder
	waiting atomic.Bool
}

// WaitForKnown is that of the folder, for a program that finds something deployed. The
// check says of the wait.
func (m *Manifests) WaitForKnown(ctx context.Context) error {
	m.waiting.Store(true)
	defer m.waiting.Store(false)
	return m.Folder.WaitForKnown(ctx)
}

// Check says what is wrong in the folder, for [observe.Health.Check].
func (m *Manifests) Check() error {
	errs := m.Errors()
	if m.waiting.Load() {
		errs = append(errs, errors.New("all manifests: nothing is deployed until they are in order; what is deployed stays in use"))
	}
	return errors.Join(errs...)
}

// OfCluster adds to an error of [k8swatch.NewCluster] the flags that help where nothing
// names a cluster.
func OfCluster(err error) error {
	if errors.Is(err, k8swatch.ErrNoCluster) {
		return fmt.Errorf("%w; give -kubeconfig FILE, or -manifests DIR", err)
	}
	return err
}
