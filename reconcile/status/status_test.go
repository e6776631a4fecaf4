package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/hapticsdk/haptic/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	gateways = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"}
	routes   = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}
)

// api is an API server as far as statuses go.
type api struct {
	mu      sync.Mutex
	all     map[string]*unstructured.Unstructured // by resource/namespace/name
	version int
	lists   int // without those of single objects
	reads   int // of single objects
	patched []string
	fail    func(ctx context.Context, verb, key string) error
	wrote   func(*unstructured.Unstructured) // after each write; may be nil
}

func newAPI() *api { return &api{all: map[string]*unstructured.Unstructured{}} }

func (a *api) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return client{api: a, resource: gvr}
}

type client struct {
	dynamic.NamespaceableResourceInterface // nil: what is not here is not called
	api                                    *api
	resource                               schema.GroupVersionResource
	namespace                              string
}

func (c client) Namespace(namespace string) dynamic.ResourceInterface {
	c.namespace = namespace
	return c
}

func (c client) failing(ctx context.Context, verb, key string) error {
	c.api.mu.Lock()
	fail := c.api.fail
	c.api.mu.Unlock()
	if fail == nil {
		return nil
	}
	return fail(ctx, verb, key)
}

func (c client) List(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	name, single := strings.CutPrefix(opts.FieldSelector, "metadata.name=")
	prefix := c.resource.Resource + "/"
	if c.namespace != "" {
		prefix += c.namespace + "/"
	}
	if err := c.failing(ctx, "list", prefix+name); err != nil {
		return nil, err
	}
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	if single {
		c.api.reads++
	} else {
		c.api.lists++
	}
	list := &unstructured.UnstructuredList{}
	for key, u := range c.api.all {
		if strings.HasPrefix(key, prefix) && (!single || u.GetName() == name) {
			list.Items = append(list.Items, *u.DeepCopy())
		}
	}
	return list, nil
}

func (c client) Patch(
	ctx context.Context, name string, kind types.PatchType, patch []byte, _ metav1.PatchOptions, sub ...string,
) (*unstructured.Unstructured, error) {
	key := c.resource.Resource + "/" + c.namespace + "/" + name
	if err := c.failing(ctx, "patch", key); err != nil {
		return nil, err
	}
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	c.api.patched = append(c.api.patched, strings.TrimPrefix(key, "gateways/"))
	u := c.api.all[key]
	if u == nil || kind != types.MergePatchType || !slices.Equal(sub, []string{"status"}) {
		return nil, apierrors.NewNotFound(c.resource.GroupResource(), name)
	}
	var change struct {
		Metadata struct {
			UID             types.UID
			ResourceVersion string
		}
		Status map[string]any
	}
	if err := json.Unmarshal(patch, &change); err != nil {
		return nil, err
	}
	if change.Metadata.UID != u.GetUID() || change.Metadata.ResourceVersion != u.GetResourceVersion() {
		return nil, apierrors.NewConflict(c.resource.GroupResource(), name, errors.New("another object"))
	}
	status, _ := u.Object["status"].(map[string]any)
	u.Object["status"] = patched(status, change.Status)
	c.api.touch(u)
	if c.api.wrote != nil {
		c.api.wrote(u.DeepCopy())
	}
	return u.DeepCopy(), nil
}

// patched applies a merge patch.
func patched(to, patch map[string]any) map[string]any {
	if to == nil {
		to = map[string]any{}
	}
	for key, value := range patch {
		switch inner, isMap := value.(map[string]any); {
		case value == nil:
			delete(to, key)
		case isMap:
			was, _ := to[key].(map[string]any)
			to[key] = patched(was, inner)
		default:
			to[key] = value
		}
	}
	return to
}

// touch gives an object its next version.
func (a *api) touch(u *unstructured.Unstructured) {
	a.version++
	u.SetResourceVersion(fmt.Sprint(a.version))
}

// put makes Gateways.
func (a *api) put(keys ...string) {
	for _, key := range keys {
		a.putAs("uid of "+key, "gateways/"+key)
	}
}

func (a *api) putAs(uid, key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	parts := strings.Split(key, "/")
	u.SetNamespace(parts[1])
	u.SetName(parts[2])
	u.SetUID(types.UID(uid))
	a.touch(u)
	a.all[key] = u
}

// by is another client, which sets the addresses of a Gateway.
func (a *api) by(key string, addresses ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.all["gateways/"+key]
	u.Object["status"] = map[string]any{"addresses": listOf(addresses), "conditions": []any{"theirs"}}
	a.touch(u)
}

