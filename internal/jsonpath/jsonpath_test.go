package jsonpath_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgo "k8s.io/client-go/util/jsonpath"

	"github.com/hapticsdk/haptic/internal/jsonpath"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ingress() *networkingv1.Ingress {
	exact := networkingv1.PathTypeExact
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web",
			Labels:      map[string]string{"kubernetes.io/service-name": "web", "app": "shop"},
			Annotations: map[string]string{"example.com/a.b": "x"},
			Generation:  7,
		},
		Spec: networkingv1.IngressSpec{
			IngressClassName: new(string),
			Rules: []networkingv1.IngressRule{
				{Host: "a.test", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
					Paths: []networkingv1.HTTPIngressPath{{Path: "/x", PathType: &exact}, {Path: "/y", PathType: &exact}},
				}}},
				{Host: "b.test"},
			},
		},
	}
}

// unstructuredOf is the object as nested maps.
func unstructuredOf(t testing.TB, obj any) map[string]any {
	t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	require.NoError(t, err)
	return m
}

func mustBind(t testing.TB, expr string, typ reflect.Type) *jsonpath.Bound {
	t.Helper()
	p, err := jsonpath.Compile(expr)
	require.NoError(t, err)
	b, err := p.Bind(typ)
	require.NoError(t, err)
	return b
}

func values(t testing.TB, b *jsonpath.Bound, obj any) []string {
	t.Helper()
	found, err := b.Values(nil, obj)
	if err != nil {
		t.Error(err)
	}
	return found
}

func TestValues(t *testing.T) {
	service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
		{Port: 80, TargetPort: intstr.FromInt32(8080)}, {Port: 443, TargetPort: intstr.FromString("https")},
	}, PublishNotReadyAddresses: true}}
	secret := &corev1.Secret{Data: map[string][]byte{"b": []byte("2"), "a": []byte("1")}}
	tests := []struct {
		obj  any
		expr string
		want []string
	}{
		{ingress(), "metadata.namespace", []string{"shop"}},
		{ingress(), "{.metadata.name}", []string{"web"}},
		{ingress(), "$.metadata.name", []string{"web"}},
		{ingress(), "$['metadata']['name']", []string{"web"}},
		{ingress(), "metadata.labels['kubernetes.io/service-name']", []string{"web"}},
		{ingress(), `metadata.labels["kubernetes.io/service-name"]`, []string{"web"}},
		{ingress(), `metadata.labels.kubernetes\.io/service-name`, []string{"web"}},
		{ingress(), "metadata.annotations['example.com/a.b']", []string{"x"}},
		{ingress(), "metadata.labels.*", []string{"shop", "web"}},
		{ingress(), "metadata.labels.missing", nil},
		{ingress(), "metadata.labels", nil},
		{ingress(), "metadata.generation", []string{"7"}},
		{ingress(), "spec.rules[*].host", []string{"a.test", "b.test"}},
		{ingress(), "spec.rules[1].host", []string{"b.test"}},
		{ingress(), "spec.rules[9].host", nil},
		{ingress(), "spec.rules[*].http.paths[*].path", []string{"/x", "/y"}},
		{ingress(), "spec.rules.[*].http.paths[0].pathType", []string{"Exact"}},
		{ingress(), "spec.defaultBackend.service.name", nil},
		{service, "spec.ports[*].targetPort", []string{"8080", "https"}},
		{service, "spec.ports[*].port", []string{"80", "443"}},
		{service, "spec.publishNotReadyAddresses", []string{"true"}},
		{secret, "data[*]", []string{"MQ==", "Mg=="}},
		{ingress(), "spec.rules[-1].host", []string{"b.test"}},
		{ingress(), `{.spec.rules[?(@.host=="b.test")].host}`, []string{"b.test"}},
		{ingress(), "spec.rules[?(@.http)].host", []string{"a.test"}},
		{service, "spec.ports[?(@.port>100)].targetPort", []string{"https"}},
		{service, `spec.ports[?(@.targetPort=="https")].port`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			if strings.Contains(tt.expr, "@.targetPort") { // an int of one port cannot be compared with a text
				if _, err := mustBind(t, tt.expr, reflect.TypeOf(tt.obj)).Values(nil, tt.obj); err == nil || !strings.Contains(err.Error(), "incompatible types") {
					t.Error(err)
				}
				return
			}
			typed := values(t, mustBind(t, tt.expr, reflect.TypeOf(tt.obj)), tt.obj)
			if d := cmp.Diff(tt.want, typed); d != "" {
				t.Errorf("typed (-want +got)\n%s", d)
			}
			untyped := values(t, mustBind(t, tt.expr, nil), unstructuredOf(t, tt.obj))
			if d := cmp.Diff(tt.want, untyped); d != "" {
				t.Errorf("unstructured (-want +got)\n%s", d)
			}
		})
	}
}

