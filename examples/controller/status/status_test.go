package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientv1 "k8s.io/client-go/kubernetes/typed/networking/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// statusAPI is an API server as far as the status of Ingresses goes.
type statusAPI struct {
	clientv1.IngressInterface // nil: what is not here is not called
	namespace                 string
	*statusObjects
}

type statusObjects struct {
	mu      sync.Mutex
	all     map[string]*networkingv1.Ingress // by namespace/name
	foreign map[string]bool                  // of another controller's class
	lists   int
	patched []string
	fail    func(ctx context.Context, name string) error
}

func (a statusAPI) Ingresses(namespace string) clientv1.IngressInterface {
	a.namespace = namespace
	return a
}

func (a statusAPI) List(_ context.Context, _ metav1.ListOptions) (*networkingv1.IngressList, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lists++
	list := &networkingv1.IngressList{}
	for _, ing := range a.all {
		list.Items = append(list.Items, *ing)
	}
	return list, nil
}

func (a statusAPI) Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, _ metav1.PatchOptions, sub ...string) (*networkingv1.Ingress, error) {
	key := a.namespace + "/" + name
	if a.fail != nil {
		if err := a.fail(ctx, key); err != nil {
			return nil, err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.patched = append(a.patched, key)
	ing := a.all[key]
	if ing == nil || len(sub) != 1 || sub[0] != "status" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "ingresses"}, name)
	}
	if kind == types.MergePatchType {
		var set networkingv1.Ingress
		if err := json.Unmarshal(patch, &set); err != nil {
			return nil, err
		}
		if set.UID != ing.UID {
			return nil, apierrors.NewConflict(schema.GroupResource{Resource: "ingresses"}, name, errors.New("uid"))
		}
		ing.Status = set.Status
		return ing, nil
	}
	var ops []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(patch, &ops); err != nil {
		return nil, err
	}
	has, _ := json.Marshal(ing.Status.LoadBalancer.Ingress)
	uid, _ := json.Marshal(ing.UID)
	if string(ops[0].Value) != string(uid) || string(ops[1].Value) != string(has) || ops[2].Op != "remove" {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", schema.GroupResource{}, name, "test failed", 0, true)
	}
	ing.Status = networkingv1.IngressStatus{}
	return ing, nil
}

func (a statusAPI) put(keys ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, key := range keys {
		ns, name, _ := strings.Cut(key, "/")
		a.all[key] = &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID("uid of " + key)}}
	}
}

// addresses of an Ingress, as text.
func (a statusAPI) addresses(key string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []string
	for _, at := range a.all[key].Status.LoadBalancer.Ingress {
		all = append(all, at.IP+at.Hostname)
	}
	return strings.Join(all, " ")
}

// patches are the writes since the last call.
func (a statusAPI) patches() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	patched := a.patched
	a.patched = nil
	return patched
}

// routesOf are those of some Ingresses.
type routesOf []*networkingv1.Ingress

func (r *routesOf) Served() iter.Seq[*networkingv1.Ingress] { return slices.Values(*r) }

func (a statusAPI) routes(keys ...string) Routes {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := &routesOf{}
	for _, key := range keys {
		*r = append(*r, a.all[key])
	}
	return r
}

// startStatus runs a writer until the test ends, inside of a bubble.
func startStatus(t *testing.T, published ...string) (statusAPI, *Writer, *atomic.Uint64) {
	a := statusAPI{statusObjects: &statusObjects{all: map[string]*networkingv1.Ingress{}, foreign: map[string]bool{}}}
	term := &atomic.Uint64{}
	term.Store(1)
	opts := Options{Client: a, Leads: term.Load, Look: func() Finder {
		return func(namespace, name string) (*networkingv1.Ingress, bool) {
			a.mu.Lock()
			defer a.mu.Unlock()
			key := namespace + "/" + name
			return a.all[key], a.all[key] != nil && !a.foreign[key]
		}
	}}
	for _, text := range published {
		one, err := Parse(text)
		require.NoError(t, err)
		opts.Addresses = append(opts.Addresses, one)
	}
	s := New(opts)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return a, s, term
}

