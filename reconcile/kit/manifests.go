package kit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hapticsdk/haptic/k8swatch"
)

// Manifests is a folder of manifests that the program watches instead of a cluster.
type Manifests struct {
	*k8swatch.Folder
	waiting atomic.Bool
}

// WaitForKnown is [k8swatch.Folder.WaitForKnown], for a program that finds something already
// deployed. Check reports the wait.
func (m *Manifests) WaitForKnown(ctx context.Context) error {
	m.waiting.Store(true)
	defer m.waiting.Store(false)
	return m.Folder.WaitForKnown(ctx)
}

// Check returns the problems of the folder, for [observe.Health.Check].
func (m *Manifests) Check() error {
	errs := m.Errors()
	if m.waiting.Load() {
		errs = append(errs, errors.New("all manifests: the controller deploys nothing until they are correct; what is deployed stays in use"))
	}
	return errors.Join(errs...)
}

// OfCluster adds to [k8swatch.ErrNoCluster] the flags that help. Other errors stay the same.
func OfCluster(err error) error {
	if errors.Is(err, k8swatch.ErrNoCluster) {
		return fmt.Errorf("%w; give -kubeconfig FILE, or -manifests DIR", err)
	}
	return err
}
