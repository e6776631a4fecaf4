package ingress

import (
	"fmt"
	"testing"
)

// crowded is a cluster with one small namespace and the namespace evil, which has
// more than all its limits allow.
func crowded() *world {
	w := goodWorld()
	for i := range 20 {
		service := fmt.Sprintf("s%d", i)
		w.addService(service, 200, 1000)
		ing := ingress(service)
		for j := range 5000 {
			ing.Spec.Rules = append(ing.Spec.Rules, rule(fmt.Sprintf("h%d.s%d.test", j, i), toPort(fmt.Sprintf("/%d", j), service, j%200+1)))
		}
		w.ingresses = append(w.ingresses, evil(ing))
	}
	return w
}

// BenchmarkCrowded is what one namespace adds to each render of all.
func BenchmarkCrowded(b *testing.B) {
	for name, w := range map[string]*world{"good alone": goodWorld(), "beside evil": crowded()} {
		b.Run(name, func(b *testing.B) {
			slots, cluster := &Slots{}, w.cluster()
			for b.Loop() {
				Build(cluster, slots)
			}
		})
	}
}
