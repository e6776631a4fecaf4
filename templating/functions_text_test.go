package templating_test

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/hapticsdk/haptic/templating"
)

// textual has a text for machines and one for people.
type textual struct{ s string }

func (t *textual) MarshalText() ([]byte, error) {
	if t.s == "" {
		return nil, errors.New("it is empty")
	}
	return []byte(t.s), nil
}
func (t *textual) String() string { return "for people: " + t.s }

// TestTexts shows values of the types that Kubernetes and Go have, as they are
// and by tostring.
func TestTexts(t *testing.T) {
	exact, port, half := networkingv1.PathTypeExact, intstr.FromInt32(80), resource.MustParse("0.5")
	at := time.Date(2024, 5, 6, 7, 8, 9, 0, time.FixedZone("", 7200))
	const none, null = "has no text", "the value is nil"
	for _, tt := range []struct {
		v             any
		want, refused string
	}{
		{v: exact, want: "Exact"},
		{v: &exact, want: "Exact"},
		{v: types.UID("4-2"), want: "4-2"},
		{v: types.NamespacedName{Namespace: "a", Name: "b"}, want: "a/b"},
		{v: port, want: "80"},
		{v: &port, want: "80"},
		{v: intstr.FromString(`a"b`), want: `a"b`},
		{v: half, want: "500m"},
		{v: &half, want: "500m"},
		{v: metav1.NewTime(at), want: "2024-05-06T05:08:09Z"},
		{v: &metav1.Time{Time: at}, want: "2024-05-06T05:08:09Z"},
		{v: metav1.Duration{Duration: time.Minute}, want: "1m0s"},
		{v: at, want: "2024-05-06T07:08:09+02:00"},
		{v: time.Minute, want: "1m0s"},
		{v: time.March, want: "March"},
		{v: netip.MustParseAddr("2001:db8::1"), want: "2001:db8::1"},
		{v: &url.URL{Scheme: "https", Host: "a.test"}, want: "https://a.test"},
		{v: url.URL{Scheme: "https", Host: "a.test"}, want: "https://a.test"},
		{v: textual{"t"}, want: "t"},
		{v: &textual{"t"}, want: "t"},
		{v: errors.New("why"), want: "why"},
		{v: &textual{}, refused: "it is empty"},
		{v: metav1.Time{}, refused: null},
		{v: (*metav1.Time)(nil), refused: null},
		{v: (*textual)(nil), refused: null},
		{v: (*networkingv1.PathType)(nil), refused: null},
		{v: networkingv1.ServiceBackendPort{Number: 80}, refused: "v1.ServiceBackendPort " + none},
		{v: &networkingv1.Ingress{}, refused: "v1.Ingress " + none},
		{v: &corev1.Secret{Data: map[string][]byte{"k": []byte("s3cret")}}, refused: "v1.Secret " + none},
		{v: corev1.Secret{}, refused: "v1.Secret " + none},
		{v: metav1.ObjectMeta{}, refused: "v1.ObjectMeta " + none},
		{v: struct{ A int }{1}, refused: "struct { A int } " + none},
		{v: []string{"a"}, refused: "[]string " + none},
	} {
		t.Run(fmt.Sprintf("%T", tt.v), func(t *testing.T) {
			for _, text := range []string{"{{ x }}", "{{ tostring(x) }}"} {
				got, err := renderWith(t, tt.v, "a.http", text)
				check(t, got, err, tt.want, tt.refused)
			}
		})
	}
}

// TestNilPointers has paths of fields that end early.
func TestNilPointers(t *testing.T) {
	const path = "ing.Spec.DefaultBackend.Service.Name"
	for _, tt := range []struct{ template, at, line string }{
		{"a\n  {{ " + path + " }}", "a.cfg:2:6", "  {{ " + path + " }}"},
		{"a\n{% if " + path + " == `a` %}{% end %}", "a.cfg:2:4", "{% if " + path + " == `a` %}{% end %}"},
		{"{% macro M() %}b\n c {{ " + path + " }}{% end %}\n{{ M() }}", "a.cfg:2:7", " c {{ " + path + " }}{% end %}"},
		{"{% for _, r := range ing.Spec.Rules %}\n{{ len(r.HTTP.Paths) }}{% end %}", "a.cfg:2:4", "{{ len(r.HTTP.Paths) }}{% end %}"},
		{"\n{{ *ing.Spec.IngressClassName }}", "a.cfg:2:4", "{{ *ing.Spec.IngressClassName }}"},
	} {
		e := compile(t, files("a.cfg", tt.template), &templating.Options{Vars: map[string]any{"ing": (*networkingv1.Ingress)(nil)}})
		_, err := e.Render(t.Context(), "a.cfg", map[string]any{"ing": &networkingv1.Ingress{Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{}}}}})
		check(t, "", err, "", "nil pointer")
		var own *templating.Error
		if !errors.As(err, &own) || fmt.Sprintf("%s:%d:%d", own.File, own.Line, own.Column) != tt.at || own.Text != tt.line {
			t.Errorf("got %v, want it at %s", err, tt.at)
		}
	}
}