// deploy is what the renderer tells of a configuration that a HAProxy has.
func (w *Writer) deploy(hash string, routes Routes) {
	w.made(revision{hash: hash, routes: routes})
	w.has(hash)
}

// TestStatus: an Ingress gets the addresses once it is deployed, keeps them while it is
// ours, and loses them when it is another controller's. Only differences are written.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s, _ := startStatus(t, "192.0.2.1", "lb.example.com")
		const both = "192.0.2.1 lb.example.com"
		a.put("shop/web", "shop/api", "shop/same")
		a.all["shop/same"].Status.LoadBalancer.Ingress = s.publish
		s.made(revision{hash: "one", routes: a.routes("shop/web", "shop/same")})
		time.Sleep(time.Hour)
		require.Empty(t, a.patches(), "it is not deployed")
		s.has("one")
		time.Sleep(5 * time.Second)
		require.Equal(t, []string{"shop/web"}, a.patches(), "the other has them, and the third is not served")
		require.Equal(t, both, a.addresses("shop/web"))

		s.made(revision{hash: "one", routes: a.routes("shop/web", "shop/same", "shop/api")})
		time.Sleep(5 * time.Second)
		require.Equal(t, []string{"shop/api"}, a.patches(), "it made the same configuration")
		s.deploy("two", a.routes("shop/same"))
		time.Sleep(5 * time.Second)
		require.Empty(t, a.patches(), "they are ours")

		a.mu.Lock()
		a.foreign["shop/web"], a.foreign["shop/api"] = true, true
		a.all["shop/api"].Status.LoadBalancer.Ingress = Addresses{{IP: "203.0.113.9"}} // by its new controller
		delete(a.all, "shop/same")
		a.mu.Unlock()
		s.deploy("three", a.routes())
		time.Sleep(5 * time.Second)
		require.Len(t, a.patches(), 2)
		require.Equal(t, "", a.addresses("shop/web"))
		require.Equal(t, "203.0.113.9", a.addresses("shop/api"))
		time.Sleep(time.Hour)
		require.Empty(t, a.patches())
		require.NoError(t, s.Check())
	})
}

// TestStatusIsPutRight: what others wrote is found within the time after which all are
// read again.
func TestStatusIsPutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s, _ := startStatus(t, "192.0.2.1")
		a.put("shop/web")
		s.deploy("one", a.routes("shop/web"))
		time.Sleep(5 * time.Second)
		a.mu.Lock()
		a.all["shop/web"].Status = networkingv1.IngressStatus{} // as a controller does that ends
		a.mu.Unlock()
		time.Sleep(reread + 5*time.Second)
		require.Equal(t, "192.0.2.1", a.addresses("shop/web"))
	})
}

// TestStatusByTheLeader: a process that does not lead writes nothing, and one that begins
// to lead only what it deployed itself.
func TestStatusByTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s, term := startStatus(t, "192.0.2.1")
		a.put("shop/web", "shop/api")
		term.Store(0)
		s.deploy("one", a.routes("shop/web"))
		time.Sleep(time.Minute)
		require.Zero(t, a.lists+len(a.patches()))
		term.Store(2)
		s.wakeUp()
		time.Sleep(time.Minute)
		require.Zero(t, a.lists+len(a.patches()), "it deployed nothing in this term")
		s.has("one")
		time.Sleep(5 * time.Second)
		require.Equal(t, []string{"shop/web"}, a.patches())
		term.Store(0)
		s.deploy("two", a.routes("shop/web", "shop/api"))
		time.Sleep(time.Hour)
		require.Empty(t, a.patches())
	})
}

