package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writes are changes of the cluster, carried out in their order and tried until
// they succeed: the API server may be away.
type writes struct {
	mu      sync.Mutex
	waiting []func(context.Context) error
	last    error // of the newest failure
	made    int
}

func startWrites(t testing.TB) *writes {
	w := &writes{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				for w.next(ctx) {
				}
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return w
}

// next makes the oldest change and reports whether another one may follow now.
func (w *writes) next(ctx context.Context) bool {
	w.mu.Lock()
	if len(w.waiting) == 0 {
		w.mu.Unlock()
		return false
	}
	f := w.waiting[0]
	w.mu.Unlock()
	within, cancel := context.WithTimeout(ctx, 5*time.Second)
	err := f(within)
	cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	// A request that failed may have been carried out.
	if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
		w.last = err
		return false
	}
	w.waiting = w.waiting[1:]
	w.made++
	return true
}

func (w *writes) add(f func(context.Context) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, f)
}

// done is a condition: that all changes were made.
func (w *writes) done() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.waiting); n > 0 {
		return fmt.Errorf("%d changes wait: %w", n, w.last)
	}
	return nil
}

// setEndpoints is endpoints for a goroutine that is not the test's.
func (k *kube) setEndpoints(ctx context.Context, service string, addrs ...string) error {
	_, err := env.cluster.client.DiscoveryV1().EndpointSlices(k.ns).
		Update(ctx, k.slice(service, backendPort, addrs), metav1.UpdateOptions{})
	return err
}

func (k *kube) deleteIngress(ctx context.Context, name string) error {
	return env.cluster.client.NetworkingV1().Ingresses(k.ns).Delete(ctx, name, metav1.DeleteOptions{})
}

// updateSecret replaces what is in a Secret.
func (k *kube) updateSecret(ctx context.Context, name string, typ corev1.SecretType, data map[string][]byte) error {
	_, err := env.cluster.client.CoreV1().Secrets(k.ns).Update(ctx,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: typ, Data: data}, metav1.UpdateOptions{})
	return err
}
