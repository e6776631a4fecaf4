package ingress

import (
	"cmp"
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/claims"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

// annotated is an Ingress with what its annotations ask for.
type annotated struct {
	ing     *networkingv1.Ingress
	options *annotation.Options
}

// noOptions are those of an Ingress without annotations of ours.
var noOptions annotation.Options // constant in effect

// readAnnotations reads and reports the annotations of an Ingress.
func (m *Model) readAnnotations(at *derive.Reads, _ Name, ing *networkingv1.Ingress, _ *annotated) (*annotated, bool) {
	if !annotation.Has(ing.Annotations) {
		return &annotated{ing, &noOptions}, true
	}
	options, problems := m.Annotations.Read(annotation.Ingress, ing.Annotations, noOptions)
	warnOfAnnotations(at, "Ingress", ing, problems)
	return &annotated{ing, &options}, true
}

// ofHost returns the options of the Ingress for all paths of a host; nil: none.
func (r *reading) ofHost(host string) *annotation.Options { return pointerTo(r.optionsOf(host)) }

func (r *reading) optionsOf(host string) annotation.Options {
	o := r.options
	if !o.Redirect.Force && !r.hasTLS(host) {
		o.Redirect = annotation.TLSRedirect{}
	}
	o.Regex, o.Passthrough, o.Redirect.Force, o.Canary = false, false, false, annotation.Canary{}
	return o
}

// hasTLS reports whether spec.tls of the Ingress names a host.
func (r *reading) hasTLS(host string) bool {
	return slices.ContainsFunc(r.ing.Spec.TLS, func(t networkingv1.IngressTLS) bool {
		return len(t.Hosts) == 0 || slices.ContainsFunc(t.Hosts, func(h string) bool { return h == host || covers(h, host) })
	})
}

// ofPath returns the options of a path, and the canary that takes a part of it; nil: none.
func (r *reading) ofPath(field fieldPath, host string, asked line, path string) (*annotation.Options, *Canary) {
	if r.options == (annotation.Options{}) && !r.hasCanaries.Get(r.at) {
		return nil, nil
	}
	o := r.optionsOf(host)
	if o.RewriteTo != "" && o.RewriteFrom == "" {
		groups := 0
		if asked.kind == pattern {
			is, _ := annotation.CheckPath(path)
			groups = is.Groups
		}
		o.RewriteFrom = annotation.Pattern("^" + path)
		if most := o.RewriteTo.Groups(); most > groups {
			r.refuse(field.sub(".path"), fmt.Sprintf("it has %d groups, and rewrite-target names group %d: it is served without being rewritten", groups, most))
			o.RewriteFrom, o.RewriteTo = "", ""
		}
	}
	c, ok := r.canaryOf.Get(r.at, canaryPath{r.ing.Namespace, asked.key})
	if !ok || o.Closed {
		return pointerTo(o), nil
	}
	r.canaries = append(r.canaries, canaryPath{r.ing.Namespace, asked.key})
	if r.canaryBudget.Share(r.at, r.ing.Namespace, nameOf(c.ing)) <= c.place {
		refuse(
			r.at,
			c.ing,
			c.field.sub(".backend"),
			fmt.Sprintf("namespace %s has %s", c.ing.Namespace, r.canaryBudget.Over(r.at, c.ing.Namespace, "canaries")),
		)
		return pointerTo(o), nil
	}
	if c.path.Backend.Service == nil {
		return pointerTo(o), nil // readAnnotations of the canary's own Ingress says so
	}
	to, ok := r.backendFor(
		c.ing,
		c.field.sub(".backend"),
		portRef{Name{Namespace: c.ing.Namespace, Name: c.path.Backend.Service.Name}, c.path.Backend.Service.Port},
		pointerTo(o),
	)
	if !ok {
		return pointerTo(o), nil
	}
	o.Canary = annotation.Canary{Is: true, Value: to + " " + c.ing.Name} // its own backend, whatever the weight
	return pointerTo(o), &Canary{To: to, Canary: c.asks, Ingress: c.ing}
}

// Canary takes a part of the requests for a backend.
type Canary struct {
	From, To string // backends
	annotation.Canary
	Ingress *networkingv1.Ingress
}

func (c *Canary) compare(other *Canary) int { return cmp.Compare(c.From, other.From) }

// Names are the [Path.Names] of the requests that it takes.
func (c *Canary) Names() string { return namesOfRoute(c.Ingress, c.To) }

// PerMillion is how many of a million requests it takes by chance.
func (c *Canary) PerMillion() int { return int(int64(c.Weight) * 1_000_000 / int64(c.Total)) }

// canaryPath names a path whose requests a canary takes a part of.
type canaryPath struct{ namespace, key string }

// canary is a path of an Ingress that takes a part of another Ingress's requests.
type canary struct {
	asks  annotation.Canary
	ing   *networkingv1.Ingress
	place int // among the canaries of the Ingress
	field fieldPath
	path  *networkingv1.HTTPIngressPath
	other bool // by the kind of line that the other Ingress may have, but this one has not
}

func (c *canary) compare(other *canary) int {
	return cmp.Or(byAge(c.ing, other.ing), cmp.Compare(c.place, other.place))
}

// findCanaries adds the paths of a canary to the paths of others.
func findCanaries(_ Name, a *annotated, add func(canaryPath, *canary)) {
	if !a.options.Canary.Is {
		return
	}
	place := 0
	for i := range a.ing.Spec.Rules {
		rule := &a.ing.Spec.Rules[i]
		for j := 0; rule.HTTP != nil && j < len(rule.HTTP.Paths); j++ {
			path := &rule.HTTP.Paths[j]
			for _, regex := range []bool{false, true} { // whichever the other Ingress has
				key := lineOf(regex, cmp.Or(rule.Host, claims.AnyHost), path).key
				add(canaryPath{a.ing.Namespace, key}, &canary{a.options.Canary, a.ing, place, fieldPath{-1, i, j, ""}, path, regex})
			}
			place++
		}
	}
}

// countCanaries is how much an Ingress takes of the limit of canaries.
func countCanaries(name Name, a *annotated) (namespace string, n int) {
	if a.options.Canary.Is {
		for i := range a.ing.Spec.Rules {
			if http := a.ing.Spec.Rules[i].HTTP; http != nil {
				n += len(http.Paths)
			}
		}
	}
	return name.Namespace, n
}

// firstCanary gives a path to the oldest canary of it.
func firstCanary(at *derive.Reads, _ canaryPath, all []*canary, _ *canary) (*canary, bool) {
	first := all[0]
	for _, c := range all[1:] {
		if !c.other {
			refuse(at, c.ing, c.field.sub(".path"), fmt.Sprintf("Ingress %s/%s is the canary of it already", first.ing.Namespace, first.ing.Name))
		}
	}
	return first, true
}

func (a *annotated) compare(other *annotated) int { return byAge(a.ing, other.ing) }

func onlyCanaries(name Name, a *annotated, add func(Name, *annotated)) {
	if a.options.Canary.Is {
		add(name, a)
	}
}

// warnOfUnusedCanary reports a canary that gets no requests.
func (m *Model) warnOfUnusedCanary(at *derive.Reads, name Name, all []*annotated, _ bool) (bool, bool) {
	a, used := all[0], false
	findCanaries(name, a, func(path canaryPath, _ *canary) {
		c, _ := m.canaryOf.Get(at, path)
		n, _ := m.canaryUses.Get(at, path)
		used = used || n > 0 && c != nil && c.ing == a.ing
	})
	if !used {
		limits.Refuse(at, "Ingress", a.ing, reconcile.Refusal{Field: "metadata.annotations[" + annotation.NGINX + "canary]", Warning: true,
			Reason: "no other Ingress of the namespace has one of these hosts and paths, so this canary gets no requests: first write that Ingress, without the annotation"})
	}
	return used, true
}
