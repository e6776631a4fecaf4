package ingress

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/annotation"
)

// Hosts remembers the owners of hosts, from each valid configuration to the next render. A
// host belongs to the namespace that claimed it first. It keeps the host while one of its
// Ingresses claims it by a rule or by spec.tls; a quarantined Ingress counts too. A wildcard
// includes all names below it that are free. If several namespaces claim a free host at once,
// the older Ingress gets it. Rules without a host and the default backend count as one more
// host. Hosts also remembers which Ingress has a path, a default backend and a certificate.
//
// Without it, tenants of one cluster could take each other's hosts, path by path. The
// zero value is ready. It is safe for concurrent use.
type Hosts struct {
	// Shared are hosts that all namespaces may use. There each path belongs to the
	// namespace that claimed it first. "*.demo.test" stands for all names below
	// demo.test, and "*" for all hosts. Set it before the first render.
	Shared []string

	mu      sync.Mutex
	last    owners
	holders map[claim]holder // everything that only one Ingress can have
	told    int              // number of calls of Remember

	revision int // raised with each change of this memory
}

// Host is a claimed host.
type Host struct {
	Name      string // "shop.demo.test", "*.demo.test", or "*" for rules without a host
	Namespace string // its owner; "*": all namespaces
}

func (h Host) compare(other Host) int { return cmp.Compare(h.Name, other.Name) }

// byLength puts the longest first.
func (h Host) byLength(other Host) int {
	return cmp.Or(cmp.Compare(len(other.Name), len(h.Name)), h.compare(other))
}

// CheckSharedHost checks an entry of Shared.
func CheckSharedHost(host string) error {
	if problem := hostProblem(host); problem != "" && host != anyHost {
		return errors.New(problem)
	}
	return nil
}

// everybody stands for the namespace of shared hosts. No namespace has that name.
const everybody = "*"

// owners are the owners of hosts, wildcards and shared paths.
type owners struct {
	hosts     table[string, hostOwner]
	wildcards map[string]string // of the hosts, without the "*"
	paths     map[claim]string  // of shared hosts
	told      int               // Hosts.told at that time
	revision  int               // and Hosts.revision
}

// hostOwner is the owner of a host.
type hostOwner struct {
	namespace string // "": none
	asking    int32  // how often Ingresses claim it
	contested bool   // another namespace claims it too, or none may have it
	paths     bool   // it has a path
}

// above returns the closest wildcard that covers a host, and its owner.
func (o *owners) above(host string) (wildcard, namespace string) {
	name := strings.TrimPrefix(host, "*.")
	for len(o.wildcards) > 0 {
		i := strings.IndexByte(name, '.')
		if i < 0 {
			break
		}
		if namespace = o.wildcards[name[i:]]; namespace != "" {
			return "*" + name[i:], namespace
		}
		name = name[i+1:]
	}
	return "", ""
}

// problem names the owner of a host that this namespace may not use.
func (o *owners) problem(host, namespace string) string {
	owner, by := o.hosts.get(host).namespace, ""
	if owner == "" && host != anyHost {
		if by, owner = o.above(host); by != "" {
			by = " with " + by
		}
	}
	if owner == "" || owner == namespace || owner == everybody {
		return ""
	}
	if host == anyHost {
		host = "what no host matches"
	}
	return fmt.Sprintf("%s belongs to namespace %s%s, which claimed it first", host, owner, by)
}

// settle finds the owners, for Ingresses in the order of their age.
func (h *Hosts) settle(ingresses []*networkingv1.Ingress) *owners {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := owners{hosts: table[string, hostOwner]{base: make(map[string]hostOwner, len(ingresses))}, wildcards: map[string]string{}, paths: map[claim]string{}, told: h.told, revision: h.revision}
	for _, first := range []bool{false, true} { // present owners go first
		for _, ing := range ingresses {
			ns := ing.Namespace
			if ns == "" || nameProblem(ns) != "" {
				continue
			}
			for host := range hostsOf(ing) {
				at := now.hosts.base[host]
				if at.namespace == "" {
					if !first && h.last.hosts.base[host].namespace != ns || first && host != anyHost && hostProblem(host) != "" {
						continue
					}
					at.namespace = h.giveTo(&now, host, ns, first)
				}
				if first {
					at.asking++
					at.contested = at.contested || at.namespace != ns
				}
				now.hosts.base[host] = at
			}
			for line := range h.sharedLines(ing) {
				if now.paths[line] == "" && (first || h.last.paths[line] == ns) {
					now.paths[line] = ns
				}
			}
		}
	}
	return &now
}

// giveTo returns the owner of a host that a namespace claims; "": none.
func (h *Hosts) giveTo(now *owners, host, namespace string, first bool) (owner string) {
	if _, above := now.above(host); h.isShared(host) {
		owner = everybody
	} else if !first || above == "" || above == namespace {
		owner = namespace
	}
	if owner != "" && strings.HasPrefix(host, "*.") {
		now.wildcards[host[1:]] = owner
	}
	return owner
}

