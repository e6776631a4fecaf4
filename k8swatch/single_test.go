package k8swatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

func secret(namespace, name, password string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string][]byte{"password": []byte(password)},
	}
}

func mustSingle[T k8swatch.Object](t testing.TB, src k8swatch.Source, gvr schema.GroupVersionResource, opts *k8swatch.SingleOptions[T]) *k8swatch.Single[T] {
	t.Helper()
	s, err := k8swatch.NewSingle(src, gvr, "shop", "main", opts)
	require.NoError(t, err)
	return s
}

// told writes down what OnChange is told.
type told[T k8swatch.Object] struct {
	lines []string
	text  func(T) string
	after func(n int) error
}

func (r *told[T]) onChange(_ context.Context, c k8swatch.SingleChange[T]) error {
	line := "changed"
	switch {
	case c.Deleted:
		line = "deleted"
	case c.Created:
		line = "created"
	}
	if c.Initial {
		line = "initially " + line
	}
	if !c.Deleted {
		line += " " + r.text(c.Object)
	}
	r.lines = append(r.lines, line)
	if r.after != nil {
		return r.after(len(r.lines))
	}
	return nil
}

func (r *told[T]) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	require.Equal(t, strings.Join(want, ", "), strings.Join(r.lines, ", "), "told")
	r.lines = nil
}

func password(s *corev1.Secret) string { return string(s.Data["password"]) }

// TestSingle: each change at once, although Secrets have no generation.
func TestSingle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(secret("shop", "main", "one"), secret("shop", "other", "x"), secret("blog", "main", "x"))
		rec := &told[*corev1.Secret]{text: password}
		s := mustSingle(t, src, secrets, &k8swatch.SingleOptions[*corev1.Secret]{OnChange: rec.onChange})
		if _, ok := s.Get(); ok || s.Synced() {
			t.Error("something is known before Run")
		}
		stop := start(t, s, 1)
		rec.expect(t, "initially created one")
		begun := time.Now()
		src.Apply(secret("shop", "main", "two"))
		rec.expect(t, "changed two")
		src.Apply(secret("shop", "main", "three"))
		src.Apply(secret("shop", "other", "y"), secret("blog", "main", "y"))
		rec.expect(t, "changed three")
		src.Delete(secret("shop", "main", ""))
		rec.expect(t, "deleted")
		if _, ok := s.Get(); ok {
			t.Error("Get returns what is deleted")
		}
		src.Apply(secret("shop", "main", "four"))
		rec.expect(t, "created four")
		if got, ok := s.Get(); !ok || password(got) != "four" {
			t.Errorf("Get: %v, %v", got, ok)
		}
		require.Zero(t, time.Since(begun), "it took")
		if st := s.State(); st.Phase != k8swatch.PhaseSynced || st.Objects != 1 {
			t.Errorf("state %+v", st)
		}
		stop()
		require.ErrorIs(t, s.Run(t.Context()), k8swatch.ErrStarted, "a second Run")
	})
}

// TestSingleAbsent: that there is nothing is told as well.
func TestSingleAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource()
		rec := &told[*corev1.Secret]{text: password}
		s := mustSingle(t, src, secrets, &k8swatch.SingleOptions[*corev1.Secret]{OnChange: rec.onChange})
		start(t, s, 0)
		rec.expect(t, "initially deleted")
		src.Apply(secret("shop", "main", "one"))
		rec.expect(t, "created one")
	})
}

// TestSingleAway: what happened while the source was away, by uid.
func TestSingleAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(secret("shop", "main", "one"))
		rec := &told[*corev1.Secret]{text: password}
		s := mustSingle(t, src, secrets, &k8swatch.SingleOptions[*corev1.Secret]{OnChange: rec.onChange})
		start(t, s, 1)
		rec.expect(t, "initially created one")
		src.Partition()
		src.Delete(secret("shop", "main", ""))
		src.Apply(secret("shop", "main", "one"))
		elapse(30 * time.Second)
		if got, ok := s.Get(); !ok || password(got) != "one" || s.State().Phase != k8swatch.PhaseStale {
			t.Errorf("away: %v, %v, %+v", got, ok, s.State())
		}
		rec.expect(t)
		src.Compact()
		src.Restore()
		elapse(3 * time.Second)
		rec.expect(t, "deleted", "created one")
		src.Partition()
		src.Delete(secret("shop", "main", ""))
		src.Compact()
		src.Restore()
		elapse(3 * time.Second)
		rec.expect(t, "deleted")
	})
}

// TestSingleRedelivery: an error and a panic, and what happens meanwhile.
func TestSingleRedelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(secret("shop", "main", "one"))
		rec := &told[*corev1.Secret]{text: password}
		rec.after = func(n int) error {
			switch n {
			case 1:
				src.Apply(secret("shop", "main", "two"))
				return errors.New("not now")
			case 2:
				panic("neither now")
			}
			return nil
		}
		s := mustSingle(t, src, secrets, &k8swatch.SingleOptions[*corev1.Secret]{OnChange: rec.onChange, Logger: quiet})
		start(t, s)
		elapse(time.Minute)
		rec.expect(t, "initially created one", "initially created two", "initially created two")

		// While the call lasts it is deleted and created again: told as that.
		rec.after = func(n int) error {
			if n == 1 {
				src.Apply(secret("shop", "main", "x"))
				src.Delete(secret("shop", "main", ""))
				src.Apply(secret("shop", "main", "four"))
				elapse(time.Second)
			}
			return nil
		}
		src.Apply(secret("shop", "main", "three"))
		elapse(2 * time.Second)
		rec.expect(t, "changed three", "deleted", "created four")
	})
}

