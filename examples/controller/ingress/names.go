package ingress

import (
	"fmt"
	"net/netip"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// hostProblem says why a name is not that of a host, by the rules of the API server,
// and what would be: each render asks it of each host.
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

// whyNoHost says what is wrong with a host: the first that people get wrong.
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

// meantHost guesses the host in something that is none.
func meantHost(s string) string {
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = rest
	}
	s, _, _ = strings.Cut(s, "/")
	s, _, _ = strings.Cut(s, ":")
	return strings.ToLower(strings.TrimSuffix(strings.TrimSpace(s), "."))
}

// maxLabel is how long a label can be in DNS.
const maxLabel = 63

// hostWarning says why no client may find a host that is served.
func hostWarning(host string) string {
	if c := host[len(host)-1]; c >= '0' && c <= '9' { // else it is no address, at no cost
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

// short cuts what somebody wrote to what a message can show.
func short(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// maxPath is how long a path may be, in bytes: a request must fit into HAProxy's
// tune.bufsize, 16384, and so must a line of a map, which it reads as two
// otherwise.
const maxPath = 8192

// nameProblem says what is wrong with the name of an object or a port. The API
// server sees to it, but not everything comes from there.
func nameProblem(name string) string {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' {
			return fmt.Sprintf(`%q is not the name of an object: it holds %q; letters a-z, digits, "-" and "." are allowed`, short(name), r)
		}
	}
	return ""
}

// patternSigns are in paths that are meant as a pattern; no request sends them as they
// stand, but for "*".
const patternSigns = `*^[]{}|\`

func pathProblem(path string) string {
	if !strings.HasPrefix(path, "/") {
		return fmt.Sprintf("%q does not begin with a slash: write %q", short(path), short("/"+path))
	}
	if len(path) > maxPath {
		return fmt.Sprintf("it has %d bytes, which is more than the %d that are served", len(path), maxPath)
	}
	for _, r := range path {
		if r <= ' ' || r >= 0x7f || r == '?' || r == '#' {
			return fmt.Sprintf("%q holds %q, which no request path can hold", short(path), r)
		}
	}
	return ""
}

// pathTypeProblem says what is wrong with a type that is given.
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
		if near(string(*kind), string(known)) {
			return fmt.Sprintf("%q is not known: write %q", short(string(*kind)), known)
		}
	}
	return fmt.Sprintf("%q is not known: write Prefix, Exact or ImplementationSpecific", short(string(*kind)))
}
