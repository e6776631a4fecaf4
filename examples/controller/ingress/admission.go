package ingress

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// byAge puts the older Ingress first, then the first by name.
func byAge(x, y *networkingv1.Ingress) int {
	if x == y {
		return 0
	}
	return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time),
		cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
}

// size is what an Ingress takes of its namespace.
type size struct{ paths, bytes int }

func sizeOf(ing *networkingv1.Ingress) size {
	all := measure{paths: math.MaxInt, bytes: math.MaxInt}
	all.cut(ing)
	return size{all.taken, all.size}
}

// room is what is left of a namespace for each of its Ingresses, in the order of their age.
type room struct {
	left map[Name]size
	full string // what the Ingresses without room are told
}

func (r *room) equal(other *room) bool {
	return r.full == other.full && maps.Equal(r.left, other.left)
}

// deriveRoom adds up what the Ingresses of each namespace take.
func (m *Model) deriveRoom(ours *derive.Collection[Name, *networkingv1.Ingress]) {
	l := &m.Limits
	m.pathsOfSpace = derive.Sum("paths of a namespace", ours,
		func(n Name, ing *networkingv1.Ingress, add func(string, int)) { add(n.Namespace, sizeOf(ing).paths) })
	m.bytesOfSpace = derive.Sum("bytes of a namespace", ours,
		func(n Name, ing *networkingv1.Ingress, add func(string, int)) { add(n.Namespace, sizeOf(ing).bytes) })
	m.pathQuota = limits.NewQuota("paths", m.pathsOfSpace, limits.Bound{Name: "paths", Namespace: l.PathsPerNamespace, All: l.PathsOfAll})
	m.byteQuota = limits.NewQuota("bytes", m.bytesOfSpace, limits.Bound{Name: "map-bytes", Namespace: l.MapBytesPerNamespace, All: l.MapBytesOfAll})
}

// rooms shares a namespace that has more paths, or more bytes of them, than it may.
func (m *Model) rooms(at *derive.Reads, namespace string, all derive.Ordered[*networkingv1.Ingress], _ *room) (*room, bool) {
	paths, _ := m.pathsOfSpace.Get(at, namespace)
	bytes, _ := m.bytesOfSpace.Get(at, namespace)
	left := size{m.pathQuota.Most(at, namespace), m.byteQuota.Most(at, namespace)}
	if paths <= left.paths && bytes <= left.bytes {
		return nil, false
	}
	r := &room{left: map[Name]size{}}
	for ing := range all.All() {
		r.left[nameOf(ing)] = left
		part := measure{paths: min(m.Limits.PathsPerIngress, left.paths), bytes: left.bytes}
		if cut, _ := part.cut(ing); cut != nil && part.taken < m.Limits.PathsPerIngress {
			r.full = m.fullSpace(at, namespace, part.taken == part.paths)
			break
		}
		left = size{left.paths - part.taken, left.bytes - part.size}
	}
	return r, true
}

// admit cuts an Ingress to the limits. The oldest of a namespace go first.
func (m *Model) admit(at *derive.Reads, name Name, ing, was *networkingv1.Ingress) (*networkingv1.Ingress, bool) {
	l := &m.Limits
	most := measure{paths: l.PathsPerIngress, bytes: math.MaxInt}
	space, crowded := m.room.Get(at, name.Namespace)
	if crowded {
		left, ok := space.left[name]
		if !ok {
			refuse(at, ing, fieldPath{-1, -1, -1, ""}, space.full+": it is not served")
			return nil, false
		}
		most = measure{paths: min(l.PathsPerIngress, left.paths), bytes: left.bytes}
	}
	part, end := most.cut(ing)
	switch {
	case part == nil:
		return ing, true
	case most.taken == l.PathsPerIngress:
		refuse(
			at,
			ing,
			end,
			fmt.Sprintf("the Ingress has %s paths and TLS hosts, more than the %s of one Ingress (paths-per-ingress): the first %[2]s are served",
				figure(sizeOf(ing).paths), figure(l.PathsPerIngress)),
		)
	default:
		refuse(at, ing, end, m.fullSpace(at, name.Namespace, most.taken == most.paths)+": this and what follows is not served")
	}
	if reflect.DeepEqual(was, part) { // a part that is the same keeps its pointer
		return was, true
	}
	return part, true
}

// fullSpace says which limit of a namespace is reached: that of paths, or that of bytes.
func (m *Model) fullSpace(at *derive.Reads, namespace string, ofPaths bool) string {
	if ofPaths {
		return "namespace " + namespace + " has " + m.pathQuota.Over(at, namespace, "paths and TLS hosts")
	}
	return "hosts and paths of namespace " + namespace + " have " + m.byteQuota.Over(at, namespace, "bytes")
}

// measure counts the paths, empty rules and TLS hosts of an Ingress, and their bytes,
// up to a bound.
type measure struct{ paths, bytes, taken, size int }

func (m *measure) take(bytes int) bool {
	if m.taken == m.paths || m.size+bytes > m.bytes {
		return false
	}
	m.taken, m.size = m.taken+1, m.size+bytes
	return true
}

// cut returns the part of an Ingress within the bound, and where the rest begins; nil
// if all of it is within the bound.
func (m *measure) cut(ing *networkingv1.Ingress) (part *networkingv1.Ingress, rest fieldPath) {
	shorter := func() *networkingv1.Ingress { copied := *ing; return &copied }
	for i := range ing.Spec.TLS {
		hosts := ing.Spec.TLS[i].Hosts
		for j := range max(1, len(hosts)) {
			if len(hosts) == 0 && m.take(0) || len(hosts) > 0 && m.take(len(hosts[j])) {
				continue
			}
			part = shorter()
			part.Spec.TLS, part.Spec.Rules = slices.Clone(ing.Spec.TLS[:i]), nil
			if j > 0 {
				part.Spec.TLS = append(part.Spec.TLS, networkingv1.IngressTLS{SecretName: ing.Spec.TLS[i].SecretName, Hosts: hosts[:j]})
			}
			return part, fieldPath{i, -1, -1, ".hosts"}
		}
	}
	for i := range ing.Spec.Rules {
		host := ing.Spec.Rules[i].Host
		var paths []networkingv1.HTTPIngressPath
		if http := ing.Spec.Rules[i].HTTP; http != nil {
			paths = http.Paths
		}
		for j := range max(1, len(paths)) {
			if len(paths) == 0 && m.take(len(host)) || len(paths) > 0 && m.take(len(host)+len(paths[j].Path)) {
				continue
			}
			part = shorter()
			part.Spec.Rules = slices.Clone(ing.Spec.Rules[:i])
			if j > 0 {
				part.Spec.Rules = append(part.Spec.Rules, networkingv1.IngressRule{Host: host,
					IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: paths[:j]}}})
			}
			return part, fieldPath{-1, i, j, ""}
		}
	}
	return nil, fieldPath{}
}