// TestStatusOfSlowInstances: what one HAProxy has late does not take back what another has,
// and an address that another controller wrote is never taken away.
func TestStatusOfSlowInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s, _ := startStatus(t, "192.0.2.1")
		a.put("shop/web", "shop/api")
		s.deploy("one", a.routes("shop/web"))
		s.deploy("two", a.routes("shop/web", "shop/api"))
		s.has("one")
		time.Sleep(5 * time.Second)
		require.Equal(t, []string{"shop/api", "shop/web"}, a.patches())
		s.deploy("one", a.routes("shop/web")) // again
		require.Equal(t, "one", s.deployed.hash)

		a.mu.Lock() // and no HAProxy takes what is without it
		a.foreign["shop/web"] = true
		a.all["shop/web"].Status.LoadBalancer.Ingress = Addresses{{IP: "203.0.113.9"}}
		a.mu.Unlock()
		time.Sleep(3 * reread)
		require.Equal(t, "203.0.113.9", a.addresses("shop/web"))
	})
}

// TestStatusWithoutRights: what is wrong is told by its verb, and done once it may be.
func TestStatusWithoutRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s, _ := startStatus(t, "192.0.2.1")
		var tries atomic.Int64
		var allowed atomic.Bool
		a.fail = func(_ context.Context, name string) error {
			if tries.Add(1); allowed.Load() {
				return nil
			}
			return apierrors.NewForbidden(schema.GroupResource{Group: "networking.k8s.io", Resource: "ingresses/status"}, name, errors.New("no rule"))
		}
		var keys []string
		for i := range 300 {
			keys = append(keys, fmt.Sprintf("shop/%d", i))
		}
		a.put(keys...)
		s.deploy("one", a.routes(keys...))
		time.Sleep(10 * time.Minute)
		require.ErrorContains(t, s.Check(), "the account needs the verb patch on ingresses/status of networking.k8s.io")
		require.Less(t, tries.Load(), int64(25), "each try is one request, and they become rare")
		allowed.Store(true)
		time.Sleep(2 * time.Minute)
		require.Len(t, a.patches(), 300)
		require.NoError(t, s.Check())
	})
}

// TestStatusRefusedToSome: a namespace without the right, an Ingress whose change a webhook
// refuses, and more that fail than are tried at once hold up none of the others.
func TestStatusRefusedToSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s, _ := startStatus(t, "192.0.2.1")
		forbidden := func(name, why string) error {
			return apierrors.NewForbidden(schema.GroupResource{Group: "networking.k8s.io", Resource: "ingresses"}, name, errors.New(why))
		}
		var tries atomic.Int64
		var mended atomic.Bool
		a.fail = func(_ context.Context, name string) error {
			tries.Add(1)
			switch {
			case mended.Load():
			case strings.HasPrefix(name, "denied"):
				return forbidden(name, "no rule")
			case name == "shop/0":
				return forbidden(name, "admission webhook denied the request")
			case strings.HasPrefix(name, "shop/odd"):
				return apierrors.NewInternalError(errors.New("a webhook does not answer"))
			}
			return nil
		}
		keys := []string{"shop/0", "shop/1", "shop/web", "tail/web"}
		for i := range 30 {
			keys = append(keys, fmt.Sprintf("denied-%d/0", i), fmt.Sprintf("denied-%d/1", i))
		}
		for i := range 2 * batch {
			keys = append(keys, fmt.Sprintf("shop/odd-%d", i))
		}
		a.put(keys...)
		s.deploy("one", a.routes(keys...))
		time.Sleep(10 * time.Minute)
		for _, key := range []string{"shop/1", "shop/web", "tail/web"} {
			require.Equal(t, "192.0.2.1", a.addresses(key), key)
		}
		require.Error(t, s.Check())
		require.Less(t, tries.Load(), int64(25*batch), "they become rare")
		mended.Store(true)
		time.Sleep(2 * maxPause)
		for _, key := range keys {
			require.Equal(t, "192.0.2.1", a.addresses(key), key)
		}
		require.NoError(t, s.Check())
	})
}