// TestSingleFailedHalfway: a call that failed may have done half of its work, so
// that what holds then is told even where it is what was told before.
func TestSingleFailedHalfway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := k8swatchtest.NewSource(secret("shop", "main", "one"))
		rec := &told[*corev1.Secret]{text: password}
		s := mustSingle(t, src, secrets, &k8swatch.SingleOptions[*corev1.Secret]{OnChange: rec.onChange, Logger: quiet})
		start(t, s)
		rec.expect(t, "initially created one")
		fails := func(then func()) func(int) error {
			return func(n int) error {
				if n > 1 {
					return nil
				}
				then()
				return errors.New("half of it is done")
			}
		}
		rec.after = fails(func() { src.Apply(secret("shop", "main", "one")) })
		src.Apply(secret("shop", "main", "two"))
		elapse(time.Second)
		rec.expect(t, "changed two", "changed one")

		rec.after = nil
		src.Delete(secret("shop", "main", ""))
		rec.expect(t, "deleted")
		rec.after = fails(func() { src.Delete(secret("shop", "main", "")) })
		src.Apply(secret("shop", "main", "three"))
		elapse(time.Minute)
		rec.expect(t, "created three", "deleted")
	})
}

// TestSingleIgnores: a write of what is ignored is not told. Get has the newest status all the same.
func TestSingleIgnores(t *testing.T) {
	typed := func(host, status string) k8swatch.Object {
		i := ingress("shop", "main", host)
		i.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: status}}
		i.Annotations = map[string]string{"noise": status}
		return i
	}
	untyped := func(host, status string) k8swatch.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Route", "metadata": map[string]any{"namespace": "shop", "name": "main"},
			"spec": map[string]any{"host": host, "noise": status}, "status": map[string]any{"state": status},
		}}
	}
	type options = k8swatch.SingleOptions[k8swatch.Object]
	for name, tt := range map[string]struct {
		gvr  schema.GroupVersionResource
		make func(host, status string) k8swatch.Object
		opts options
		told bool // of a status
	}{
		"status":             {ingresses, typed, options{IgnoreFields: []string{"metadata.annotations"}}, false},
		"status as well":     {ingresses, typed, options{IncludeStatus: true}, true},
		"field and status":   {ingresses, typed, options{IncludeStatus: true, IgnoreFields: []string{"metadata.annotations", "status"}}, false},
		"of an unstructured": {routes, untyped, options{IgnoreFields: []string{"spec.noise"}, NoWatchList: true}, false},
	} {
		bubble(t, name, func(t *testing.T) {
			src := k8swatchtest.NewSource(tt.make("a.test", "192.0.2.1"))
			text := func(o k8swatch.Object) string {
				data, err := json.Marshal(o)
				require.NoError(t, err)
				return string(data)
			}
			rec := &told[k8swatch.Object]{text: func(o k8swatch.Object) string { return regexp.MustCompile(`[ab]\.test`).FindString(text(o)) }}
			tt.opts.OnChange = rec.onChange
			s := mustSingle(t, src, tt.gvr, &tt.opts)
			start(t, s)
			rec.expect(t, "initially created a.test")
			src.Apply(tt.make("a.test", "192.0.2.2"))
			if tt.told {
				rec.expect(t, "changed a.test")
			} else {
				rec.expect(t)
			}
			if got, _ := s.Get(); name != "field and status" {
				require.Contains(t, text(got), "192.0.2.2")
			}
			src.Apply(tt.make("b.test", "192.0.2.2"))
			rec.expect(t, "changed b.test")
			labelled := tt.make("b.test", "192.0.2.2")
			labelled.SetLabels(map[string]string{"a": "b"})
			src.Apply(labelled)
			rec.expect(t, "changed b.test")
		})
	}
}

// A single watcher follows one Secret of credentials.
func ExampleNewSingle() {
	src := k8swatchtest.NewSource(secret("haptic", "credentials", "old"))
	changes := make(chan string)
	s, err := k8swatch.NewSingle(src, secrets, "haptic", "credentials", &k8swatch.SingleOptions[*corev1.Secret]{
		OnChange: func(ctx context.Context, c k8swatch.SingleChange[*corev1.Secret]) error {
			text := "gone"
			if !c.Deleted {
				text = fmt.Sprintf("%d keys at version %s", len(c.Object.Data), c.Object.ResourceVersion)
			}
			select {
			case changes <- text:
			case <-ctx.Done():
			}
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	fmt.Println(<-changes)
	src.Apply(secret("haptic", "credentials", "new"))
	fmt.Println(<-changes)
	src.Delete(secret("haptic", "credentials", ""))
	fmt.Println(<-changes)
	_, there := s.Get()
	fmt.Println(there)
	stop()
	fmt.Println(<-done)
	// Output:
	// 1 keys at version 2
	// 1 keys at version 3
	// gone
	// false
	// <nil>
}