func TestCompileErrors(t *testing.T) {
	for expr, want := range map[string]struct {
		offset int
		reason string
	}{
		"": {-1, "has no name"}, "{}": {-1, "no field"}, "$": {-1, "no field"}, "@": {-1, "no field"}, ".": {-1, "has no name"}, "a.": {-1, "has no name"},
		"{.a": {3, "unclosed action"}, "a[": {1, "unterminated array"}, "a[0": {1, "unterminated array"}, "a['x'": {1, "unterminated array"},
		"a['x": {1, "unterminated array"}, "a[x]": {4, "invalid array index x"}, "a[99999999999999999999]": {23, "not a number"},
		"a b": {-1, `"b" is not allowed`}, "a[0]b": {-1, `"b" is not allowed`}, "$a": {-1, `"a" is not allowed`}, "a\nb": {1, "unclosed action"},
		"a[?(@.b=1)]": {-1, "no operator ="}, "a[?(@.b==1": {4, "unterminated filter"}, "a[?(@.b=~'x')]": {14, "unrecognized character"}, "a[0:2:-1]": {-1, "a range of positions"}, "a[0:2]": {-1, "a range of positions"}, "a[-2:]": {-1, "a range of positions"}, "a[0,1]": {-1, "a list of keys"}, "a['x','y']": {-1, "a list of keys"}, "a..b": {-1, ".. is not allowed"}, "..": {-1, ".. is not"}, "a[?(@..b)]": {-1, ".. is not"}, "a 5": {-1, "outside of a filter"},
		"{.a}b": {-1, "outside of the braces"}, "{.a}{' '}": {-1, "outside of the braces"}, "{.a}{.b}": {-1, "outside of the braces"}, "{range .a[*]}{.b}{end}": {-1, "a range"}, "{range .a}": {-1, `"range"`}, "{'x'}": {-1, "outside of a filter"},
	} {
		t.Run(expr, func(t *testing.T) {
			_, err := jsonpath.Compile(expr)
			var syntax *jsonpath.SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset != want.offset || !strings.Contains(syntax.Reason, want.reason) {
				t.Fatalf("got %v, want a SyntaxError at %d: %s", err, want.offset, want.reason)
			}
		})
	}
	if _, err := jsonpath.Compile(strings.Repeat("a", jsonpath.MaxLength+1)); err == nil || !strings.Contains(err.Error(), "1024") {
		t.Error(err)
	}
	if _, err := jsonpath.CompileField("a[?(@.b)]"); err == nil || !strings.Contains(err.Error(), "a path to a dropped field has a filter") {
		t.Error(err)
	}
}

func TestBindErrors(t *testing.T) {
	tests := []struct{ expr, reason string }{
		{"spec.rulez", `no field "rulez"`},
		{"spec.rules.host", "is a list"},
		{"spec[*]", "not a list or map"},
		{"metadata.name.x", "no parts"},
		{"metadata.labels[0]", "no positions"},
		{"metadata.creationTimestamp.x", "no parts"},
		{"TypeMeta.kind", "no field"},
		{"name", "no field"},
		{"spec.rulez[?(@.host)]", "no field"},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			p, err := jsonpath.Compile(tt.expr)
			require.NoError(t, err)
			_, err = p.Bind(reflect.TypeFor[*networkingv1.Ingress]())
			var wrong *jsonpath.TypeError
			if !errors.As(err, &wrong) || !strings.Contains(wrong.Reason, tt.reason) {
				t.Fatalf("got %v, want a TypeError with %q", err, tt.reason)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	tests := []struct {
		expr string
		want func(*networkingv1.Ingress)
	}{
		{"status", func(i *networkingv1.Ingress) { i.Status = networkingv1.IngressStatus{} }},
		{"metadata.labels['kubernetes.io/service-name']", func(i *networkingv1.Ingress) { delete(i.Labels, "kubernetes.io/service-name") }},
		{"metadata.labels.missing", func(*networkingv1.Ingress) {}},
		{"spec.defaultBackend.service", func(*networkingv1.Ingress) {}},
		{"spec.rules[*].http", func(i *networkingv1.Ingress) {
			for n := range i.Spec.Rules {
				i.Spec.Rules[n].HTTP = nil
			}
		}},
		{"spec.rules[0]", func(i *networkingv1.Ingress) { i.Spec.Rules = i.Spec.Rules[1:] }},
		{"spec.rules[-1]", func(i *networkingv1.Ingress) { i.Spec.Rules = i.Spec.Rules[:1] }},
		{"spec.rules[-3]", func(*networkingv1.Ingress) {}},
		{"spec.rules[5]", func(*networkingv1.Ingress) {}},
		{"spec.rules[0].http.paths[1]", func(i *networkingv1.Ingress) {
			i.Spec.Rules[0].HTTP.Paths = i.Spec.Rules[0].HTTP.Paths[:1]
		}},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			want := ingress()
			tt.want(want)
			typed, untyped := ingress(), unstructuredOf(t, ingress())
			mustBind(t, tt.expr, reflect.TypeOf(typed)).Delete(typed)
			if d := cmp.Diff(want, typed); d != "" {
				t.Errorf("typed (-want +got)\n%s", d)
			}
			mustBind(t, tt.expr, nil).Delete(untyped)
			var back networkingv1.Ingress
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(untyped, &back))
			if d := cmp.Diff(want, &back); d != "" {
				t.Errorf("unstructured (-want +got)\n%s", d)
			}
		})
	}
}

