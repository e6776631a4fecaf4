package ingress

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/examples/controller/annotation"
)

// Limits bound what the resources of one namespace can add to a configuration, so that
// it exhausts neither HAProxy nor the controller. Zero means the default of
// [LimitsUsage]. Build refuses by name what exceeds a limit. The first ones are served,
// and no other namespace suffers.
type Limits struct {
	// ServersPerBackend bounds the endpoints of a Service that serve. Those that
	// already serve stay. A server takes 5.5 KB in HAProxy.
	ServersPerBackend int
	// ServersPerNamespace bounds endpoints times ports: 20,000 take 110 MB in HAProxy.
	ServersPerNamespace int
	// PortsPerService bounds the usable ports of a Service: the first of its list.
	PortsPerService int
	// BackendsPerNamespace bounds the ports of Services that Ingresses name. A backend
	// takes 10 KB in HAProxy.
	BackendsPerNamespace int
	// PathsPerIngress bounds the paths of an Ingress. A rule without paths counts as
	// one, and so does a TLS host.
	PathsPerIngress int
	// PathsPerNamespace bounds the same for all Ingresses together. A full build reads
	// all of them; most changes read one. An Ingress with a TLS host counts for two.
	PathsPerNamespace int
	// MapBytesPerNamespace bounds hosts and paths in bytes. Each render that changes a
	// map prints it whole, and HAProxy holds it twice.
	MapBytesPerNamespace int
	// HostsPerSecret bounds the TLS hosts that use one certificate. They share a line,
	// which must also fit into a runtime command: 12,000 bytes.
	HostsPerSecret int
	// SecretsPerNamespace bounds certificates: each takes 30 KB in HAProxy.
	SecretsPerNamespace int
	// CertificatesPerSecret bounds a chain: each handshake sends it whole.
	CertificatesPerSecret int
	// PatternsPerNamespace bounds paths that are regular expressions. HAProxy tries all
	// of them for requests without an exact path, 1,000 in 0.1 ms.
	PatternsPerNamespace int
	// CanariesPerNamespace bounds paths with a canary. Each takes up to four rules,
	// which HAProxy tries for each request.
	CanariesPerNamespace int
	// UserMillisecondsPerNamespace bounds the time that HAProxy takes to read users
	// with passwords: it computes the hash of each at each start and reload.
	UserMillisecondsPerNamespace int
	// OptionBytesPerNamespace bounds the texts of annotations in bytes, times the
	// backends that they are printed for: each start and reload reads them.
	OptionBytesPerNamespace int
	// RateAddressesPerNamespace bounds the addresses that rates of annotations count, for
	// each backend with rates. An address takes 208 bytes in HAProxy while it is counted.
	RateAddressesPerNamespace int
}

// limit is a row of the table of limits.
type limit struct {
	name  string
	value *int
	usual int
	what  string
}

func (l *Limits) table() []limit {
	return []limit{
		{"servers-per-backend", &l.ServersPerBackend, 1000, "endpoints of a Service that serve"},
		{"servers-per-namespace", &l.ServersPerNamespace, 20_000, "endpoints times ports"},
		{"ports-per-service", &l.PortsPerService, 100, "ports of a Service that can be used"},
		{"backends-per-namespace", &l.BackendsPerNamespace, 12_000, "ports of Services that Ingresses name"},
		{"paths-per-ingress", &l.PathsPerIngress, 1000, "paths, empty rules and TLS hosts of an Ingress"},
		{"paths-per-namespace", &l.PathsPerNamespace, 24_000, "the same of all Ingresses"},
		{"map-bytes-per-namespace", &l.MapBytesPerNamespace, 4 << 20, "hosts and paths together"},
		{"hosts-per-secret", &l.HostsPerSecret, 500, "TLS hosts that use one certificate"},
		{"secrets-per-namespace", &l.SecretsPerNamespace, 2000, "certificates that Ingresses name"},
		{"certificates-per-secret", &l.CertificatesPerSecret, 10, "length of a chain"},
		{"patterns-per-namespace", &l.PatternsPerNamespace, 500, "paths that are regular expressions"},
		{"canaries-per-namespace", &l.CanariesPerNamespace, 100, "paths with a canary"},
		{"user-milliseconds-per-namespace", &l.UserMillisecondsPerNamespace, 2000, "time to read users with passwords"},
		{"option-bytes-per-namespace", &l.OptionBytesPerNamespace, 16 << 20, "lists and texts of annotations, times their backends"},
		{"rate-addresses-per-namespace", &l.RateAddressesPerNamespace, 1 << 20, "addresses that rates of annotations count"},
	}
}

