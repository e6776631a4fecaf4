package k8swatch_test

import (
	"context"
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// BenchmarkEvent is the way of one event from the stream of a watch to OnChange, with
// what that is told: the source sends it, the store takes it, a snapshot of the group is
// made. The group has as many Ingresses, Services and EndpointSlices as the name says.
// What it takes must not grow with them.
//
//	go test -run '^$' -bench 'Event/' -benchmem ./k8swatch
func BenchmarkEvent(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkEvent(b, n) })
	}
}

func benchmarkEvent(b *testing.B, n int) {
	src := k8swatchtest.NewSource()
	for i := range n {
		ns, name := team(i)
		src.Apply(ingress(ns, name, "a.test"), service(ns, name), endpointSlice(i, 0))
	}
	changed := make(chan k8swatch.Changes, 1)
	group := k8swatch.NewGroup(&k8swatch.GroupOptions{Debounce: -1, OnChange: func(_ context.Context, c k8swatch.Changes) error {
		changed <- c
		return nil
	}})
	for gvr, opts := range map[schema.GroupVersionResource]*k8swatch.Options{
		ingresses: {IgnoreFields: []string{"status"}}, services: {IgnoreFields: []string{"status"}}, endpointSlices: {IndexBy: bySlice},
	} {
		if err := group.Add(mustNew(b, src, gvr, opts)); err != nil {
			b.Fatal(err)
		}
	}
	start(b, group, 3*n)
	events := make([]*discoveryv1.EndpointSlice, 1<<10)
	for i := range events {
		events[i] = endpointSlice(i*7919%n, i+1)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		src.Apply(events[i%len(events)])
		if c := <-changed; len(c.Objects) != 1 || c.More != 0 {
			b.Fatalf("%d objects and %d more", len(c.Objects), c.More)
		}
	}
}