func listOf(all []string) []any {
	list := make([]any, len(all))
	for i, one := range all {
		list[i] = one
	}
	return list
}

// addresses of a Gateway, as text.
func (a *api) addresses(key string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	list, _, _ := unstructured.NestedStringSlice(a.all["gateways/"+key].Object, "status", "addresses")
	return strings.Join(list, " ")
}

// status of an object.
func (a *api) status(key string) map[string]any {
	a.mu.Lock()
	defer a.mu.Unlock()
	status, _ := a.all[key].DeepCopy().Object["status"].(map[string]any)
	return status
}

// failing makes requests fail; nil: none.
func (a *api) failing(fail func(ctx context.Context, verb, key string) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fail = fail
}

// counts returns the lists, and the reads of single objects, since the last call.
func (a *api) counts() (lists, reads int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	lists, reads = a.lists, a.reads
	a.lists, a.reads = 0, 0
	return lists, reads
}

// idle reports whether there was no request.
func (a *api) idle() bool {
	lists, reads := a.counts()
	return lists+reads+len(a.patches()) == 0
}

// patches are the writes since the last call.
func (a *api) patches() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	patched := a.patched
	a.patched = nil
	return patched
}

// items give Gateways addresses; nil: their status stays.
func items(addresses []string, keys ...string) []Item {
	all := make([]Item, len(keys))
	for i, key := range keys {
		namespace, name, _ := strings.Cut(key, "/")
		all[i] = Item{Resource: gateways, Namespace: namespace, Name: name, UID: types.UID("uid of " + key)}
		if addresses != nil {
			all[i].Status = map[string]any{"addresses": addresses}
		}
	}
	return all
}

// unserved are items that the revision does not serve.
func unserved(all []Item) []Item {
	for i := range all {
		all[i].Unserved = true
	}
	return all
}

// runs is a writer that runs until the test ends, inside of a bubble.
type runs struct {
	*Writer
	term atomic.Uint64
}

func start(t *testing.T, a *api, edit ...func(*Options)) *runs {
	r := &runs{}
	r.term.Store(1)
	opts := Options{Client: a, Term: r.term.Load}
	for _, f := range edit {
		f(&opts)
	}
	var err error
	r.Writer, err = New(opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = r.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return r
}

// made is a render with some items. The result says that an instance has it.
func (r *runs) made(some ...[]Item) (deployed func()) {
	rendered := &reconcile.Rendered{}
	r.follow(rendered, slices.Values(slices.Concat(some...)))
	return func() { rendered.Deployed(r.term.Load()) }
}

func (r *runs) deploy(some ...[]Item) { r.made(some...)() }

var (
	ours = []string{"192.0.2.1", "lb.example.com"}
	both = strings.Join(ours, " ")
)

const soon = 5 * time.Second

// settle waits until all that can happen in some time has happened.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// TestStatus: an object gets its status once it is deployed, keeps it while it is ours, and
// loses it when it is another controller's. Only differences are written.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		s := start(t, a)
		a.put("shop/web", "shop/api", "shop/same")
		a.by("shop/same", ours...)
		deployed := s.made(items(ours, "shop/web", "shop/same"), unserved(items(ours, "shop/api")))
		time.Sleep(time.Hour)
		require.True(t, a.idle(), "it is not deployed")
		deployed()
		time.Sleep(soon)
		require.Equal(t, []string{"shop/web"}, a.patches(), "the other has them, and the third is not served")
		require.Equal(t, both, a.addresses("shop/web"))

		s.deploy(items(ours, "shop/web", "shop/same", "shop/api"))
		time.Sleep(soon)
		require.Equal(t, []string{"shop/api"}, a.patches())
		s.deploy(items(ours, "shop/same"), unserved(items(ours, "shop/web", "shop/api")))
		time.Sleep(soon)
		require.Empty(t, a.patches(), "they are ours")
		s.deploy(items(ours[:1], "shop/same"), unserved(items(ours[:1], "shop/web", "shop/api")))
		time.Sleep(soon)
		require.Len(t, a.patches(), 3, "all have a new address, served or not")

		a.by("shop/api", "203.0.113.9") // by its new controller
		a.mu.Lock()
		delete(a.all, "gateways/shop/same")
		a.mu.Unlock()
		s.deploy()
		time.Sleep(soon)
		require.Equal(t, []string{"shop/web"}, a.patches())
		require.Empty(t, a.addresses("shop/web"))
		require.Equal(t, "203.0.113.9", a.addresses("shop/api"))
		time.Sleep(time.Hour)
		require.Empty(t, a.patches())
		require.NoError(t, s.Check())
		lists, _ := a.counts()
		require.Zero(t, lists, "a few objects are read by name")
	})
}

