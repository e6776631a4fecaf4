// Package migrate says what becomes of the annotations of other controllers.
package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
)

// Report says of each annotation of ingress-nginx and of haproxytech's controller what becomes
// of it here, whatever the class of the Ingress. secret returns a Secret, or nil.
func Report(ingresses []*networkingv1.Ingress, services []*corev1.Service, secret func(keys ...string) *corev1.Secret) string {
	m := &migration{count: map[string]int{}, secret: secret}
	for _, ing := range ingresses {
		m.ingress(ing)
	}
	for _, svc := range services {
		m.report("Service "+svc.Namespace+"/"+svc.Name, annotation.Verdicts(annotation.Service, svc.Annotations, nil))
	}
	return m.text.String() + m.summary()
}

// migration collects the output.
type migration struct {
	secret  func(keys ...string) *corev1.Secret
	text    strings.Builder
	count   map[string]int // by word
	objects int
}

// ingress reads one Ingress alone, as if it had our class.
func (m *migration) ingress(ing *networkingv1.Ingress) {
	if !annotation.Has(ing.Annotations) && len(ing.Spec.TLS) == 0 {
		return
	}
	own := ing.DeepCopy()
	own.Spec.IngressClassName = nil
	delete(own.Annotations, "kubernetes.io/ingress.class")
	_, problems := annotation.Read(annotation.Ingress, ing.Annotations, annotation.Options{})
	for _, p := range problems { // one that closes the paths would hide the mistakes of others
		if !p.Warning {
			delete(own.Annotations, p.Name)
		}
	}
	options, _ := annotation.Read(annotation.Ingress, own.Annotations, annotation.Options{})
	names := []string{options.Auth.Secret, options.Server.CA}
	for _, t := range ing.Spec.TLS {
		names = append(names, t.SecretName)
	}
	var secrets []*corev1.Secret
	for _, name := range names {
		if secret := m.secret(ing.Namespace, strings.TrimPrefix(name, ing.Namespace+"/")); secret != nil {
			secrets = append(secrets, secret)
		}
	}
	routes := ingress.Alone(own, secrets...)
	wrong, more := map[string]string{}, []annotation.Verdict(nil)
	for _, r := range routes.Refused {
		name, is := strings.CutPrefix(r.Field, "metadata.annotations[")
		switch {
		case is && !r.Warning:
			wrong[strings.TrimSuffix(name, "]")] = r.Reason
		case strings.HasSuffix(r.Field, ".path") && r.Object.Kind == "Ingress" && annotation.Has(ing.Annotations):
			more = append(more, annotation.Verdict{Name: r.Field, Is: map[bool]string{true: "differs", false: "refused"}[r.Warning], Why: r.Reason})
		}
	}
	all := append(annotation.Verdicts(annotation.Ingress, ing.Annotations, wrong), more...)
	if v := annotation.Unsaid(ing.Annotations); len(ing.Spec.TLS) > 0 && v.Name != "" {
		all = append(all, v)
	}
	m.report("Ingress "+ing.Namespace+"/"+ing.Name, all)
}

func (m *migration) report(object string, all []annotation.Verdict) {
	if len(all) == 0 {
		return
	}
	m.objects++
	fmt.Fprintln(&m.text, object)
	for _, v := range all {
		m.count[v.Is]++
		fmt.Fprintln(&m.text, "  "+v.String())
	}
}

func (m *migration) summary() string {
	var words []string
	for _, word := range slices.Sorted(maps.Keys(m.count)) {
		words = append(words, fmt.Sprintf("%d %s", m.count[word], word))
	}
	if len(words) == 0 {
		return "no Ingress or Service has an annotation of ingress-nginx or haproxytech\n"
	}
	return fmt.Sprintf("%d resources: %s; docs/annotations.md has all\n", m.objects, strings.Join(words, ", "))
}
