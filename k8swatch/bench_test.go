package k8swatch

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/tools/cache"
)

// The figures of look-ups and updates, beside client-go's cache and a plain map
// with a lock, in one run:
//
//	go test -run '^$' -bench 'Get|Update' -benchmem ./k8swatch

// asked is how many different keys the benchmarks ask for in turn: so many that
// no branch is foreseen, so few that the plain map stays in the cache as well.
const asked = 1 << 10

// question is a key that a benchmark asks for, in the forms that the stores want.
type question struct{ namespace, name, service, composite string }

func questions(n int) []question {
	asks := make([]question, asked)
	for q := range asks {
		i := q * 7919 % n
		obj := bigSlice(i)
		asks[q] = question{obj.Namespace, obj.Name, serviceOf(i), obj.Namespace + "/" + serviceOf(i)}
	}
	return asks
}

type lockedMap[K comparable, V any] struct {
	mu sync.RWMutex
	m  map[K]V
}

func (l *lockedMap[K, V]) get(k K) V {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.m[k]
}

// sliceStore holds the endpoint slices by the given expressions.
func sliceStore(tb testing.TB, n int, indexBy ...string) *intake {
	in := testIntakeOf(tb, sliceResource, indexBy...)
	list := make([]any, n)
	for i := range list {
		list[i] = bigSlice(i)
	}
	_ = in.Replace(list, "")
	return in
}

const serviceName = "metadata.labels['kubernetes.io/service-name']"

func run(b *testing.B, name string, want int, get func(q *question) int) {
	asks := questions(size())
	for i := range asks {
		get(&asks[i]) // what is made at the first look-up
	}
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			if got := get(&asks[n&(asked-1)]); got != want {
				b.Fatalf("found %d, want %d", got, want)
			}
			n++
		}
	})
}

// BenchmarkGet looks endpoint slices up among 50,000, four per service.
func BenchmarkGet(b *testing.B) {
	type name struct{ namespace, name string }
	plain := lockedMap[name, *discoveryv1.EndpointSlice]{m: map[name]*discoveryv1.EndpointSlice{}}
	grouped := lockedMap[name, []*discoveryv1.EndpointSlice]{m: map[name][]*discoveryv1.EndpointSlice{}}
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"service": func(obj any) ([]string, error) {
		s := obj.(*discoveryv1.EndpointSlice)
		return []string{s.Namespace + "/" + s.Labels["kubernetes.io/service-name"]}, nil
	}})
	for i := range size() {
		s := bigSlice(i)
		plain.m[name{s.Namespace, s.Name}] = s
		service := name{s.Namespace, serviceOf(i)}
		grouped.m[service] = append(grouped.m[service], s)
		_ = indexer.Add(s)
	}
	read := func(indexBy ...string) Reader[*discoveryv1.EndpointSlice] {
		return Read[*discoveryv1.EndpointSlice](sliceStore(b, size(), indexBy...).now())
	}
	byName, byService, composite := read(), read("metadata.namespace", serviceName), read("metadata.namespace", serviceName, "metadata.name")

	one := func(ok bool) int {
		if ok {
			return 1
		}
		return 0
	}
	run(b, "exact/map", 1, func(q *question) int { return one(plain.get(name{q.namespace, q.name}) != nil) })
	run(b, "exact/client-go GetByKey", 1, func(q *question) int {
		_, ok, _ := indexer.GetByKey(q.namespace + "/" + q.name)
		return one(ok)
	})
	run(b, "exact/Get", 1, func(q *question) int { return len(byName.Get(q.namespace, q.name)) })
	run(b, "exact/GetSingle", 1, func(q *question) int { return one(byName.GetSingle(q.namespace, q.name) != nil) })
	run(b, "exact/3 keys", 1, func(q *question) int { return len(composite.Get(q.namespace, q.service, q.name)) })
	run(b, "exact/Snapshot.Get", 1, func(q *question) int { return len(byName.s.Get(q.namespace, q.name)) })
	run(b, "exact/ByName", 1, func(q *question) int { return one(byName.s.ByName(q.namespace, q.name) != nil) })
	run(b, "four/map", 4, func(q *question) int { return len(grouped.get(name{q.namespace, q.service})) })
	run(b, "four/client-go ByIndex", 4, func(q *question) int {
		objs, _ := indexer.ByIndex("service", q.composite)
		return len(objs)
	})
	run(b, "four/Get", 4, func(q *question) int { return len(byService.Get(q.namespace, q.service)) })
	run(b, "prefix/Get", 4, func(q *question) int { return len(composite.Get(q.namespace, q.service)) })
}

