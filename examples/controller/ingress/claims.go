package ingress

import (
	"cmp"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/reconcile"
)

// tlsHost is the kind of claims for the certificate of a host.
const tlsHost networkingv1.PathType = "tls"

// holder has a claim.
type holder struct {
	ing    *networkingv1.Ingress // nil: only an earlier configuration shows it
	serves string                // what serves it: a backend, or the file of a certificate
}

// waiting is a part of an Ingress that is settled after others.
type waiting struct {
	ing *networkingv1.Ingress
	add func()
}

// inTurn settles a claim. First come claims that are served as before, then claims of
// an Ingress that had them, then all others by age. Otherwise a file whose name sorts
// first could take a path from a live one.
func (b *builder) inTurn(c claim, serves string, add func()) {
	had, known := b.had[c]
	b.fast.waited = b.fast.waited || known && had.serves != serves || b.owner.get(c).ing != nil
	switch {
	case known && had.serves != serves && had.ing != nil && isSame(had.ing, b.ing):
		b.later[0] = append(b.later[0], waiting{b.ing, add})
	case known && had.serves != serves, b.owner.get(c).ing != nil:
		b.fast.contest(c)
		b.later[1] = append(b.later[1], waiting{b.ing, add})
	default:
		add()
	}
}

// inTurnAgain settles all waiting claims.
func (b *builder) inTurnAgain() {
	for _, turn := range b.later {
		b.ing = nil
		for _, w := range turn {
			if b.ing != w.ing {
				b.begin(w.ing)
			}
			w.add()
		}
	}
}

// keepTLS keeps hosts with the Secret that serves them, while an Ingress names a Secret
// that cannot be used yet. The old Secret must still exist.
func (b *builder) keepTLS(field fieldPath, t *networkingv1.IngressTLS) {
	ns := b.ing.Namespace
	b.fast.waited = true
	b.fast.isOdd(b.ing)
	b.isLoose(t.Hosts)
	for _, host := range t.Hosts {
		had := b.had[claim{tlsHost, host}]
		name, ours := strings.CutPrefix(strings.TrimSuffix(had.serves, ".pem"), ns+"_")
		name = strings.ReplaceAll(name, "_", ".")
		if file := dataplane.FileName(dataplane.Certificate, ns+"_"+name); !ours || file != had.serves || name == t.SecretName || !isHost(host) || b.owners.problem(host, ns) != "" {
			continue
		} else if b.certs[file] == nil {
			b.certs[file] = b.makeCertificate(file, name)
		}
		if old := b.certs[had.serves]; old.File != "" {
			b.warn(field, fmt.Sprintf("until Secret %s/%s can be used, Secret %s serves %s", ns, t.SecretName, old.secret, host))
			b.inTurn(claim{tlsHost, host}, old.File, func() { b.addTLSHost(field, old, host) })
		}
	}
}

func isSame(x, y *networkingv1.Ingress) bool { return x.Namespace == y.Namespace && x.Name == y.Name }

// byAge puts the older Ingress first, then the first by name.
func byAge(x, y *networkingv1.Ingress) int {
	return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time),
		cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
}

// why says why another Ingress has a claim.
func (b *builder) why(first *networkingv1.Ingress) string {
	if byAge(first, b.ing) < 0 {
		return "which is older"
	}
	return "which has it already"
}

// served returns the holders in the last accepted configuration.
func (h *Hosts) served() map[claim]holder {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.holders
}

// keepServed keeps the claims of quarantined Ingresses. A claim without a present
// holder that only an earlier configuration shows may belong to them too.
func (b *builder) keepServed(left map[*networkingv1.Ingress]bool) {
	type name struct{ namespace, name string }
	out := map[name]bool{}
	for ing := range left {
		out[name{ing.Namespace, ing.Name}] = true
	}
	if len(out) > 0 {
		for c, had := range b.had {
			if had.ing == nil && b.owner.base[c].ing == nil || had.ing != nil && out[name{had.ing.Namespace, had.ing.Name}] {
				b.owner.base[c] = had
			}
		}
	}
}

// accept remembers the owners and holders of accepted routes. Routes from before the
// last Remember do not count: another process led meanwhile.
func (h *Hosts) accept(owners *owners, holders map[claim]holder) (revision int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ok = owners.told == h.told; ok {
		h.last, h.holders = *owners, holders
		h.revision++
	}
	return h.revision, ok
}

// isAt reports whether this memory is still at a revision.
func (h *Hosts) isAt(revision int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.revision == revision
}

// holdersOf reads the holders from a configuration. It shows what serves a claim, but
// not for which Ingress.
func holdersOf(previous *dataplane.Config) map[claim]holder {
	all := map[claim]holder{}
	for kind, name := range pathMaps() {
		for line, backend := range linesOf(previous, name) {
			all[claim{kind, line}] = holder{serves: backend}
		}
	}
	for line := range strings.Lines(previous.Main()) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == "default_backend" && strings.Contains(words[1], "_") {
			all[claim{}] = holder{serves: words[1]}
		}
	}
	for file, host := range tlsHostsOf(previous) {
		all[claim{tlsHost, host}] = holder{serves: file}
	}
	return all
}

