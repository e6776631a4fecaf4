package ingress

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
)

// hostProblem says why a name is no host name by the rules of the API server, and
// suggests one. Each render calls it for each host.
func hostProblem(host string) string {
	if isHost(host) {
		return ""
	}
	problem := fmt.Sprintf("%q is not a host name, %s", short(host), whyNoHost(host))
	if meant := meantHost(host); meant != host && isHost(meant) {
		problem += fmt.Sprintf(": write %q", short(meant))
	}
	return problem
}

func isHost(host string) bool {
	name, last := strings.TrimPrefix(host, "*."), byte('.')
	ok := name != "" && len(name) <= validation.DNS1123SubdomainMaxLength
	for i := 0; ok && i < len(name); i++ {
		switch c := name[i]; {
		case c == '.' || c == '-':
			ok = last != '.' && (c == '-' || last != '-')
		default:
			ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		}
		last = name[i]
	}
	return ok && last != '.' && last != '-'
}

// whyNoHost names the first mistake in a host, in the order in which people make them.
func whyNoHost(host string) string {
	name := strings.TrimPrefix(host, "*.")
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return "it is an IP address; a rule without host is for all addresses"
	}
	switch i := strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.'
	}); {
	case strings.Contains(name, "://"):
		return "it begins with a scheme"
	case strings.Contains(name, "/"):
		return "it has a path, which belongs to http.paths"
	case strings.Contains(name, ":"):
		return "it has a port"
	case host == "*":
		return "it stands for all hosts: leave it out"
	case strings.Contains(name, "*"):
		return `a wildcard is the whole first label, as in "*.example.com"`
	case strings.ToLower(name) != name && isHost(strings.ToLower(name)):
		return "it has upper-case letters"
	case i >= 0 && name[i] >= 0x80:
		return fmt.Sprintf("it holds %q: write it in Punycode, which begins with xn--", []rune(name[i:])[0])
	case i >= 0:
		return fmt.Sprintf(`it holds %q; letters a-z, digits, "-" and "." are allowed`, name[i])
	case len(name) > validation.DNS1123SubdomainMaxLength:
		return fmt.Sprintf("it has %d characters, more than the %d of a host name", len(name), validation.DNS1123SubdomainMaxLength)
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		switch {
		case label == "":
			return "a label is empty"
		case label[0] == '-' || label[len(label)-1] == '-':
			return fmt.Sprintf(`label %q begins or ends with "-"`, short(label))
		}
	}
	return "it ends with a dot"
}

// meantHost guesses the host in a text that is none.
func meantHost(s string) string {
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = rest
	}
	s, _, _ = strings.Cut(s, "/")
	s, _, _ = strings.Cut(s, ":")
	return strings.ToLower(strings.TrimSuffix(strings.TrimSpace(s), "."))
}

// maxLabel is the longest label in DNS.
const maxLabel = 63

// hostWarning says why clients may not find a host that is served.
func hostWarning(host string) string {
	if c := host[len(host)-1]; c >= '0' && c <= '9' { // only then can it be an address
		if _, err := netip.ParseAddr(host); err == nil {
			return "it is an IP address, which the API server refuses: a rule without host is for all addresses"
		}
	}
	if len(host) > maxLabel {
		for label := range strings.SplitSeq(host, ".") {
			if len(label) > maxLabel {
				return fmt.Sprintf("label %q has %d characters, more than the %d of DNS: clients do not find it", short(label), len(label), maxLabel)
			}
		}
	}
	return ""
}

// short cuts a user's text to the length that a message can show.
func short(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// maxPath bounds a path, in bytes. A request must fit into HAProxy's tune.bufsize,
// 16384. So must a line of a map, or HAProxy reads it as two.
const maxPath = 8192

// nameProblem checks the name of an object or a port. The API server does so too, but
// not every object comes from there.
func nameProblem(name string) string {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' {
			return fmt.Sprintf(`%q is not the name of an object: it holds %q; letters a-z, digits, "-" and "." are allowed`, short(name), r)
		}
	}
	return ""
}

