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
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/certs"
	"github.com/hapticsdk/haptic/reconcile/limits"
)

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
		name = rest
		if other != namespace {
			return Name{}, fmt.Errorf(
				"Secret %s/%s is of another namespace, whose Secrets are not read: copy it to namespace %s",
				short(other),
				short(rest),
				namespace,
			)
		}
	}
	return Name{Namespace: namespace, Name: name}, nil
}

// SecretsOf returns the Secrets that an Ingress names: those of its spec.tls, and those of its
// annotations. The model reads no others, but for that of [Operator.Certificate] and those of
// [Deployed].
func SecretsOf(ing *networkingv1.Ingress) (tls, annotated []Name) {
	for i := range ing.Spec.TLS { // some may be the same: to compare thousands takes longer
		if s := ing.Spec.TLS[i].SecretName; s != "" && nameProblem(s) == "" {
			tls = append(tls, Name{Namespace: ing.Namespace, Name: s})
		}
	}
	for _, text := range annotation.Secrets(ing.Annotations) {
		if name, err := inSpace(ing.Namespace, text); err == nil && nameProblem(name.Name) == "" {
			annotated = append(annotated, name)
		}
	}
	return tls, annotated
}

// Deployed returns the Secrets with the certificates of a configuration; nil: there is none. One
// of them stays in use while an Ingress names another one that is not good.
func Deployed(previous *dataplane.Config) (all []Name) {
	if previous == nil {
		return nil
	}
	for _, f := range previous.Files() {
		if secret := secretOfFile(f.Name); f.Kind == dataplane.Certificate && secret.Name != "" {
			all = append(all, secret)
		}
	}
	return all
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
	case ok && k8swatch.Withheld(secret) != "":
		return nil, fmt.Errorf("Secret %s is not read: %w", name, unread(secret))
	case ok:
		return secret, nil
	case m.isOut(at, "Secret", name):
		return nil, fmt.Errorf("Secret %s is in quarantine", name)
	}
	return nil, fmt.Errorf("there is no Secret %s of type %s or %s", name, corev1.SecretTypeOpaque, corev1.SecretTypeTLS)
}

// unread says why a Secret is not read, or nil.
func unread(secret *corev1.Secret) error {
	if why := k8swatch.Withheld(secret); why != "" {
		return fmt.Errorf("%s (secret-bytes-per-namespace)", why)
	}
	return nil
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

// deriveSecrets reads the Secrets that annotations name.
func (m *Model) deriveSecrets(of *ofIngresses) {
	named := derive.GroupBy("users named", of.all, nameUserSecrets, byAge)
	read := derive.Each("users read", named, m.readUsers)
	order := limits.OrderOf("users by age", named, func(of secretRef, all []*networkingv1.Ingress) (string, *networkingv1.Ingress) {
		return of.Namespace, all[0]
	}, byAge, secretRef.compare)
	m.userBudget = limits.NewBudget("time of users", read, func(of secretRef, u *users) (string, int) {
		return of.Namespace, u.cost
	}, order, limits.Bound{Name: "user-milliseconds", Namespace: 1000 * m.Limits.UserMillisecondsPerNamespace,
		All: 1000 * m.Limits.UserMillisecondsOfAll, Item: 1600, Scale: 1000}, limits.Whole)
	m.userlists = derive.Each("users", read, m.allowUsers)
	of.users = m.userlists
	m.authorities = derive.Each("authorities", derive.GroupBy("authorities named", of.all, nameCASecrets, byAge), m.readAuthorities)
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
		return &users{problem: fmt.Sprintf("Secret %s: to read its users, HAProxy would take %s: write lighter hashes, by openssl passwd -6",
			of.Name, m.userBudget.Over(at, of.Namespace, "ms"))}, true
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
	limits.Refuse(
		r.at,
		"Ingress",
		r.ing,
		reconcile.Refusal{Field: "metadata.annotations[" + given + "]", Reason: reason + "; the paths of the Ingress answer 503 until it is right"},
	)
	r.options = annotation.Options{Closed: true, Regex: r.options.Regex, Canary: r.options.Canary}
}
