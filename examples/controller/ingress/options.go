package ingress

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/examples/controller/tlspair"
	"github.com/hapticsdk/haptic/reconcile"
)

// pattern is the kind of claims for paths that are regular expressions.
const pattern networkingv1.PathType = "pattern"

// Canary takes a part of the requests for a backend.
type Canary struct {
	From, To string // backends
	annotation.Canary
	Ingress *networkingv1.Ingress
}

func (c Canary) compare(other Canary) int { return cmp.Compare(c.From, other.From) }

// Names are the [Path.Names] of the requests that it takes.
func (c Canary) Names() string { return namesOfRoute(c.Ingress, c.To) }

// PerMillion is how many of a million requests it takes by chance.
func (c Canary) PerMillion() int { return int(int64(c.Weight) * 1_000_000 / int64(c.Total)) }

// asked is what the annotations of an Ingress ask for.
type asked struct {
	options  annotation.Options
	problems []annotation.Problem
}

// canary is a path of an Ingress that takes a part of another Ingress's requests.
type canary struct {
	asks  annotation.Canary
	ing   *networkingv1.Ingress
	field fieldPath
	path  *networkingv1.HTTPIngressPath
	to    string // backend
	used  bool
}

func (c *canary) of(from string) Canary { return Canary{from, c.to, c.asks, c.ing} }

// annotated reads the annotations of the current Ingress, once.
func (b *builder) annotated() *asked {
	if !annotation.Has(b.ing.Annotations) {
		return &asked{}
	}
	all, known := b.asked[b.ing]
	if !known {
		all = &asked{}
		all.options, all.problems = annotation.Read(annotation.Ingress, b.ing.Annotations, annotation.Options{})
		if b.asked == nil {
			b.asked = map[*networkingv1.Ingress]*asked{}
		}
		b.asked[b.ing] = all
	}
	return all
}

// readAnnotations reads and reports the annotations of the current Ingress.
func (b *builder) readAnnotations() {
	all := b.annotated()
	b.options = all.options
	if o := &b.options; o.Canary.Is || o.Auth.Secret != "" || o.Server.CA != "" || o.Passthrough { // it depends on other objects
		b.fast.isOdd(b.ing)
	}
	b.tellAnnotations("Ingress", b.ing, all.problems)
	if b.options != (annotation.Options{}) {
		b.readSecrets()
	}
}

func (b *builder) tellAnnotations(kind string, o metav1.Object, problems []annotation.Problem) {
	for _, p := range problems {
		b.tell(kind, o, reconcile.Refusal{Field: p.Field(), Reason: p.Reason, Warning: p.Warning})
	}
}

// close makes all paths of the current Ingress answer 503. name is that of the annotation at
// fault, in ingress-nginx.
func (b *builder) close(name, reason string) {
	given := annotation.Given(b.ing.Annotations, annotation.NGINX+name)
	b.tell("Ingress", b.ing, reconcile.Refusal{Field: "metadata.annotations[" + given + "]", Reason: reason + "; the paths of the Ingress answer 503 until it is right"})
	b.options = annotation.Options{Closed: true, Regex: b.options.Regex, Canary: b.options.Canary}
}

// readCanary notes the paths of a canary for the Ingresses that have them.
func (b *builder) readCanary() {
	asks := b.annotated().options
	if !asks.Canary.Is {
		return
	}
	for i := range b.ing.Spec.Rules {
		rule := &b.ing.Spec.Rules[i]
		for j := 0; rule.HTTP != nil && j < len(rule.HTTP.Paths); j++ {
			path := &rule.HTTP.Paths[j]
			c := &canary{asks: asks.Canary, ing: b.ing, field: fieldPath{-1, i, j, ".backend"}, path: path}
			for _, regex := range []bool{false, true} { // whichever the other Ingress has
				line := b.ing.Namespace + " " + lineOf(regex, cmp.Or(rule.Host, anyHost), path).key
				if b.canaries == nil {
					b.canaries = map[string]*canary{}
				}
				if first := b.canaries[line]; first == nil {
					b.canaries[line] = c
				} else if !regex {
					b.refuse(fieldPath{-1, i, j, ".path"}, fmt.Sprintf("Ingress %s/%s is the canary of it already", first.ing.Namespace, first.ing.Name))
				}
			}
		}
	}
}

// reportCanaries reports unused canaries.
func (b *builder) reportCanaries() {
	used := map[*networkingv1.Ingress]bool{}
	for _, c := range b.canaries {
		used[c.ing] = used[c.ing] || c.used
	}
	for ing, is := range used {
		if !is {
			b.tell("Ingress", ing, reconcile.Refusal{Field: "metadata.annotations[" + annotation.NGINX + "canary]", Warning: true,
				Reason: "no other Ingress of the namespace has one of these hosts and paths, so this canary gets no requests: first write that Ingress, without the annotation"})
		}
	}
}