// patternSigns mark a path that is meant as a pattern. No request sends them unescaped,
// except "*".
const patternSigns = `*^[]{}|\`

func pathProblem(path string, kind networkingv1.PathType) string {
	if !strings.HasPrefix(path, "/") {
		return fmt.Sprintf("%q does not begin with a slash: write %q", short(path), short("/"+path))
	}
	if len(path) > maxPath {
		return fmt.Sprintf("it has %d bytes, which is more than the %d that are served", len(path), maxPath)
	}
	if kind == pattern {
		_, problem := annotation.CheckPattern(path)
		switch {
		case problem != "":
		case annotation.Alternates(path): // the second would match all hosts
			problem = fmt.Sprintf("pattern %q has a | outside of parentheses: write it in parentheses, or two paths", short(path))
		case len(path) > 1 && strings.IndexByte("?*{", path[1]) >= 0: // without the slash it would match longer host names
			problem = fmt.Sprintf("pattern %q begins with a slash that may be missing: write a slash, and then the rest", short(path))
		}
		return problem
	}
	for _, r := range path {
		if r <= ' ' || r >= 0x7f || r == '?' || r == '#' {
			return fmt.Sprintf("%q holds %q, which no request path can hold", short(path), r)
		}
	}
	return ""
}

// pathTypeProblem checks a given path type.
func pathTypeProblem(kind *networkingv1.PathType) string {
	if kind == nil {
		return ""
	}
	all := []networkingv1.PathType{networkingv1.PathTypePrefix, networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific}
	for _, known := range all {
		if *kind == known {
			return ""
		}
	}
	for _, known := range all {
		if annotation.Near(string(*kind), string(known)) {
			return fmt.Sprintf("%q is not known: write %q", short(string(*kind)), known)
		}
	}
	return fmt.Sprintf("%q is not known: write Prefix, Exact or ImplementationSpecific", short(string(*kind)))
}

// toldResources bounds the resources of one namespace that a build reports on; it
// counts the others. The page shows one fewer, and then says that there are more.
const toldResources = 10*reconcile.MaxRefusals + 1

// told counts the reports on a resource or a namespace, and has the place of the last one.
type told struct{ count, last int }

// refuse reports that a part of the current Ingress is refused.
func (b *builder) refuse(field fieldPath, reason string) {
	b.fast.isOdd(b.ing)
	b.say(field, reconcile.Refusal{Reason: reason})
}

// warn reports a part of the current Ingress that its author should check.
func (b *builder) warn(field fieldPath, reason string) {
	b.say(field, reconcile.Refusal{Reason: reason, Warning: true})
}

// sayOnce reports a problem that several parts of the current Ingress share.
func (b *builder) sayOnce(field fieldPath, r reconcile.Refusal) {
	key := saying{b.ing.Namespace + "/" + b.ing.Name, "", r.Reason}
	if !b.said[key] {
		b.said[key] = true
		b.say(field, r)
	}
}

func (b *builder) say(field fieldPath, r reconcile.Refusal) {
	if b.named != b.ing {
		b.named, b.name = b.ing, resourceName("Ingress", b.ing)
	}
	if r.Resource = b.name; b.hears(r.Resource, b.ing.Namespace) {
		r.Field = field.String()
		b.add(b.ing, r)
	}
}

// tell reports a problem to the object whose owner can fix it. It reports the same
// problem once, however many Ingresses lead there.
func (b *builder) tell(kind string, o metav1.Object, r reconcile.Refusal) {
	if r.Resource = resourceName(kind, o); b.hears(r.Resource, o.GetNamespace()) {
		b.add(o, r)
	}
}

func resourceName(kind string, o metav1.Object) string {
	if ns := o.GetNamespace(); ns != "" {
		return kind + " " + ns + "/" + o.GetName()
	}
	return kind + " " + o.GetName()
}

// hears reports whether a report is within the bounds. It counts those beyond.
func (b *builder) hears(resource, namespace string) bool {
	of, space := b.told[resource], b.told[namespace]
	switch {
	case b.fast.mute:
	case of.count >= reconcile.MaxRefusals:
		b.routes.Refused[of.last].More++
	case of.count == 0 && space.count >= toldResources:
		b.routes.Refused[space.last].More++
	default:
		return true
	}
	return false
}

func (b *builder) add(o metav1.Object, r reconcile.Refusal) {
	key := saying{r.Resource, r.Field, r.Reason}
	if b.said[key] {
		return
	}
	b.said[key] = true
	at, of := len(b.routes.Refused), b.told[r.Resource].count
	if of == 0 {
		b.told[o.GetNamespace()] = told{b.told[o.GetNamespace()].count + 1, at}
	}
	b.told[r.Resource] = told{of + 1, at}
	r.Object, _ = reconcile.ResourceOf(o)
	r.Source = o.GetAnnotations()[k8swatch.SourceAnnotation]
	b.routes.Refused = append(b.routes.Refused, r)
}

func compareRefused(x, y reconcile.Refusal) int {
	return cmp.Or(cmp.Compare(x.Resource, y.Resource), cmp.Compare(x.Field, y.Field), cmp.Compare(x.Reason, y.Reason))
}

// saying is the content of a report.
type saying struct{ resource, field, reason string }
