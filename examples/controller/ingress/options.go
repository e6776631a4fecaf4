package ingress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/certs"
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
func readAnnotations(at *derive.Reads, _ Name, ing *networkingv1.Ingress, _ *annotated) (*annotated, bool) {
	if !annotation.Has(ing.Annotations) {
		return &annotated{ing, &noOptions}, true
	}
	options, problems := annotation.Read(annotation.Ingress, ing.Annotations, noOptions)
	tellAnnotations(at, "Ingress", ing, problems)
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
		refuse(r.at, c.ing, c.field.sub(".backend"), fmt.Sprintf("namespace %s has more than the %s canaries of one namespace (canaries-per-namespace)", c.ing.Namespace, figure(r.Limits.CanariesPerNamespace)))
		return pointerTo(o), nil
	}
	if c.path.Backend.Service == nil {
		return pointerTo(o), nil // readAnnotations of the canary's own Ingress says so
	}
	to, ok := r.backendFor(c.ing, c.field.sub(".backend"), portRef{Name{Namespace: c.ing.Namespace, Name: c.path.Backend.Service.Name}, c.path.Backend.Service.Port}, pointerTo(o))
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

// tellUnusedCanary reports a canary that gets no requests.
func (m *Model) tellUnusedCanary(at *derive.Reads, name Name, all []*annotated, _ bool) (bool, bool) {
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

// secretRef is a Secret that annotations name.
type secretRef struct {
	Name
	byKey bool // users by key
}

func (s secretRef) compare(other secretRef) int {
	return cmp.Or(cmp.Compare(s.Name.Name, other.Name.Name), cmp.Compare(boolToInt(s.byKey), boolToInt(other.byKey)))
}

// inSpace returns the name of a Secret of a namespace that an annotation names.
func inSpace(namespace, name string) (Name, error) {
	if other, rest, has := strings.Cut(name, "/"); has {
		if name = rest; other != namespace {
			return Name{}, fmt.Errorf("Secret %s/%s is of another namespace, whose Secrets are not read: copy it to namespace %s", short(other), short(rest), namespace)
		}
	}
	return Name{Namespace: namespace, Name: name}, nil
}

func nameUserSecrets(name Name, a *annotated, add func(secretRef, *networkingv1.Ingress)) {
	if o := a.options; o.Auth.Secret != "" && !o.Closed {
		if secret, err := inSpace(name.Namespace, o.Auth.Secret); err == nil {
			add(secretRef{secret, o.Auth.Map}, a.ing)
		}
	}
}

// caRef is a Secret with authorities that annotations name.
type caRef struct {
	Name
	or string // the key if there is no ca.crt
}

func nameCASecrets(name Name, a *annotated, add func(caRef, *networkingv1.Ingress)) {
	if s := &a.options.Server; s.CA != "" && !a.options.Closed {
		if secret, err := inSpace(name.Namespace, s.CA); err == nil {
			add(caRef{secret, s.CAKey}, a.ing)
		}
	}
}

// secretOf returns a Secret, or says why there is none.
func (m *Model) secretOf(at *derive.Reads, name Name) (*corev1.Secret, error) {
	secret, ok := m.Secrets.Get(at, name)
	switch {
	case ok:
		return secret, nil
	case m.isOut(at, "Secret", name):
		return nil, fmt.Errorf("Secret %s is in quarantine", name)
	}
	return nil, fmt.Errorf("there is no Secret %s of type %s or %s", name, corev1.SecretTypeOpaque, corev1.SecretTypeTLS)
}

// Userlist are the users of a Secret.
type Userlist struct {
	Name   string
	Users  []annotation.User
	Secret *corev1.Secret
}

func (l *Userlist) compare(other *Userlist) int { return cmp.Compare(l.Name, other.Name) }

func (l *Userlist) equal(other *Userlist) bool {
	return l.Name == other.Name && l.Secret == other.Secret && slices.Equal(l.Users, other.Users)
}

// Owners makes the Secret answer for mistakes in the list.
func (l *Userlist) Owners() []any { return []any{l.Secret} }

// users is what became of a Secret with users.
type users struct {
	*Userlist
	cost    int // in microseconds of HAProxy
	problem string
}

// readUsers reads the users of a Secret.
func (m *Model) readUsers(at *derive.Reads, of secretRef, _ []*networkingv1.Ingress, was *users) (*users, bool) {
	secret, err := m.secretOf(at, of.Name)
	if err != nil {
		return &users{problem: err.Error()}, true
	}
	all, err := annotation.Users(secret.Data, of.byKey)
	if err != nil {
		return &users{problem: fmt.Sprintf("Secret %s: %v", of.Name, err)}, true
	}
	name := of.Namespace + "_" + of.Name.Name
	if of.byKey {
		name += "_map"
	}
	now := &users{Userlist: &Userlist{name, all, secret}}
	for _, u := range all {
		now.cost += u.Cost()
	}
	if was != nil && was.Userlist != nil && was.Userlist.equal(now.Userlist) {
		return was, true
	}
	return now, true
}

// allowUsers leaves out the lists that HAProxy would take too long to read.
func (m *Model) allowUsers(at *derive.Reads, of secretRef, u, _ *users) (*users, bool) {
	if u.cost > 0 && m.userBudget.Share(at, of.Namespace, of) < u.cost {
		return &users{problem: fmt.Sprintf("Secret %s: HAProxy would take more than the %s ms of one namespace to read its users (user-milliseconds-per-namespace): write lighter hashes, by openssl passwd -6",
			of.Name, figure(m.Limits.UserMillisecondsPerNamespace))}, true
	}
	return u, true
}

func onlyLists(_ *derive.Reads, _ secretRef, u *users, _ *Userlist) (*Userlist, bool) {
	return u.Userlist, u.Userlist != nil
}

// authorities is a file with certificates of authorities.
type authorities struct {
	file    dataplane.File
	or      string // see caRef
	secret  *corev1.Secret
	problem string
}

func (a *authorities) compare(other *authorities) int {
	return cmp.Or(cmp.Compare(a.file.Name, other.file.Name), cmp.Compare(a.or, other.or))
}

// readAuthorities makes the file from ca.crt of a Secret, or from another key if that is missing.
func (m *Model) readAuthorities(at *derive.Reads, of caRef, _ []*networkingv1.Ingress, _ *authorities) (*authorities, bool) {
	name := of.Name
	secret, err := m.secretOf(at, name)
	if err != nil {
		return &authorities{problem: err.Error()}, true
	}
	file, key := dataplane.FileName(dataplane.CA, "ca_"+name.Namespace+"_"+name.Name), "ca.crt"
	if secret.Data[key] == nil {
		key = of.or
	}
	content, err := certs.Authorities(secret.Data[key], m.Limits.CertificatesPerSecret)
	if err == nil {
		err = dataplane.CheckFileName(dataplane.CA, file)
	}
	if err != nil {
		return &authorities{problem: fmt.Sprintf("Secret %s: key %s: %v", name, key, err)}, true
	}
	return &authorities{file: dataplane.File{Kind: dataplane.CA, Name: file, Content: content}, or: of.or, secret: secret}, true
}

// byFile adds authorities to those of a file. Several references to a Secret may make the same.
func byFile(_ caRef, a *authorities, add func(string, *authorities)) {
	if a.secret != nil {
		add(a.file.Name, a)
	}
}

// readSecrets reads the Secrets that the annotations of the Ingress name.
func (r *reading) readSecrets() {
	if a := &r.options.Auth; a.Secret != "" && !r.options.Closed {
		secret, err := inSpace(r.ing.Namespace, a.Secret)
		list := &users{}
		if err == nil {
			list, _ = r.userlists.Get(r.at, secretRef{secret, a.Map})
		} else {
			list.problem = err.Error()
		}
		if list.problem != "" {
			r.close("auth-secret", list.problem)
		} else {
			*a = annotation.Auth{Userlist: list.Userlist.Name, Realm: a.Realm}
		}
	}
	if s := &r.options.Server; s.CA != "" && !r.options.Closed {
		secret, err := inSpace(r.ing.Namespace, s.CA)
		ca := &authorities{}
		if err == nil {
			ca, _ = r.authorities.Get(r.at, caRef{secret, s.CAKey})
		} else {
			ca.problem = err.Error()
		}
		if ca.problem != "" {
			r.close("proxy-ssl-secret", ca.problem)
		} else {
			s.CA, s.CAKey, s.CAFile = "", "", ca.file.Name
		}
	}
}

// close makes all paths of the Ingress answer 503. name is that of the annotation at fault, in
// ingress-nginx.
func (r *reading) close(name, reason string) {
	given := annotation.Given(r.ing.Annotations, annotation.NGINX+name)
	limits.Refuse(r.at, "Ingress", r.ing, reconcile.Refusal{Field: "metadata.annotations[" + given + "]", Reason: reason + "; the paths of the Ingress answer 503 until it is right"})
	r.options = annotation.Options{Closed: true, Regex: r.options.Regex, Canary: r.options.Canary}
}