// FuzzCompile: no input makes the compiler or a bound path panic, and typed and
// unstructured objects give the same values.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		"metadata.namespace", "{.spec.rules[*].host}", "metadata.labels['a.b/c']", `a\.b[0].*`, "a..b", "[?(@)]", "$['x']",
		"spec.rules[0].http.paths[*].backend.service.port.number",
		"{range .spec.rules[*]}{.host}{end}", "spec.rules[-1:].host", `spec.rules[?(@.host=="a.test")].host`, "metadata['name','a.b']", "..*..*", "[?(@.a[?(@>1)])]",
	} {
		f.Add(s)
	}
	obj := ingress()
	maps := unstructuredOf(f, obj)
	f.Fuzz(func(t *testing.T, expr string) {
		p, err := jsonpath.Compile(expr)
		if err != nil {
			var syntax *jsonpath.SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset > len(expr) {
				t.Fatalf("%v is not a SyntaxError within the text", err)
			}
			return
		}
		untyped, err := p.Bind(nil)
		require.NoError(t, err)
		loose, looseErr := untyped.Values(nil, maps)
		typed, err := p.Bind(reflect.TypeOf(obj))
		if err != nil {
			// A wildcard goes into objects that are structs for the type.
			if len(loose) > 0 && !strings.Contains(expr, "*") {
				t.Fatalf("%q finds %q in maps only", expr, loose)
			}
			return
		}
		strict, strictErr := typed.Values(nil, obj)
		if (looseErr == nil) != (strictErr == nil) {
			t.Fatalf("%q: typed %v, unstructured %v", expr, strictErr, looseErr)
		}
		// The type has zero values where the maps have nothing.
		for _, v := range loose {
			if !strings.Contains(fmt.Sprint(strict), v) {
				t.Fatalf("%q: typed %q, unstructured %q", expr, strict, loose)
			}
		}
		found, err := p.Find(maps)
		if (err == nil) != (looseErr == nil) || len(found) < len(loose) {
			t.Fatalf("%q: finds %q, %v; values %q, %v", expr, found, err, loose, looseErr)
		}
		// Client-go reads it in the same way, but for the bytes of texts and what is lost
		// behind an error.
		if !strings.Contains(expr, "*") {
			reference := clientgo.New("")
			require.NoError(t, reference.Parse(p.ClientGo()))
			results, err := reference.AllowMissingKeys(true).FindResults(maps)
			n := 0
			for _, list := range results {
				n += len(list)
			}
			if err == nil && len(found) != n {
				t.Fatalf("%q: %q here, %d values of client-go", expr, found, n)
			}
		}
		if _, err := jsonpath.CompileField(expr); err == nil {
			typed.Delete(ingress())
			untyped.Delete(unstructuredOf(t, obj))
		}
	})
}

func ExampleCompile() {
	path, err := jsonpath.Compile("metadata.labels['kubernetes.io/service-name']")
	if err != nil {
		panic(err)
	}
	bound, err := path.Bind(reflect.TypeFor[*networkingv1.Ingress]())
	if err != nil {
		panic(err)
	}
	values, err := bound.Values(nil, ingress())
	fmt.Println(values, err)

	_, err = jsonpath.Compile("spec.rules[0")
	fmt.Println(err)
	// Output:
	// [web] <nil>
	// jsonpath "spec.rules[0": wrong at offset 10: unterminated array: use .field, ['key'], [3], [-1], [*] or [?(@.field=="x")]
}

// TestConcurrently: a path may be read by many at once.
func TestConcurrently(t *testing.T) {
	for _, expr := range []string{"spec.rules[?(@.host)].host", "spec.rules[*].host"} {
		b := mustBind(t, expr, reflect.TypeFor[*networkingv1.Ingress]())
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					if d := cmp.Diff([]string{"a.test", "b.test"}, values(t, b, ingress())); d != "" {
						t.Error(expr, d)
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestFind(t *testing.T) {
	maps := unstructuredOf(t, ingress())
	for _, tt := range []struct {
		expr string
		want []any
	}{
		{expr: "metadata.name", want: []any{"web"}},
		{expr: "{.spec.rules[?(@.host==\"b.test\")].host}", want: []any{"b.test"}},
		{expr: "spec.rules[*].host", want: []any{"a.test", "b.test"}},
		{expr: "spec.nothing", want: []any{}},
	} {
		p, err := jsonpath.Compile(tt.expr)
		require.NoError(t, err)
		got, err := p.Find(maps)
		if d := cmp.Diff(tt.want, got); d != "" || err != nil {
			t.Errorf("%s (-want +got)\n%s, %v", tt.expr, d, err)
		}
	}
}