// TestStatusOfTwoControllers: an Ingress that goes from one controller to the other and back
// has the addresses of the one whose class it has, and neither takes away the other's.
func TestStatusOfTwoControllers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s, _ := startStatus(t, "192.0.2.1", "2001:db8::1")
		b := statusAPI{statusObjects: a.statusObjects}
		other := New(Options{Client: b, Leads: s.opts.Leads, Addresses: Addresses{{Hostname: "other.example.com"}}, Look: func() Finder {
			find := s.opts.Look()
			return func(namespace, name string) (*networkingv1.Ingress, bool) {
				ing, ours := find(namespace, name)
				return ing, ing != nil && !ours
			}
		}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = other.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		a.put("shop/web")
		for i := range 6 {
			foreign := i%2 == 1
			a.mu.Lock()
			a.foreign["shop/web"] = foreign
			a.mu.Unlock()
			mine, its, want := a.routes("shop/web"), a.routes(), "192.0.2.1 2001:db8::1"
			if foreign {
				mine, its, want = its, mine, "other.example.com"
			}
			if i%3 == 0 { // either may be first
				s.deploy(fmt.Sprint(i), mine)
				time.Sleep(5 * time.Second)
				other.deploy(fmt.Sprint(i), its)
			} else {
				other.deploy(fmt.Sprint(i), its)
				time.Sleep(5 * time.Second)
				s.deploy(fmt.Sprint(i), mine)
			}
			time.Sleep(5 * time.Second)
			require.Equal(t, want, a.addresses("shop/web"), i)
			a.patches()
			time.Sleep(3 * reread)
			require.Empty(t, a.patches(), "they do not fight")
		}
	})
}

// TestStatusConflicts: an Ingress that was made anew meanwhile gets its addresses with the
// next try, and those that are gone are no error.
func TestStatusConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s, _ := startStatus(t, "192.0.2.1")
		a.put("shop/web", "shop/gone", "shop/odd")
		routes := a.routes("shop/web", "shop/gone", "shop/odd")
		a.fail = func(_ context.Context, name string) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			switch name {
			case "shop/gone":
				delete(a.all, name)
			case "shop/web":
				if a.all[name].UID != "new" {
					a.all[name] = &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "new"}}
				}
			case "shop/odd":
				return apierrors.NewInternalError(errors.New("a webhook says no"))
			}
			return nil
		}
		s.deploy("one", routes)
		time.Sleep(time.Minute)
		require.Equal(t, "192.0.2.1", a.addresses("shop/web"))
		require.ErrorContains(t, s.Check(), "Ingress shop/odd")
		require.NotContains(t, s.Check().Error(), "gone")
	})
}

// TestStatusOfMany: ten thousand Ingresses of one namespace do not delay those of others,
// nor the loop, and the rate is bounded. So it is while the API server hangs.
func TestStatusOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, s, _ := startStatus(t, "192.0.2.1")
		var keys []string
		for i := range 10_000 {
			keys = append(keys, fmt.Sprintf("evil/%05d", i))
		}
		keys = append(keys, "shop/web")
		a.put(append(keys, "late/web")...)
		s.deploy("one", a.routes(keys...))
		time.Sleep(4 * time.Second)
		require.NotEmpty(t, a.addresses("shop/web"))
		s.deploy("two", a.routes(append(keys, "late/web")...))
		time.Sleep(10 * time.Second)
		require.NotEmpty(t, a.addresses("late/web"))
		require.LessOrEqual(t, len(a.patches()), 15*rate)
		time.Sleep(10 * time.Minute)
		require.NotEmpty(t, a.addresses("evil/09999"))

		a.fail = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		s.found(&corev1.Service{Spec: corev1.ServiceSpec{ClusterIPs: []string{"192.0.2.7"}}})
		began := time.Now()
		for i := range 100 {
			s.deploy(fmt.Sprint("revision ", i), a.routes(keys...))
		}
		require.Zero(t, time.Since(began))
		time.Sleep(timeout * 3)
		require.LessOrEqual(t, len(s.rendered), kept)
	})
}
