package ingress

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hapticsdk/haptic/examples/controller/annotation"
)

// anyHost stands for the host of rules without a host, even in a Host header.
const anyHost = "*"

// maxNames bounds the names that a message lists.
const maxNames = 5

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
		is, problem := annotation.CheckPath(path)
		switch {
		case problem != "":
		case is.Alternates: // the second would match all hosts
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

// fieldPath names a part of an Ingress. Most are never printed, so the text is made
// only when needed.
type fieldPath struct {
	tls, rule, path int // -1 for none
	end             string
}

func (f fieldPath) String() string {
	s := "spec"
	if f.tls >= 0 {
		s += fmt.Sprintf(".tls[%d]", f.tls)
	}
	if f.rule >= 0 {
		s += fmt.Sprintf(".rules[%d]", f.rule)
	}
	if f.path >= 0 {
		s += fmt.Sprintf(".http.paths[%d]", f.path)
	}
	return s + f.end
}

func (f fieldPath) sub(end string) fieldPath {
	f.end += end
	return f
}

// covers reports whether a wildcard covers a host.
func covers(wildcard, host string) bool {
	for i := range len(host) {
		if host[i] == '.' {
			return wildcard == "*"+host[i:]
		}
	}
	return false
}