// BenchmarkUpdate changes one object of 50,000 and takes a snapshot each time.
func BenchmarkUpdate(b *testing.B) {
	update := func(name string, in *intake, obj func(i int) Object) {
		b.Run(name, func(b *testing.B) {
			list := make([]any, size())
			for i := range list {
				list[i] = obj(i)
			}
			_ = in.Replace(list, "")
			next := make([]Object, asked)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n%asked == 0 {
					b.StopTimer()
					for i := range next {
						next[i] = obj((n + i) * 7919 % size())
						next[i].SetResourceVersion(fmt.Sprint(2*size() + n + i))
					}
					runtime.GC() // of what it took to make them
					b.StartTimer()
				}
				_ = in.Update(next[n%asked])
				in.store.Snapshot()
				n++
			}
		})
	}
	update("slices by service", testIntakeOf(b, sliceResource, "metadata.namespace", serviceName), func(i int) Object { return bigSlice(i) })
	update("ingresses by name", testIntakeOf(b, ingressResource), func(i int) Object { return bigIngress(i) })
	update("ingresses by host", testIntakeOf(b, ingressResource, "metadata.namespace", "spec.rules[*].host"), func(i int) Object { return bigIngress(i) })
	update("custom resources", testIntakeOf(b, routeResource), func(i int) Object { return bigRoute(i) })
}

// BenchmarkMemory reports the steady heap of 50,000 objects, with everything
// that the store keeps beside them:
//
//	go test -run '^$' -bench Memory -benchtime 1x ./k8swatch
func BenchmarkMemory(b *testing.B) {
	fill := func(in *intake, obj func(i int) any) func() any {
		return func() any {
			list := make([]any, size())
			transform := in.Transformer()
			for i := range list {
				list[i], _ = transform(obj(i))
			}
			_ = in.Replace(list, "")
			return in
		}
	}
	typed := func(i int) any { return decodedIngress(b, i) }
	slices := func(i int) any { return decodedSlice(b, i) }
	route := func(i int) any { return bigRoute(i) }
	raw := func(obj func(i int) any) func() any {
		return func() any {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			for i := range size() {
				_ = store.Add(obj(i))
			}
			return store
		}
	}
	for _, bm := range []struct {
		name string
		make func() any
	}{
		{"ingresses", fill(testIntakeOf(b, ingressResource), typed)},
		{"ingresses by host", fill(testIntakeOf(b, ingressResource, "metadata.namespace", "spec.rules[*].host"), typed)},
		{"ingresses/client-go", raw(typed)},
		{"slices", fill(testIntakeOf(b, sliceResource, "metadata.namespace", serviceName), slices)},
		{"slices/client-go", raw(slices)},
		{"custom resources", fill(testIntakeOf(b, routeResource), route)},
		{"custom resources/client-go", raw(route)},
	} {
		b.Run(bm.name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				kept := bm.make()
				used := heap() - before
				runtime.KeepAlive(kept)
				b.ReportMetric(float64(used)/(1<<20), "MiB")
				b.ReportMetric(float64(used)/float64(size()), "B/object")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the second one frees what has a finalizer or was kept weakly
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// decodedIngress is an object as it comes from the wire: strings of its own.
func decodedIngress(t testing.TB, i int) *networkingv1.Ingress {
	t.Helper()
	data, err := bigIngress(i).Marshal()
	require.NoError(t, err)
	obj := &networkingv1.Ingress{}
	require.NoError(t, obj.Unmarshal(data))
	return obj
}

func decodedSlice(t testing.TB, i int) *discoveryv1.EndpointSlice {
	t.Helper()
	data, err := bigSlice(i).Marshal()
	require.NoError(t, err)
	obj := &discoveryv1.EndpointSlice{}
	require.NoError(t, obj.Unmarshal(data))
	return obj
}
