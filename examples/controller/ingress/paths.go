package ingress

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/claims"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// The kinds of lines besides Exact and Prefix.
const (
	pattern    networkingv1.PathType = "pattern"            // a regular expression
	passedHost networkingv1.PathType = "TLS passthrough of" // the TLS connections of a host
)

// line names a thing that only one Ingress can have: a line of a map or, as the zero value,
// the default backend.
type line struct {
	kind networkingv1.PathType // Exact, pattern, passedHost, or Prefix for all others
	key  string
}

// lineOf returns the line of a map that a path claims. regex: the path may be a pattern.
func lineOf(regex bool, host string, p *networkingv1.HTTPIngressPath) line {
	path := cmp.Or(p.Path, "/")
	switch {
	case regex && (p.PathType == nil || *p.PathType != networkingv1.PathTypeExact):
		return line{pattern, "^" + regexp.QuoteMeta(host) + path}
	case p.PathType == nil, *p.PathType == networkingv1.PathTypeImplementationSpecific: // by characters: /foo matches /foobar
		return line{networkingv1.PathTypePrefix, host + path}
	case *p.PathType == networkingv1.PathTypeExact:
		return line{networkingv1.PathTypeExact, host + path}
	}
	return line{networkingv1.PathTypePrefix, host + strings.TrimRight(path, "/") + "/"} // by whole elements: /foo matches /foo/bar and not /foobar
}

// candidate is a part of an Ingress that asks for a line.
type candidate struct {
	line
	ing    *networkingv1.Ingress
	place  int // in the Ingress
	field  fieldPath
	host   string
	serves string  // the backend
	split  *Canary // takes a part of the requests; nil: none
}

func (c *candidate) compare(other *candidate) int {
	return cmp.Or(byAge(c.ing, other.ing), cmp.Compare(c.place, other.place))
}

// asks is what an Ingress asks for, as far as it alone, its hosts and its Services decide that.
type asks struct {
	candidates []*candidate
	backends   []*backendAsk
	missing    []missing    // Services
	canaries   []canaryPath // used by its paths
}

// reading reads one Ingress.
type reading struct {
	*Model
	at       *derive.Reads
	ing      *networkingv1.Ingress
	options  annotation.Options
	patterns int // how much of the limit of patterns is left
	*asks
}

// read finds what an Ingress asks for, and refuses by name what cannot be served.
func (m *Model) read(at *derive.Reads, name Name, a *annotated, _ *asks) (*asks, bool) {
	r := &reading{Model: m, at: at, ing: a.ing, options: *a.options, asks: &asks{}, patterns: m.patterns.Share(at, name.Namespace, name)}
	if r.options != (annotation.Options{}) {
		r.readSecrets()
	}
	spec := &r.ing.Spec
	if spec.DefaultBackend != nil {
		r.readDefault(spec.DefaultBackend)
	}
	for i := range spec.Rules {
		r.readRule(fieldPath{-1, i, -1, ""}, &spec.Rules[i])
	}
	return r.asks, true
}

func (r *reading) refuse(field fieldPath, reason string) { refuse(r.at, r.ing, field, reason) }
func (r *reading) warn(field fieldPath, reason string)   { warn(r.at, r.ing, field, reason) }

// owns refuses a host of another namespace.
func (r *reading) owns(field fieldPath, host string) bool {
	problem := r.hosts.NotOwned(r.at, host, r.ing.Namespace)
	if problem != "" {
		r.refuse(field, problem)
	}
	return problem == ""
}

func (r *reading) add(c candidate) {
	c.ing, c.place = r.ing, len(r.candidates)
	r.candidates = append(r.candidates, &c)
}

func (r *reading) readDefault(ref *networkingv1.IngressBackend) {
	field := fieldPath{-1, -1, -1, ".defaultBackend"}
	if name, ok := r.backend(field, ref, r.ofHost(claims.AnyHost)); ok && r.owns(field, claims.AnyHost) {
		r.add(candidate{field: field, host: claims.AnyHost, serves: name})
	}
}

func (r *reading) readRule(field fieldPath, rule *networkingv1.IngressRule) {
	host := rule.Host
	if host == "" {
		host = claims.AnyHost
	} else if problem := claims.HostProblem(host); problem != "" {
		r.refuse(field.sub(".host"), problem)
		return
	} else if warning := claims.HostWarning(host); warning != "" {
		r.warn(field.sub(".host"), warning)
	}
	if rule.HTTP == nil || !r.owns(field.sub(".host"), host) {
		return
	}
	if r.passes() {
		r.pass(field, host, rule.HTTP.Paths)
	}
	for i := range rule.HTTP.Paths {
		field.path = i
		r.readPath(field, host, &rule.HTTP.Paths[i])
	}
}

