package k8swatch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

var (
	endpointSlices = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	bySlice        = []string{"metadata.namespace", "metadata.labels['kubernetes.io/service-name']"}
)

// team is the namespace and the name of an Ingress and of its Service.
func team(i int) (namespace, name string) { return fmt.Sprint("team-", i%20), fmt.Sprint("web-", i) }

func endpointSlice(i, version int) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	ns, name := team(i)
	s.Namespace, s.Name = ns, name+"-x"
	s.Labels = map[string]string{"kubernetes.io/service-name": name}
	s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{fmt.Sprintf("10.0.0.%d", version%250)}}}
	return s
}

// BenchmarkEndpointChange is the part of a render that falls to the store: one
// EndpointSlice of 5,000 changes, a snapshot is taken, and all Ingresses are read
// with the slices of their services.
func BenchmarkEndpointChange(b *testing.B) {
	const n = 5000
	src := k8swatchtest.NewSource()
	for i := range n {
		ns, name := team(i)
		src.Apply(ingress(ns, name, "a.test"), endpointSlice(i, 0))
	}
	changed := make(chan struct{}, 1)
	var group = k8swatch.NewGroup(&k8swatch.GroupOptions{Debounce: -1, OnChange: func(context.Context, k8swatch.Changes) error {
		changed <- struct{}{}
		return nil
	}})
	byName := mustNew(b, src, ingresses, nil)
	byService := mustNew(b, src, endpointSlices, &k8swatch.Options{IndexBy: bySlice})
	if err := group.Add(byName, byService); err != nil {
		b.Fatal(err)
	}
	start(b, group)
	synced(b, group, 2*n)
	read := time.Duration(0)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		src.Apply(endpointSlice(i*7919%n, i+1))
		<-changed
		began := time.Now()
		all := group.Snapshot()
		slices := k8swatch.Read[*discoveryv1.EndpointSlice](all.Of(byService))
		found := 0
		for _, in := range k8swatch.Read[*networkingv1.Ingress](all.Of(byName)).List() {
			found += len(slices.Get(in.Namespace, in.Name))
		}
		if found != n {
			b.Fatalf("found %d of %d", found, n)
		}
		read += time.Since(began)
	}
	b.ReportMetric(float64(read.Microseconds())/float64(b.N), "read-µs")
}