// ofHost returns the options of the current Ingress for all paths of a host.
func (b *builder) ofHost(host string) annotation.Options {
	o := b.options
	if !o.Redirect.Force && !b.hasTLS(host) {
		o.Redirect = annotation.TLSRedirect{}
	}
	o.Regex, o.Passthrough, o.Redirect.Force, o.Canary = false, false, false, annotation.Canary{}
	return o
}

// ofPath returns the options of a path, and the canary that takes a part of it; nil: none.
func (b *builder) ofPath(field fieldPath, host string, line claim, path string) (annotation.Options, *canary) {
	o := b.ofHost(host)
	if o.RewriteTo != "" && o.RewriteFrom == "" {
		groups := 0
		if line.kind == pattern {
			groups, _ = annotation.CheckPattern(path)
		}
		o.RewriteFrom = annotation.Pattern("^" + path)
		if most := o.RewriteTo.Groups(); most > groups {
			b.refuse(field.sub(".path"), fmt.Sprintf("it has %d groups, and rewrite-target names group %d: it is served without being rewritten", groups, most))
			o.RewriteFrom, o.RewriteTo = "", ""
		}
	}
	c := b.canaries[b.ing.Namespace+" "+line.key]
	if c == nil || o.Closed {
		return o, nil
	}
	b.fast.isOdd(b.ing)
	this := b.ing
	b.begin(c.ing)
	if b.space.canaries++; b.space.canaries > b.limits.CanariesPerNamespace {
		b.refuse(c.field, fmt.Sprintf("namespace %s has more than the %s canaries of one namespace (canaries-per-namespace)", c.ing.Namespace, figure(b.limits.CanariesPerNamespace)))
		b.begin(this)
		return o, nil
	}
	to, ok := b.backend(c.field, &c.path.Backend, b.share(o))
	b.begin(this)
	if c.used = true; !ok {
		return o, nil
	}
	split := *c
	split.to, o.Canary = to, annotation.Canary{Is: true, Value: to + " " + c.ing.Name} // its own backend, whatever the weight
	return o, &split
}

