package ingress

import (
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// maxNames bounds the names that a message lists.
const maxNames = 5

func short(s string) string { return limits.Short(s) }

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
