package claims

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hapticsdk/haptic/reconcile/limits"
)

// AnyHost stands for requests that no other host matches, even in a Host header.
const AnyHost = "*"

// CheckShared checks an entry of Shared of [HostOptions].
func CheckShared(host string) error {
	if problem := HostProblem(host); problem != "" && host != AnyHost {
		return errors.New(problem)
	}
	return nil
}

// HostProblem says why a text is no host name by the rules of the API server, and suggests
// one. It is empty for a host name and for a wildcard such as "*.shop.test".
func HostProblem(host string) string {
	if IsHost(host) {
		return ""
	}
	problem := fmt.Sprintf("%q is not a host name, %s", limits.Short(host), whyNoHost(host))
	if meant := meantHost(host); meant != host && IsHost(meant) {
		problem += fmt.Sprintf(": write %q", limits.Short(meant))
	}
	return problem
}

// IsHost reports whether a text is a host name, or a wildcard, in lower case.
func IsHost(host string) bool {
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
		return "it is an IP address; leave the host out to serve all addresses"
	}
	switch i := strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.'
	}); {
	case strings.Contains(name, "://"):
		return "it begins with a scheme"
	case strings.Contains(name, "/"):
		return "it has a path, which has a field of its own"
	case strings.Contains(name, ":"):
		return "it has a port"
	case host == "*":
		return "it stands for all hosts: leave it out"
	case strings.Contains(name, "*"):
		return `a wildcard is the whole first label, as in "*.example.com"`
	case strings.ToLower(name) != name && IsHost(strings.ToLower(name)):
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
			return fmt.Sprintf(`label %q begins or ends with "-"`, limits.Short(label))
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

// HostWarning says why clients may not find a host that is served; "" if they can.
func HostWarning(host string) string {
	if c := host[len(host)-1]; c >= '0' && c <= '9' { // only then can it be an address
		if _, err := netip.ParseAddr(host); err == nil {
			return "it is an IP address, which the API server refuses: leave the host out to serve all addresses"
		}
	}
	if len(host) > maxLabel {
		for label := range strings.SplitSeq(host, ".") {
			if len(label) > maxLabel {
				return fmt.Sprintf("label %q has %d characters, more than the %d of DNS: clients do not find it", limits.Short(label), len(label), maxLabel)
			}
		}
	}
	return ""
}