// TestOtherFieldsStay: the writer changes only the fields of an item.
func TestOtherFieldsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		s := start(t, a)
		a.put("shop/web")
		a.by("shop/web", "203.0.113.9")
		s.deploy(items(ours, "shop/web"))
		time.Sleep(soon)
		require.Equal(t, map[string]any{"addresses": listOf(ours), "conditions": []any{"theirs"}}, a.status("gateways/shop/web"))
		s.deploy()
		time.Sleep(soon)
		require.Equal(t, map[string]any{"conditions": []any{"theirs"}}, a.status("gateways/shop/web"))
	})
}

// TestMerge: a Merge of the program shares a list with other controllers. Its panic is told,
// and holds up no other object.
func TestMerge(t *testing.T) {
	type parents []any
	without := func(list parents) (rest parents) {
		for _, one := range list {
			if one.(map[string]any)["controllerName"] != "ours" {
				rest = append(rest, one)
			}
		}
		return rest
	}
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		s := start(t, a, func(o *Options) {
			o.Merge = func(item Item, has, was, want map[string]any) map[string]any {
				if item.Name == "bad" {
					panic("no such parent")
				}
				list, _ := has["parents"].([]any)
				mine, _ := want["parents"].([]any)
				return map[string]any{"parents": append(without(list), mine...)}
			}
		})
		theirs := map[string]any{"controllerName": "theirs"}
		mine := map[string]any{"controllerName": "ours"}
		a.putAs("1", "httproutes/shop/web")
		a.putAs("2", "httproutes/shop/bad")
		a.all["httproutes/shop/web"].Object["status"] = map[string]any{"parents": []any{theirs}}
		status := map[string]any{"parents": []any{mine}}
		route := Item{Resource: routes, Namespace: "shop", Name: "web", UID: "1", Status: status}
		bad := Item{Resource: routes, Namespace: "shop", Name: "bad", UID: "2", Status: status}
		s.deploy([]Item{bad, route})
		time.Sleep(soon)
		has := func() any { return a.status("httproutes/shop/web")["parents"] }
		require.Equal(t, []any{theirs, mine}, has())
		require.ErrorContains(t, s.Check(), "httproutes/status: httproutes shop/bad: panic: no such parent")
		s.deploy(nil)
		time.Sleep(soon)
		require.Equal(t, []any{theirs}, has())
	})
}

// TestItemsPanic: a panic of the program is told, and the next items are written.
func TestItemsPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		s := start(t, a)
		a.put("shop/web")
		rendered := &reconcile.Rendered{}
		s.follow(rendered, func(func(Item) bool) { panic("no items") })
		rendered.Deployed(1)
		time.Sleep(soon)
		require.ErrorContains(t, s.Check(), "status: the items of the deployed revision: panic: no items")
		s.deploy(items(ours, "shop/web"))
		time.Sleep(soon)
		require.NoError(t, s.Check())
		require.Equal(t, both, a.addresses("shop/web"))
		s.deploy([]Item{{Resource: gateways, Namespace: "shop", Name: "web", UID: "uid of shop/web", Status: 7}})
		time.Sleep(soon)
		require.ErrorContains(t, s.Check(), "a status must be a JSON object, and this one is a int")
	})
}

// TestStatusIsPutRight: what others wrote is found within the time after which all are
// read again.
func TestStatusIsPutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		s := start(t, a)
		a.put("shop/web")
		s.deploy(items(ours, "shop/web"))
		time.Sleep(soon)
		a.by("shop/web") // as a controller does that ends
		time.Sleep(reread + soon)
		require.Equal(t, both, a.addresses("shop/web"))
	})
}

// TestStatusByTheLeader: a process that does not lead writes nothing, and one that begins
// to lead only what it deployed itself.
func TestStatusByTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		s := start(t, a)
		a.put("shop/web", "shop/api")
		s.term.Store(0)
		deployed := s.made(items(ours, "shop/web"))
		time.Sleep(time.Minute)
		s.term.Store(2)
		s.Refresh()
		time.Sleep(time.Minute)
		require.True(t, a.idle(), "it deployed nothing in this term")
		deployed()
		time.Sleep(soon)
		require.Equal(t, []string{"shop/web"}, a.patches())
		s.term.Store(0)
		late := s.made(items(ours, "shop/web", "shop/api"))
		late()
		time.Sleep(time.Hour)
		require.Empty(t, a.patches())
		s.term.Store(3)
		s.has(revision{number: 9, items: slices.Values(items(ours, "shop/api")), term: 2}) // its deployment outlived the term
		time.Sleep(time.Hour)
		require.Empty(t, a.patches())
	})
}

