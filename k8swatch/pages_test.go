package k8swatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/k8swatch"
)

// pagedSource lists in pages, as the API server does.
type pagedSource struct {
	objects []*networkingv1.Ingress
	fail    func(opts metav1.ListOptions) error // nil for no failure

	mu    sync.Mutex
	asked []string // "continue/limit" of each request
}

func (s *pagedSource) ListWatch(schema.GroupVersionResource, string, func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	return &cache.ListWatch{
		ListWithContextFunc: s.list,
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			w := watch.NewFake()
			context.AfterFunc(ctx, w.Stop)
			return w, nil
		},
	}, nil
}

func (s *pagedSource) list(_ context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	s.asked = append(s.asked, fmt.Sprintf("%s/%d", opts.Continue, opts.Limit))
	s.mu.Unlock()
	if s.fail != nil {
		if err := s.fail(opts); err != nil {
			return nil, err
		}
	}
	if opts.ResourceVersion != "" {
		return nil, errors.New("the watch cache does not make pages")
	}
	first, _ := strconv.Atoi(opts.Continue)
	last := len(s.objects)
	list := &networkingv1.IngressList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	if opts.Limit > 0 && first+int(opts.Limit) < last {
		last = first + int(opts.Limit)
		list.Continue = strconv.Itoa(last)
	}
	for _, o := range s.objects[first:last] {
		list.Items = append(list.Items, *o.DeepCopy())
	}
	return list, nil
}

func (s *pagedSource) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.asked, " ")
}

func TestPages(t *testing.T) {
	once := func(at string, err error) func(metav1.ListOptions) error {
		var o sync.Once
		return func(opts metav1.ListOptions) (failed error) {
			if opts.Continue == at {
				o.Do(func() { failed = err })
			}
			return failed
		}
	}
	expired := apierrors.NewResourceExpired("the provided continue parameter is too old")
	for _, tt := range []struct {
		name string
		fail func(metav1.ListOptions) error
		want string // requests
	}{
		{"all is well", nil, "/500 500/500 1000/500"},
		{"cut in the second page", once("500", errors.New("unexpected EOF")), "/500 500/500 500/500 1000/500"},
		{"overloaded in the third page", once("1000", apierrors.NewTooManyRequests("later", 1)), "/500 500/500 1000/500 1000/500"},
		{"compacted meanwhile", once("1000", expired), "/500 500/500 1000/500 /0"},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			src := &pagedSource{fail: tt.fail}
			var all []string
			for i := range 1200 {
				src.objects = append(src.objects, ingress("shop", fmt.Sprintf("n%04d", i), "a.test", "b.test"))
				all = append(all, src.objects[i].Name)
			}
			src.objects[700].Name = "" // cannot be stored
			all = slices.Delete(all, 700, 701)
			w := watching(t, src, ingresses, &k8swatch.Options{NoWatchList: true, Logger: quiet, IgnoreFields: []string{"spec.rules[0]"}}, 1199)
			require.Equal(t, tt.want, src.requests(), "requests")
			var stored []string
			for i := range k8swatch.Read[*networkingv1.Ingress](w.Snapshot()).All() {
				stored = append(stored, i.Name)
				require.Len(t, i.Spec.Rules, 1)
				require.Equal(t, "b.test", i.Spec.Rules[0].Host)
			}
			require.True(t, slices.Equal(stored, all), "%d stored, state %+v", len(stored), w.State())
			require.Equal(t, 1, w.State().Refused, "%d stored", len(stored))
		})
	}
}

// TestRunWaits: when Run returns, no request that it made is under way, and none
// is made any more.
func TestRunWaits(t *testing.T) {
	for _, noStream := range []bool{false, true} {
		bubble(t, fmt.Sprintf("NoWatchList=%v", noStream), func(t *testing.T) {
			for range 20 {
				src := &slowSource{entered: make(chan struct{}, 100)}
				w := mustNew(t, src, ingresses, &k8swatch.Options{NoWatchList: noStream})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- w.Run(ctx) }()
				<-src.entered
				cancel()
				require.NoError(t, <-done)
				require.Zero(t, src.underWay())
				made := src.made()
				synctest.Wait()
				require.Equal(t, made, src.made(), "a request was made after Run")
			}
		})
	}
}

// slowSource answers when the request is given up, and takes its time for that.
type slowSource struct {
	entered chan struct{}

	mu           sync.Mutex
	begun, ended int
}

func (s *slowSource) request(ctx context.Context) error {
	s.mu.Lock()
	s.begun++
	s.mu.Unlock()
	s.entered <- struct{}{}
	<-ctx.Done()
	elapse(100 * time.Millisecond)
	s.mu.Lock()
	s.ended++
	s.mu.Unlock()
	return ctx.Err()
}

func (s *slowSource) underWay() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun - s.ended
}

func (s *slowSource) made() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

func (s *slowSource) ListWatch(schema.GroupVersionResource, string, func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			return nil, s.request(ctx)
		},
		WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			return nil, s.request(ctx)
		},
	}, nil
}

// TestRunEndsAWatchThatIgnoresItsContext: brokenSource's does.
func TestRunEndsAWatchThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := brokenSource{list: []runtime.Object{ingress("a", "1")}, events: watch.NewFake()}
		w := mustNew(t, src, ingresses, &k8swatch.Options{NoWatchList: true})
		stop := start(t, w)
		synctest.Wait()
		stop()
		require.True(t, src.events.IsStopped(), "the watch was not stopped")
	})
}

// TestTooManyKeys: an object whose index keys multiply is left out, and the
// error says which expression did it.
func TestTooManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hosts []string
		for i := range 40 {
			hosts = append(hosts, fmt.Sprint("h", i))
		}
		big := ingress("a", "big", hosts...)
		for _, h := range hosts {
			big.Spec.TLS = append(big.Spec.TLS, networkingv1.IngressTLS{SecretName: h})
		}
		var log strings.Builder
		src := &pagedSource{objects: []*networkingv1.Ingress{big, ingress("a", "small", hosts...)}}
		w := mustNew(t, src, ingresses, &k8swatch.Options{
			NoWatchList: true, Logger: slog.New(slog.NewTextHandler(&log, nil)), IndexBy: []string{"spec.rules[*].host", "spec.tls[*].secretName"},
		})
		stop := start(t, w, 1)
		require.Equal(t, 1, w.State().Refused)
		require.Len(t, w.Snapshot().Get("h39", ""), 1)
		stop()
		for _, want := range []string{"object=a/big", "40 values", "spec.tls[*].secretName", "1600 index keys"} {
			require.Contains(t, log.String(), want)
		}
	})
}