// pathMaps are the maps of paths, by the kind of their claims.
func pathMaps() map[networkingv1.PathType]string {
	return map[networkingv1.PathType]string{networkingv1.PathTypeExact: "exact.map", networkingv1.PathTypePrefix: "prefix.map", pattern: "paths_reg.map"}
}

// tlsHostsOf yields the files and hosts of the crt-list.
func tlsHostsOf(cfg *dataplane.Config) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		list, _ := cfg.File(dataplane.CRTList, "certificates.txt")
		for line := range strings.Lines(string(list.Content)) {
			words := strings.Fields(line)
			for i := 1; i < len(words) && words[0] != "#"; i++ {
				if !strings.HasPrefix(words[i], "!") && !yield(filepath.Base(words[0]), words[i]) {
					return
				}
			}
		}
	}
}

// ControllerName is spec.controller of our IngressClasses.
const ControllerName = "haptic.hapticsdk.dev/ingress"

// classAnnotation named the class before spec.ingressClassName existed.
const classAnnotation = "kubernetes.io/ingress.class"

// classes are the IngressClasses of a cluster.
type classes struct {
	ours     map[string]bool // whether a class that exists is ours
	names    []string        // names of our classes
	defaults map[bool]bool   // whether one of ours (true) or of others (false) is the default
}

// Ours returns a function that reports whether an Ingress has a class of this
// controller. all are all classes of the cluster.
func Ours(all []*networkingv1.IngressClass) func(*networkingv1.Ingress) bool {
	b := &builder{cluster: &Cluster{Classes: all}, fast: fast{mute: true}}
	c := b.readClasses()
	return func(ing *networkingv1.Ingress) bool { return b.isOurs(ing, c) }
}

// readClasses also warns of a class whose controller is a misspelling of ours.
func (b *builder) readClasses() *classes {
	c := &classes{ours: map[string]bool{}, defaults: map[bool]bool{}}
	for _, class := range b.cluster.Classes {
		ours := class.Spec.Controller == ControllerName
		c.ours[class.Name] = ours
		if class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
			c.defaults[ours] = true
		}
		if ours {
			c.names = append(c.names, class.Name)
		} else if annotation.Near(class.Spec.Controller, ControllerName) {
			b.tell("IngressClass", class, reconcile.Refusal{Field: "spec.controller", Warning: true,
				Reason: fmt.Sprintf("%q is not this controller, so that no Ingress of the class is served: write %q", class.Spec.Controller, ControllerName)})
		}
	}
	slices.Sort(c.names)
	return c
}

// isOurs applies the rules of IngressClass: by name, by the older annotation, and by
// default. If the cluster has no classes at all, every Ingress is ours. It warns of an
// Ingress that no controller serves, but not of one for another controller.
func (b *builder) isOurs(ing *networkingv1.Ingress, c *classes) bool {
	old, spec := ing.Annotations[classAnnotation], ""
	if ing.Spec.IngressClassName != nil {
		spec = *ing.Spec.IngressClassName
	}
	warn := func(field, reason string) {
		b.tell("Ingress", ing, reconcile.Refusal{Field: field, Reason: reason, Warning: true})
	}
	const bySpec, byAnnotation = "spec.ingressClassName", "metadata.annotations[" + classAnnotation + "]"
	name := spec
	if ing.Spec.IngressClassName == nil {
		name = old
	}
	ours, exists := c.ours[name]
	switch {
	case name == "" && len(c.ours) == 0, name == "" && c.defaults[true]:
		return true
	case name == "" && !c.defaults[false]:
		warn(bySpec, "it is missing, and no IngressClass is the default, so that the Ingress is not served here: "+c.advice(""))
	case exists && spec != "" && old != "" && old != spec && (ours || c.ours[old]):
		whose := ""
		if !ours {
			whose = ", which is another controller's"
		}
		warn(byAnnotation, fmt.Sprintf("%q is ignored, as spec.ingressClassName is %q%s: remove one of them", short(old), short(spec), whose))
	case exists || name == "":
	case spec != "":
		warn(bySpec, fmt.Sprintf("there is no IngressClass %q, so that the Ingress is not served here: %s", short(spec), c.advice(spec)))
	case slices.ContainsFunc(c.names, func(our string) bool { return annotation.Near(old, our) }): // otherwise another controller's, which needs no IngressClass
		warn(byAnnotation, fmt.Sprintf("there is no IngressClass %q, so that the Ingress is not served here: %s", old, c.advice(old)))
	}
	return ours
}

// advice says which class to write.
func (c *classes) advice(wrong string) string {
	if len(c.names) == 0 {
		return fmt.Sprintf("make an IngressClass with spec.controller %q", ControllerName)
	}
	for _, our := range c.names {
		if annotation.Near(wrong, our) {
			return fmt.Sprintf("write %q", our)
		}
	}
	return "the classes of this controller are " + strings.Join(c.names[:min(len(c.names), maxNames)], ", ")
}
