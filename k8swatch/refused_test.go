package k8swatch_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/k8swatch"
)

// brokenSource sends what it is told to, whatever it is.
type brokenSource struct {
	list   []runtime.Object
	events *watch.FakeWatcher
}

func (s brokenSource) ListWatch(schema.GroupVersionResource, string, func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, o := range s.list {
		list.Items = append(list.Items, runtime.RawExtension{Object: o})
	}
	return &cache.ListWatch{
		ListFunc:  func(metav1.ListOptions) (runtime.Object, error) { return list.DeepCopy(), nil },
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return s.events, nil },
	}, nil
}

// TestRefused: one object that cannot be stored holds nothing up.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, nameless := ingress("a", "good"), ingress("a", "")
		src := brokenSource{list: []runtime.Object{nameless, service("a", "wrong"), good}, events: watch.NewFake()}
		w := watching(t, src, ingresses, &k8swatch.Options{Logger: quiet, NoWatchList: true}, 1)
		if s := w.State(); s.Refused != 2 || s.Objects != 1 {
			t.Errorf("state %+v", s)
		}
		src.events.Modify(service("a", "good")) // the wrong type under a good name
		synctest.Wait()
		require.NotNil(t, w.Snapshot().ByName("a", "good"), "the last good version went")
		require.Equal(t, 3, w.State().Refused, "the last good version went")
		next := ingress("a", "good", "x.test")
		next.ResourceVersion = "9"
		src.events.Modify(next)
		src.events.Delete(service("a", "wrong"))
		synctest.Wait()
		require.Equal(t, 1, w.State().Refused, "mended, but still refused")
	})
}
