package k8swatch

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/tools/cache"
)

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
