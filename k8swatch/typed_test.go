package k8swatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestAddRefuses: what Add refuses, it does not add.
func TestAddRefuses(t *testing.T) {
	src, ingresses := k8swatchtest.NewSource(), networkingv1.SchemeGroupVersion.WithResource("ingresses")
	group := k8swatch.NewGroup(nil)
	refused := func(err error, text string) {
		t.Helper()
		var option *k8swatch.OptionError
		require.True(t, errors.As(err, &option), "%v", err)
		require.ErrorContains(t, err, text)
		require.Empty(t, group.Watchers())
	}
	_, err := k8swatch.Add[*corev1.Service](group, src, ingresses, nil)
	refused(err, "its objects are *v1.Ingress, not *v1.Service")
	_, err = k8swatch.Add[*networkingv1.Ingress](group, nil, ingresses, nil)
	refused(err, "the source is missing")
	_, err = k8swatch.Add[*networkingv1.Ingress](nil, src, ingresses, nil)
	refused(err, "the group is nil")
	_, err = k8swatch.Add[*networkingv1.Ingress](group, src, ingresses, &k8swatch.Options{IndexBy: []string{"spec.hosts"}})
	refused(err, `no field "hosts"`)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- group.Run(ctx) }()
	_, err = group.WaitForSync(ctx)
	require.NoError(t, err)
	stop()
	require.NoError(t, <-ended)
	_, err = k8swatch.Add[*networkingv1.Ingress](group, src, ingresses, nil)
	require.ErrorIs(t, err, k8swatch.ErrGroupRunning)
}

// Two resources in one group, read with their types at one instant.
func ExampleAdd() {
	src := k8swatchtest.NewSource(ingress("shop", "web", "shop.test"))
	group := k8swatch.NewGroup(nil)
	ingresses, err1 := k8swatch.Add[*networkingv1.Ingress](group, src, networkingv1.SchemeGroupVersion.WithResource("ingresses"), nil)
	services, err2 := k8swatch.Add[*corev1.Service](group, src, corev1.SchemeGroupVersion.WithResource("services"), nil)
	if err := errors.Join(err1, err2); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- group.Run(ctx) }()
	if _, err := group.WaitForSync(ctx); err != nil {
		panic(err)
	}
	all := group.Snapshot()
	for _, i := range ingresses.Read(all).List() {
		fmt.Println(i.Name, i.Spec.Rules[0].Host)
	}
	fmt.Println(services.Read(all).Len(), services.Watcher().State().Phase)
	stop()
	<-ended
	// Output:
	// web shop.test
	// 0 Synced
}
