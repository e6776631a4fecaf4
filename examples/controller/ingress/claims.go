package ingress

import (
	"cmp"
	"fmt"
	"iter"
	"path/filepath"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

// tlsHost is the kind of claims of the certificate for a host.
const tlsHost networkingv1.PathType = "tls"

// holder is who has a claim, and what serves it.
type holder struct {
	ing    *networkingv1.Ingress // nil: known by a configuration of before alone
	serves string                // a backend, or the file of a certificate
}

// waiting is a part of an Ingress that is dealt with after others.
type waiting struct {
	ing *networkingv1.Ingress
	add func()
}

// inTurn deals with a claim: first come those that are served as before, then those of
// an Ingress that had them, then all others by their age. Without it a file whose name
// comes first takes a path from one that is live.
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

// inTurnAgain deals with all that waits.
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

// keepTLS leaves hosts with the Secret that serves them, as long as it is there, while
// the one that an Ingress names now cannot be used: it may have yet to be made.
func (b *builder) keepTLS(field fieldPath, t *networkingv1.IngressTLS) {
	ns := b.ing.Namespace
	b.fast.waited = true
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

// byAge puts the older Ingress first, then the one whose name comes first.
func byAge(x, y *networkingv1.Ingress) int {
	return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time),
		cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
}

// why says why an Ingress does not have what another one has.
func (b *builder) why(first *networkingv1.Ingress) string {
	if byAge(first, b.ing) < 0 {
		return "which is older"
	}
	return "which has it already"
}

// served is who had what in the last configuration that was accepted.
func (h *Hosts) served() map[claim]holder {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.holders
}

// keepServed says who has what from now on. An Ingress that is left out keeps what it had.
// What only a configuration of before says may be its own, where nobody has it.
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

// accept takes who has what from routes that were accepted, unless they are from before
// the last Remember: another process led meanwhile.
func (h *Hosts) accept(owners *owners, holders map[claim]holder) (revision int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ok = owners.told == h.told; ok {
		h.last, h.holders = *owners, holders
		h.revision++
	}
	return h.revision, ok
}

// isAt reports whether nothing was remembered since a revision.
func (h *Hosts) isAt(revision int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.revision == revision
}

// holdersOf reads who had what from a configuration: what serves it, and not by whom.
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
	return map[networkingv1.PathType]string{networkingv1.PathTypeExact: "exact.map", networkingv1.PathTypePrefix: "prefix.map"}
}

// tlsHostsOf yields the certificates and the hosts of the crt-list.
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
