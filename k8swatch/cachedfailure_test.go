package k8swatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
		require.Equal(t, int64(1), c.Stats().Fetches)
	})
}

// orderedSource has each fetch end when the test says so, and as it says.
type orderedSource struct {
	*k8swatchtest.Source
	ends map[string]chan error // by the name of the object
}

func (s orderedSource) Fetch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (k8swatch.Object, error) {
	select {
	case err := <-s.ends[name]:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.Source.Fetch(ctx, gvr, namespace, name)
}

// TestCachedNamesTheFirst: of several objects that cannot be fetched it is the
// first in order, whichever was first in time.
func TestCachedNamesTheFirst(t *testing.T) {
	failed := errors.New("failed")
	for _, tt := range []struct {
		name string
		ends string // in this order; "!" for a failure
		want string // what the error names
	}{
		{"the last fails first", "!d !b", "b"}, // a and c are asked for, too
		{"the first fails first", "!b", "b"},
		{"only the last", "!d c b", "d"},
		{"one after the other", "!d !c !b !a", "a"},
		{"the first of all", "!a", "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := orderedSource{Source: k8swatchtest.NewSource(), ends: map[string]chan error{}}
				for _, name := range []string{"a", "b", "c", "d"} {
					src.Apply(secret("shop", name, "x"))
					src.ends[name] = make(chan error)
				}
				c := mustCached[*corev1.Secret](t, src, secrets, nil)
				start(t, c)
				synced(t, c, 4)
				result := make(chan error, 1)
				go func() { _, err := c.List(t.Context()); result <- err }()
				end := func(name string, err error) {
					synctest.Wait() // it waits, or nobody wants it any more
					select {
					case src.ends[name] <- err:
					default:
						t.Errorf("%s is not being fetched", name)
					}
				}
				for _, name := range strings.Fields(tt.ends) {
					if name, fails := strings.CutPrefix(name, "!"); fails {
						end(name, failed)
					} else {
						end(name, nil)
					}
				}
				for name := "a"; name <= "d"; name = string(name[0] + 1) {
					if !strings.Contains(tt.ends, name) {
						end(name, nil)
					}
				}
				synctest.Wait()
				var fetch *k8swatch.FetchError
				select {
				case err := <-result:
					if !errors.As(err, &fetch) || fetch.Name != tt.want || !errors.Is(err, failed) {
						t.Errorf("got %v, want one about %s", err, tt.want)
					}
				default:
					t.Error("still waiting")
				}
			})
		})
	}
}