// hostsOf yields the hosts that an Ingress claims.
func hostsOf(ing *networkingv1.Ingress) iter.Seq[string] {
	return func(yield func(string) bool) {
		if ing.Spec.DefaultBackend != nil && !yield(anyHost) {
			return
		}
		for i := range ing.Spec.Rules {
			host := ing.Spec.Rules[i].Host
			if host != anyHost && !yield(cmp.Or(host, anyHost)) {
				return
			}
		}
		for i := range ing.Spec.TLS {
			for _, host := range ing.Spec.TLS[i].Hosts {
				if host != "" && host != anyHost && !yield(host) {
					return
				}
			}
		}
	}
}

func (h *Hosts) isShared(host string) bool {
	return slices.ContainsFunc(h.Shared, func(s string) bool {
		return s == host || s == anyHost || strings.HasPrefix(s, "*.") && strings.HasSuffix(host, s[1:])
	})
}

// sharedLines yields the lines of shared hosts that an Ingress claims.
func (h *Hosts) sharedLines(ing *networkingv1.Ingress) iter.Seq[claim] {
	return func(yield func(claim) bool) {
		if len(h.Shared) == 0 {
			return
		}
		for _, rule := range ing.Spec.Rules {
			host := cmp.Or(rule.Host, anyHost)
			if rule.HTTP == nil || !h.isShared(host) {
				continue
			}
			regex := annotation.UsesRegex(ing.Annotations)
			for i := range rule.HTTP.Paths {
				if !yield(lineOf(regex, host, &rule.HTTP.Paths[i])) {
					return
				}
			}
		}
	}
}

// Remember reads the owners from an earlier configuration of these templates. If it is nil
// or has no map of hosts, Remember changes nothing. From the next render on, the owners keep
// what they still claim.
func (h *Hosts) Remember(previous *dataplane.Config) {
	if previous == nil {
		return
	}
	if _, ok := previous.File(dataplane.Map, "hosts.map"); !ok { // the instance is new
		return
	}
	was := owners{hosts: table[string, hostOwner]{base: map[string]hostOwner{}}, paths: map[claim]string{}}
	for host, ns := range linesOf(previous, "hosts.map") {
		was.hosts.base[host] = hostOwner{namespace: ns}
	}
	holders := holdersOf(previous)
	for c, had := range holders {
		if c.kind == networkingv1.PathTypeExact || c.kind == networkingv1.PathTypePrefix || c.kind == pattern {
			was.paths[c], _, _ = strings.Cut(had.serves, "_")
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last, h.holders = was, holders
	h.told++
	h.revision++
}

// linesOf yields the keys and values of a map.
func linesOf(cfg *dataplane.Config, name string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		file, _ := cfg.File(dataplane.Map, name)
		for line := range strings.Lines(string(file.Content)) {
			words := strings.Fields(line)
			if len(words) == 2 && !strings.HasPrefix(line, "#") && !yield(words[0], words[1]) {
				return
			}
		}
	}
}

// claimed lists the hosts for the map. It omits a host without paths if the wildcard of
// the same namespace covers it.
func (b *builder) claimed() (all []Host) {
	for host, at := range b.owners.hosts.base {
		if b.owners.isListed(host, at) {
			all = append(all, Host{host, at.namespace})
		}
	}
	slices.SortFunc(all, Host.compare)
	return all
}

// isListed reports whether a host is in the map.
func (o *owners) isListed(host string, at hostOwner) bool {
	if at.namespace == "" || at.paths || host == anyHost || strings.HasPrefix(host, "*.") {
		return at.namespace != ""
	}
	i := strings.IndexByte(host, '.')
	return i < 0 || o.wildcards[host[i:]] != at.namespace
}

// maxExceptions and maxExceptionBytes bound the exceptions from the wildcards of a
// certificate. All are in its line of the crt-list, beside the names that maxLine and
// maxWords bound. For further names HAProxy answers with the wildcard's certificate;
// requests still go to their own backends.
const maxExceptions, maxExceptionBytes = 100, 2_500

// exceptOthers excludes from the certificate of a wildcard those names below it that
// belong to another namespace and have no certificate.
func (b *builder) exceptOthers() {
	for _, h := range b.routes.Hosts {
		if !b.tlsWildcard {
			return
		}
		host, owner := h.Name, h.Namespace
		_, parent, _ := strings.Cut(host, ".")
		cert := b.tlsHosts["*."+parent]
		if cert == nil || strings.HasPrefix(host, "*.") || b.tlsHosts[host] != nil || owner == everybody || owner == cert.Secret.Namespace {
			continue
		}
		if size := len(host) + 2; len(cert.Except) < maxExceptions && cert.exceptBytes+size <= maxExceptionBytes {
			cert.Except, cert.exceptBytes = append(cert.Except, host), cert.exceptBytes+size
		}
	}
}