// hasTLS reports whether spec.tls of the Ingress names a host.
func (b *builder) hasTLS(host string) bool {
	return slices.ContainsFunc(b.ing.Spec.TLS, func(t networkingv1.IngressTLS) bool {
		return len(t.Hosts) == 0 || slices.ContainsFunc(t.Hosts, func(h string) bool { return h == host || covers(h, host) })
	})
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

// share makes equal options one pointer; nil: no options.
func (b *builder) share(o annotation.Options) *annotation.Options {
	if o == (annotation.Options{}) {
		return nil
	}
	is := b.shared[o]
	if is == nil {
		if b.shared == nil {
			b.shared, b.hashes = map[annotation.Options]*annotation.Options{}, map[*annotation.Options]string{}
		}
		is = &o
		b.shared[o], b.hashes[is] = is, o.Hash()
	}
	return is
}

func equal(x, y *annotation.Options) bool { return x == y || x != nil && y != nil && *x == *y }

// withService adds the options of a Service.
func (b *builder) withService(of *annotation.Options, svc *corev1.Service, used *corev1.ServicePort) *annotation.Options {
	protocol := ""
	if used != nil && used.AppProtocol != nil {
		protocol = *used.AppProtocol
	}
	has := annotation.Has(svc.Annotations)
	if !has && protocol == "" || of != nil && of.Closed {
		return of
	}
	o := annotation.Options{}
	if of != nil {
		o = *of
	}
	if has {
		var problems []annotation.Problem
		o, problems = annotation.Read(annotation.Service, svc.Annotations, o)
		b.tellAnnotations("Service", svc, problems)
	}
	o.AppProtocol(protocol)
	return b.share(o)
}

// Userlist are the users of a Secret.
type Userlist struct {
	Name   string
	Users  []annotation.User
	Secret *corev1.Secret
}

func (l Userlist) compare(other Userlist) int { return cmp.Compare(l.Name, other.Name) }

func (l *Userlist) equal(other *Userlist) bool {
	return l.Name == other.Name && l.Secret == other.Secret && slices.Equal(l.Users, other.Users)
}

// Owners makes the Secret answer for mistakes in the list.
func (l Userlist) Owners() []any { return []any{l.Secret} }

// readSecrets reads the Secrets that the annotations of the current Ingress name.
func (b *builder) readSecrets() {
	if a := &b.options.Auth; a.Secret != "" && !b.options.Closed {
		name, err := b.userlist(a.Secret, a.Map)
		if err != nil {
			b.close("auth-secret", err.Error())
		} else {
			*a = annotation.Auth{Userlist: name, Realm: a.Realm}
		}
	}
	if s := &b.options.Server; s.CA != "" && !b.options.Closed {
		name, err := b.caFile(s.CA, s.CAKey)
		if err != nil {
			b.close("proxy-ssl-secret", err.Error())
		} else {
			s.CA, s.CAKey, s.CAFile = "", "", name
		}
	}
}

// secretOf returns a Secret in the namespace of the current Ingress.
func (b *builder) secretOf(name string) (*corev1.Secret, error) {
	ns := b.ing.Namespace
	if other, rest, has := strings.Cut(name, "/"); has {
		if name = rest; other != ns {
			return nil, fmt.Errorf("Secret %s/%s is of another namespace, whose Secrets are not read: copy it to namespace %s", short(other), short(rest), ns)
		}
	}
	full := ns + "/" + name
	if b.read == nil {
		b.read = map[string]bool{}
	}
	b.read[full] = true
	secret, ok := reconcile.ToRender(b.cluster.Excluded, b.cluster.Secret(ns, name))
	switch {
	case !ok:
		return nil, fmt.Errorf("Secret %s is in quarantine", full)
	case secret == nil:
		return nil, fmt.Errorf("there is no Secret %s of type %s or %s", full, corev1.SecretTypeOpaque, corev1.SecretTypeTLS)
	}
	return secret, nil
}

// userlist returns the name of the list made from a Secret.
func (b *builder) userlist(secretName string, byKey bool) (name string, err error) {
	secret, err := b.secretOf(secretName)
	if err != nil {
		return "", err
	}
	name = secret.Namespace + "_" + secret.Name
	if byKey {
		name += "_map"
	}
	if b.lists[name] != nil {
		return name, nil
	}
	users, err := annotation.Users(secret.Data, byKey)
	if err != nil {
		return "", fmt.Errorf("Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	cost := 0
	for _, u := range users {
		cost += u.Cost()
	}
	if b.space.users += cost; b.space.users > b.limits.UserMillisecondsPerNamespace*1000 {
		b.space.users -= cost
		return "", fmt.Errorf("Secret %s/%s: HAProxy would take more than the %s ms of one namespace to read its users (user-milliseconds-per-namespace): write lighter hashes, by openssl passwd -6", secret.Namespace, secret.Name, figure(b.limits.UserMillisecondsPerNamespace))
	}
	if b.lists == nil {
		b.lists = map[string]*Userlist{}
	}
	b.lists[name] = &Userlist{name, users, secret}
	return name, nil
}

// caFile returns the file made from ca.crt of a Secret, or from another key if that is missing.
func (b *builder) caFile(secretName, or string) (file string, err error) {
	secret, err := b.secretOf(secretName)
	if err != nil {
		return "", err
	}
	file = dataplane.FileName(dataplane.CA, "ca_"+secret.Namespace+"_"+secret.Name)
	at, key := dataplane.Position{Kind: dataplane.CA, Name: file}, "ca.crt"
	if secret.Data[key] == nil {
		key = or
	}
	if b.routes.FileOwners[at] != nil && secret.Data[key] != nil {
		return file, nil
	}
	content, err := authorities(secret.Data[key], b.limits.CertificatesPerSecret)
	if err == nil {
		err = dataplane.CheckFileName(dataplane.CA, file)
	}
	if err != nil {
		return "", fmt.Errorf("Secret %s/%s: key %s: %w", secret.Namespace, secret.Name, key, err)
	}
	b.routes.FileOwners[at] = []any{secret}
	b.routes.Files = append(b.routes.Files, dataplane.File{Kind: dataplane.CA, Name: file, Content: content})
	return file, nil
}

// authorities reads certificates, and writes them anew.
func authorities(data []byte, most int) ([]byte, error) {
	var out bytes.Buffer
	count := 0
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if count++; count > most || len(block.Bytes) > tlspair.MaxChainBytes {
			return nil, fmt.Errorf("it has more than the %s certificates of one Secret (certificates-per-secret), or one is larger than %s bytes", figure(most), figure(tlspair.MaxChainBytes))
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err == nil {
			err = tlspair.Check(c)
		}
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", count, err)
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}); err != nil {
			return nil, err
		}
	}
	if count == 0 {
		return nil, errors.New("it has no certificate in PEM")
	}
	return out.Bytes(), nil
}

// userlists are those that annotations name, sorted.
func (b *builder) userlists() (all []Userlist) {
	for _, name := range slices.Sorted(maps.Keys(b.lists)) {
		all = append(all, *b.lists[name])
	}
	return all
}