// TestStatusOfSlowInstances: what one HAProxy has late does not take back what another has,
// and an address that another controller wrote is never taken away.
func TestStatusOfSlowInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		s := start(t, a)
		a.put("shop/web", "shop/api")
		first, second := s.made(items(ours, "shop/web")), s.made(items(ours, "shop/web", "shop/api"))
		second()
		first()
		time.Sleep(soon)
		require.Equal(t, []string{"shop/api", "shop/web"}, a.patches())
		require.Equal(t, both, a.addresses("shop/api"))

		a.by("shop/web", "203.0.113.9")
		s.deploy(items(ours, "shop/api"))
		time.Sleep(3 * reread)
		require.Equal(t, "203.0.113.9", a.addresses("shop/web"))
	})
}

// TestStatusWithoutRights: what is wrong is told by its verb, and done once it may be.
func TestStatusWithoutRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		s := start(t, a)
		var tries atomic.Int64
		var allowed atomic.Bool
		a.failing(func(_ context.Context, verb, name string) error {
			if verb == "list" || allowed.Load() {
				return nil
			}
			tries.Add(1)
			return apierrors.NewForbidden(gateways.GroupResource(), name, errors.New("no rule"))
		})
		var keys []string
		for i := range 300 {
			keys = append(keys, fmt.Sprintf("shop/%d", i))
		}
		a.put(keys...)
		s.deploy(items(ours, keys...))
		time.Sleep(10 * time.Minute)
		require.ErrorContains(t, s.Check(), `the account needs the verb patch on gateways/status of "gateway.networking.k8s.io"`)
		require.Less(t, tries.Load(), int64(25), "each try is one request, and they become rare")
		allowed.Store(true)
		time.Sleep(2 * time.Minute)
		require.Len(t, a.patches(), 300)
		require.NoError(t, s.Check())
	})
}

// TestStatusRefusedToSome: a namespace without the right, an object whose change a webhook
// refuses, a resource that cannot be listed, and more that fail than are tried at once hold
// up none of the others.
func TestStatusRefusedToSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		s := start(t, a)
		var tries atomic.Int64
		var mended atomic.Bool
		a.failing(func(_ context.Context, verb, key string) error {
			name, isGateway := strings.CutPrefix(key, "gateways/")
			switch {
			case mended.Load(), isGateway && verb == "list":
				return nil
			case !isGateway:
				return apierrors.NewForbidden(routes.GroupResource(), key, errors.New("no rule"))
			}
			tries.Add(1)
			switch {
			case strings.HasPrefix(name, "denied"):
				return apierrors.NewForbidden(gateways.GroupResource(), name, errors.New("no rule"))
			case name == "shop/0":
				return apierrors.NewForbidden(gateways.GroupResource(), name, errors.New("admission webhook denied the request"))
			case strings.HasPrefix(name, "shop/odd"):
				return apierrors.NewInternalError(errors.New("a webhook does not answer"))
			}
			return nil
		})
		keys := []string{"shop/0", "shop/1", "shop/web", "tail/web"}
		for i := range 30 {
			keys = append(keys, fmt.Sprintf("denied-%d/0", i), fmt.Sprintf("denied-%d/1", i))
		}
		for i := range 2 * batch {
			keys = append(keys, fmt.Sprintf("shop/odd-%d", i))
		}
		a.put(keys...)
		var unlisted []Item
		for i := range 2 * batch {
			unlisted = append(unlisted, Item{Resource: routes, Namespace: "shop", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)), Status: struct{}{}})
		}
		s.deploy(unlisted, items(ours, keys...))
		time.Sleep(10 * time.Minute)
		for _, key := range []string{"shop/1", "shop/web", "tail/web"} {
			require.Equal(t, both, a.addresses(key), key)
		}
		require.Error(t, s.Check())
		require.Less(t, tries.Load(), int64(25*batch), "they become rare")
		mended.Store(true)
		time.Sleep(2 * maxPause)
		for _, key := range keys {
			require.Equal(t, both, a.addresses(key), key)
		}
		require.NoError(t, s.Check())
	})
}