// Set takes "name=number", the value of a flag.
func (l *Limits) Set(text string) error {
	name, number, _ := strings.Cut(text, "=")
	for _, row := range l.table() {
		if row.name != name {
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return fmt.Errorf("%s: %q is not a number above 0", name, number)
		}
		*row.value = n
		return nil
	}
	for _, row := range l.table() {
		if annotation.Near(name, row.name) {
			return fmt.Errorf("there is no limit %q: did you mean %s? -h lists all", name, row.name)
		}
	}
	return fmt.Errorf("there is no limit %q: want name=number; -h lists all", name)
}

// LimitsUsage lists all limits with their defaults, one a line.
func LimitsUsage() string {
	var text strings.Builder
	for _, row := range new(Limits).table() {
		fmt.Fprintf(&text, "%s=%d\t%s\n", row.name, row.usual, row.what)
	}
	return text.String()
}

// orUsual replaces zeros by the defaults.
func (l Limits) orUsual() Limits {
	for _, row := range l.table() {
		*row.value = cmp.Or(*row.value, row.usual)
	}
	return l
}

// InForce returns all limits by name, with the defaults in place of zeros.
func (l Limits) InForce() map[string]int {
	all, with := map[string]int{}, l.orUsual()
	for _, row := range with.table() {
		all[row.name] = *row.value
	}
	return all
}

// space counts what a namespace has taken of its limits, in one build.
type space struct {
	paths, bytes, backends, servers, read, secrets int
	patterns, canaries, users, options, addresses  int
	guesses                                        int    // see maxGuesses
	full                                           string // why no further Ingress is read
	bit                                            bool   // a limit refused something
}

// isWithin reports whether no limit refused anything of a namespace. Then the order in
// which its resources are read does not matter.
func (b *builder) isWithin(sp *space) bool {
	l := &b.limits
	return !sp.bit && sp.full == "" && sp.paths <= l.PathsPerNamespace && sp.bytes <= l.MapBytesPerNamespace && sp.backends <= l.BackendsPerNamespace &&
		sp.servers <= l.ServersPerNamespace && sp.read <= 3*l.ServersPerNamespace && sp.secrets <= l.SecretsPerNamespace && sp.guesses <= maxGuesses
}

func (b *builder) spaceOf(namespace string) *space {
	sp := b.spaces[namespace]
	if sp == nil {
		sp = &space{}
		b.spaces[namespace] = sp
	}
	return sp
}

// bound cuts the Ingresses to the limits of their namespaces, the oldest first.
func (b *builder) bound(ingresses []*networkingv1.Ingress) (kept []*networkingv1.Ingress) {
	kept = make([]*networkingv1.Ingress, 0, len(ingresses))
	l, parts := &b.limits, map[string]partOf{}
	b.slots.mu.Lock()
	defer b.slots.mu.Unlock()
	for _, ing := range ingresses {
		b.begin(ing)
		sp := b.space
		if sp.full != "" {
			b.refuse(fieldPath{-1, -1, -1, ""}, sp.full+": it is not served")
			continue
		}
		m := measure{paths: min(l.PathsPerIngress, l.PathsPerNamespace-sp.paths), bytes: l.MapBytesPerNamespace - sp.bytes}
		part, end := m.cut(ing)
		sp.paths, sp.bytes = sp.paths+m.taken, sp.bytes+m.size
		if part == nil {
			kept = append(kept, ing)
			continue
		}
		switch {
		case m.taken == l.PathsPerIngress:
			b.refuse(end, fmt.Sprintf("the Ingress has %s paths and TLS hosts, more than the %s of one Ingress (paths-per-ingress): the first %[2]s are served",
				figure(countPaths(ing)), figure(l.PathsPerIngress)))
		case m.taken == m.paths:
			sp.full = fmt.Sprintf("namespace %s has more than the %s paths and TLS hosts of one namespace (paths-per-namespace)", ing.Namespace, figure(l.PathsPerNamespace))
			b.refuse(end, sp.full+": this and what follows is not served")
		default:
			sp.full = fmt.Sprintf("hosts and paths of namespace %s have more than the %s bytes of one namespace (map-bytes-per-namespace)", ing.Namespace, figure(l.MapBytesPerNamespace))
			b.refuse(end, sp.full+": this and what follows is not served")
		}
		name := ing.Namespace + "/" + ing.Name
		if last := b.slots.cut[name]; last.whole == ing && last.taken == m.taken {
			part = last.part
		}
		parts[name] = partOf{ing, part, m.taken}
		kept = append(kept, part)
	}
	b.slots.cut = parts
	return kept
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

func countPaths(ing *networkingv1.Ingress) int {
	all := measure{paths: math.MaxInt, bytes: math.MaxInt}
	all.cut(ing)
	return all.taken
}

// partOf is an Ingress that was cut. part stays the same pointer while whole does.
type partOf struct {
	whole, part *networkingv1.Ingress
	taken       int
}

// begin makes an Ingress the current one.
func (b *builder) begin(ing *networkingv1.Ingress) {
	b.ing, b.space = ing, b.spaceOf(ing.Namespace)
}

// figure prints 12345 as "12,345".
func figure(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
