package templating_test

import (
	"bytes"
	"fmt"
	"testing"
	"text/template"

	"github.com/open2b/scriggo"
	"github.com/open2b/scriggo/native"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/templating"
)

func ingresses(n int) []*networkingv1.Ingress {
	list := make([]*networkingv1.Ingress, n)
	exact := networkingv1.PathTypePrefix
	for i := range list {
		list[i] = &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("team-%d", i%100), Name: fmt.Sprintf("app-%d", i)},
			Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
				Host: fmt.Sprintf("app-%d.example.com", i),
				IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
					Path: "/", PathType: &exact,
					Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: fmt.Sprintf("svc-%d", i),
						Port: networkingv1.ServiceBackendPort{Number: 8080}}},
				}}}},
			}}},
		}
	}
	return list
}

const scriggoIngresses = `{% for _, ing := range ingresses %}{% for _, rule := range ing.Spec.Rules %}{% for _, path := range rule.HTTP.Paths %}backend {{ ing.Namespace }}_{{ ing.Name }}
  # {{ rule.Host }}{{ path.Path }}
  balance roundrobin
  option httpchk GET /healthz
  http-request set-header X-Forwarded-Host {{ rule.Host }}
  server {{ path.Backend.Service.Name }} {{ path.Backend.Service.Name }}.{{ ing.Namespace }}:{{ path.Backend.Service.Port.Number }} check
{% end %}{% end %}{% end %}`

const goIngresses = `{{ range $ing := .ingresses }}{{ range $rule := $ing.Spec.Rules }}{{ range $path := $rule.HTTP.Paths }}backend {{ $ing.Namespace }}_{{ $ing.Name }}
  # {{ $rule.Host }}{{ $path.Path }}
  balance roundrobin
  option httpchk GET /healthz
  http-request set-header X-Forwarded-Host {{ $rule.Host }}
  server {{ $path.Backend.Service.Name }} {{ $path.Backend.Service.Name }}.{{ $ing.Namespace }}:{{ $path.Backend.Service.Port.Number }} check
{{ end }}{{ end }}{{ end }}`

// BenchmarkIngresses renders 10,000 typed Ingresses with escaping, and the
// same with text/template, which does not escape.
func BenchmarkIngresses(b *testing.B) {
	list := ingresses(brief(10_000))
	b.Run("templating", func(b *testing.B) {
		e, err := templating.Compile(files("haproxy.cfg", scriggoIngresses), &templating.Options{
			Vars: map[string]any{"ingresses": []*networkingv1.Ingress(nil)}})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			out, err := e.Render(b.Context(), "haproxy.cfg", map[string]any{"ingresses": list})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(out)))
		}
	})
	b.Run("text/template", func(b *testing.B) {
		tpl, err := template.New("").Parse(goIngresses)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			var out bytes.Buffer
			if err := tpl.Execute(&out, map[string]any{"ingresses": list}); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(out.Len()))
		}
	})
}

// BenchmarkRender10k is the figure for the cost of escaping: the same render by
// Scriggo alone, which writes every value as it is, and by text/template.
func BenchmarkRender10k(b *testing.B) {
	list := ingresses(brief(10_000))
	vars := map[string]any{"ingresses": list}
	measure := func(name string, render func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := render(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	escaped, err := templating.Compile(files("haproxy.cfg", scriggoIngresses), &templating.Options{Vars: map[string]any{"ingresses": []*networkingv1.Ingress(nil)}})
	if err != nil {
		b.Fatal(err)
	}
	measure("escaped", func() error {
		_, err := escaped.Render(b.Context(), "haproxy.cfg", vars)
		return err
	})
	unescaped, err := scriggo.BuildTemplate(files("haproxy.txt", scriggoIngresses), "haproxy.txt",
		&scriggo.BuildOptions{Globals: native.Declarations{"ingresses": (*[]*networkingv1.Ingress)(nil)}})
	if err != nil {
		b.Fatal(err)
	}
	measure("unescaped", func() error {
		var out bytes.Buffer
		return unescaped.Run(&out, vars, nil)
	})
	tpl := template.Must(template.New("").Parse(goIngresses))
	measure("text/template", func() error {
		var out bytes.Buffer
		return tpl.Execute(&out, vars)
	})
}