// TestStatusOfTwoControllers: an object that goes from one controller to the other and back
// has the addresses of the one that serves it, and neither takes away the other's.
func TestStatusOfTwoControllers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		s, other := start(t, a), start(t, a)
		theirs := []string{"other.example.com"}
		a.put("shop/web")
		for i := range 6 {
			mine, its, want := items(ours, "shop/web"), []Item(nil), both
			if i%2 == 1 {
				mine, its, want = nil, items(theirs, "shop/web"), theirs[0]
			}
			first, second := func() { s.deploy(mine) }, func() { other.deploy(its) }
			if i%3 != 0 { // either may be first
				first, second = second, first
			}
			first()
			time.Sleep(soon)
			second()
			time.Sleep(soon)
			require.Equal(t, want, a.addresses("shop/web"), i)
			a.patches()
			time.Sleep(3 * reread)
			require.Empty(t, a.patches(), "they do not fight")
		}
	})
}

// TestStatusConflicts: a change by another client between the read and the write is no
// error. An object that was made anew is another one, and those that are gone are no error.
func TestStatusConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		s := start(t, a)
		a.put("shop/web", "shop/gone", "shop/odd", "shop/busy")
		busy := false
		a.failing(func(_ context.Context, verb, key string) error {
			if verb != "patch" {
				return nil
			}
			switch name := strings.TrimPrefix(key, "gateways/"); name {
			case "shop/gone":
				a.mu.Lock()
				delete(a.all, key)
				a.mu.Unlock()
			case "shop/web":
				a.putAs("new", key)
			case "shop/odd":
				return apierrors.NewInternalError(errors.New("a webhook says no"))
			case "shop/busy":
				if !busy {
					busy = true
					a.by(name, "192.0.2.99")
				}
			}
			return nil
		})
		s.deploy(items(ours, "shop/web", "shop/gone", "shop/odd", "shop/busy"))
		time.Sleep(time.Minute)
		require.Equal(t, both, a.addresses("shop/busy"))
		require.Empty(t, a.addresses("shop/web"), "no HAProxy has the new one")
		require.ErrorContains(t, s.Check(), "gateways shop/odd")
		require.NotContains(t, s.Check().Error(), "gone")
		a.failing(nil)
		again := items(ours, "shop/web", "shop/odd", "shop/busy")
		again[0].UID = "new"
		s.deploy(again)
		time.Sleep(time.Minute)
		require.Equal(t, both, a.addresses("shop/web"))
		require.NoError(t, s.Check())
	})
}

// TestStatusOfMany: ten thousand objects of one namespace do not delay those of others, nor
// the loop, and the rate is bounded. So it is while the API server hangs. Objects that have
// their status cost one list.
func TestStatusOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		s := start(t, a)
		var keys []string
		for i := range 10_000 {
			keys = append(keys, fmt.Sprintf("evil/%05d", i))
		}
		keys = append(keys, "shop/web")
		a.put(append(keys, "late/web")...)
		s.deploy(items(ours, keys...))
		time.Sleep(4 * time.Second)
		require.NotEmpty(t, a.addresses("shop/web"))
		s.deploy(items(ours, append(keys, "late/web")...))
		time.Sleep(10 * time.Second)
		require.NotEmpty(t, a.addresses("late/web"))
		require.LessOrEqual(t, len(a.patches()), 15*rate)
		time.Sleep(reread)
		require.NotEmpty(t, a.addresses("evil/09999"))
		a.patches()
		a.counts()
		time.Sleep(reread)
		lists, reads := a.counts()
		require.Equal(t, 1, lists)
		require.Zero(t, reads+len(a.patches()))

		a.failing(func(ctx context.Context, _, _ string) error { <-ctx.Done(); return ctx.Err() })
		began := time.Now()
		for range 100 {
			s.deploy(items(ours[:1], keys...))
		}
		require.Zero(t, time.Since(began))
		time.Sleep(timeout * 3)
	})
}

// TestNamespaces: a writer for some namespaces lists these.
func TestNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		s := start(t, a, func(o *Options) { o.Namespaces = []string{"shop", "blog"} })
		a.failing(func(_ context.Context, _, key string) error {
			if key == "gateways/" {
				return apierrors.NewForbidden(gateways.GroupResource(), "", errors.New("no rule"))
			}
			return nil
		})
		var keys []string
		for i := range batch {
			keys = append(keys, fmt.Sprintf("shop/%d", i), fmt.Sprintf("blog/%d", i))
		}
		a.put(keys...)
		s.deploy(items(ours, keys...))
		time.Sleep(time.Minute)
		require.NoError(t, s.Check())
		require.Len(t, a.patches(), len(keys))
		lists, _ := a.counts()
		require.Equal(t, 2, lists)
	})
}
