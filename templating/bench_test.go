package templating_test

import (
	"bytes"
	"fmt"
	"testing"
	"text/template"

	"github.com/open2b/scriggo"
	"github.com/open2b/scriggo/native"
	"github.com/stretchr/testify/require"
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

// BenchmarkRender10k renders 10,000 typed Ingresses: with escaping, with a source map too, by
// Scriggo alone, which writes every value as it is, and by text/template.
func BenchmarkRender10k(b *testing.B) {
	vars := map[string]any{"ingresses": ingresses(brief(10_000))}
	engine := compile(b, files("haproxy.cfg", scriggoIngresses), &templating.Options{Vars: map[string]any{"ingresses": []*networkingv1.Ingress(nil)}})
	unescaped, err := scriggo.BuildTemplate(files("haproxy.txt", scriggoIngresses), "haproxy.txt",
		&scriggo.BuildOptions{Globals: native.Declarations{"ingresses": (*[]*networkingv1.Ingress)(nil)}})
	require.NoError(b, err)
	tpl := template.Must(template.New("").Parse(goIngresses))
	for name, render := range map[string]func() error{
		"escaped":       func() error { _, err := engine.Render(b.Context(), "haproxy.cfg", vars); return err },
		"traced":        func() error { _, err := engine.RenderTraced(b.Context(), "haproxy.cfg", vars); return err },
		"unescaped":     func() error { return unescaped.Run(new(bytes.Buffer), vars, nil) },
		"text/template": func() error { return tpl.Execute(new(bytes.Buffer), vars) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := render(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