// readPath is the rule of a path: what it may be, and which backend it gets.
func (r *reading) readPath(field fieldPath, host string, p *networkingv1.HTTPIngressPath) {
	path := cmp.Or(p.Path, "/")
	asked := lineOf(r.options.Regex, host, p)
	if problem := pathProblem(path, asked.kind); problem != "" {
		r.refuse(field.sub(".path"), problem)
		return
	}
	if problem := pathTypeProblem(p.PathType); problem != "" {
		r.refuse(field.sub(".pathType"), problem)
		return
	}
	if r.options.Canary.Is { // the path belongs to another Ingress
		return
	}
	if asked.kind == pattern && !r.mayHavePattern(field, host, path) {
		return
	}
	options, split := r.ofPath(field, host, asked, path)
	name, ok := r.backend(field.sub(".backend"), &p.Backend, options)
	if !ok {
		return
	}
	if p.PathType == nil {
		r.warn(field.sub(".pathType"), fmt.Sprintf("it is missing, so that %s matches %[1]sx, too: write Prefix or Exact", path))
	}
	if asked.kind != pattern && strings.ContainsAny(path, patternSigns) {
		r.warn(
			field.sub(".path"),
			fmt.Sprintf("%q is matched as it stands: pathType Prefix matches all below a path, and the annotation use-regex makes paths patterns", short(path)),
		)
	}
	if split != nil {
		split.From = name
	}
	r.add(candidate{line: asked, field: field, host: host, serves: name, split: split})
}

// mayHavePattern bounds the patterns of a namespace. HAProxy tries them before the paths of
// others, so a host of all namespaces has none.
func (r *reading) mayHavePattern(field fieldPath, host, path string) bool {
	if owner, _ := r.hosts.Owners.Get(r.at, host); owner == claims.AllNamespaces {
		r.refuse(field.sub(".path"), "the host is for all namespaces, and a pattern could match paths of others: write the path without one")
		return false
	}
	weight := weightOf(path)
	if weight > r.patterns {
		r.refuse(
			field.sub(".path"),
			fmt.Sprintf("namespace %s has %s, where one with several repeats counts for some", r.ing.Namespace, r.Model.patterns.Over(r.at, r.ing.Namespace, "patterns")),
		)
		return false
	}
	r.patterns -= weight
	return true
}

// weightOf is the weight of a pattern that is served.
func weightOf(path string) int {
	is, _ := annotation.CheckPath(path)
	return is.Weight()
}

// weighPatterns is how much an Ingress takes of the limit of patterns.
func weighPatterns(name Name, a *annotated) (namespace string, weight int) {
	if !a.options.Regex || a.options.Canary.Is {
		return name.Namespace, 0
	}
	for i := range a.ing.Spec.Rules {
		rule := &a.ing.Spec.Rules[i]
		for j := 0; rule.HTTP != nil && j < len(rule.HTTP.Paths); j++ {
			p := &rule.HTTP.Paths[j]
			if path := cmp.Or(p.Path, "/"); lineOf(true, rule.Host, p).kind == pattern && pathProblem(path, pattern) == "" {
				weight += weightOf(path)
			}
		}
	}
	return name.Namespace, weight
}

// missing is a reference to a Service that does not exist.
type missing struct {
	field   fieldPath
	problem *problem
	service string
}

// maxGuesses bounds for how many missing Services of a namespace the meant one is looked for,
// and maxGuessed among how many.
const maxGuesses, maxGuessed = 10, 1000

// guess finds the Services that were meant, by the names that do not exist.
func (m *Model) guess(at *derive.Reads, namespace string, all []string, _ map[string]string) (map[string]string, bool) {
	services, _ := m.servicesOfSpace.Get(at, namespace)
	all = slices.Compact(slices.Clone(all))
	meant := map[string]string{}
	for _, name := range all[:min(len(all), maxGuesses)] {
		maps.Copy(meant, guessOf(name, services))
	}
	return meant, true
}

// guessOf suggests an existing Service.
func guessOf(name string, services derive.Ordered[string]) map[string]string {
	left := maxGuessed
	for svc := range services.All() {
		if annotation.Near(name, svc) {
			return map[string]string{name: "did you mean " + svc + "?"}
		}
		left--
		if left == 0 {
			break
		}
	}
	return nil
}

func (m missing) compare(other missing) int {
	return cmp.Or(cmp.Compare(m.field.tls, other.field.tls), cmp.Compare(m.field.rule, other.field.rule), cmp.Compare(m.field.path, other.field.path),
		cmp.Compare(m.field.end, other.field.end), cmp.Compare(m.service, other.service), cmp.Compare(m.problem.reason, other.problem.reason))
}

func onlyMissing(name Name, a *asks, add func(Name, missing)) {
	for _, one := range a.missing {
		add(name, one)
	}
}

// refuseMissing reports the Services that do not exist.
func (m *Model) refuseMissing(at *derive.Reads, name Name, all []missing, _ bool) (bool, bool) {
	meant, _ := m.guesses.Get(at, name.Namespace)
	ing, _ := m.mine.Get(at, name)
	for _, one := range all {
		p := one.problem
		limits.RefuseOnce(
			at,
			"Ingress",
			ing,
			reconcile.Refusal{Field: one.field.sub(p.end).String(), Reason: p.reason, Detail: meant[one.service], Warning: p.served},
		)
	}
	return true, true
}
