package k8swatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestCachedFirstFailure: after it nothing more is fetched for the same list.
func TestCachedFirstFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource()
		for i := range 50 {
			src.Apply(secret("shop", fmt.Sprint(i), "x"))
		}
		c := mustCached[*corev1.Secret](t, src, secrets, &k8swatch.CachedOptions{Parallel: 1})
		start(t, c)
		synced(t, c, 50)
		src.OnRequest(func(context.Context, k8swatchtest.Request) error { return errors.New("no") })
		if _, err := c.List(t.Context()); err == nil || !strings.HasSuffix(err.Error(), ": no") {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
		if n := c.Stats().Fetches; n != 1 {
			t.Errorf("%d fetches", n)
		}
	})
}
