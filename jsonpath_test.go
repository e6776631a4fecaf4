package haptic_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/cases"
	"github.com/hapticsdk/haptic/reconcile/observe"
	"github.com/hapticsdk/haptic/reconcile/settings"
	"github.com/hapticsdk/haptic/templating"
)

// TestOnePathLanguage: an expression selects the same in each place that takes one.
func TestOnePathLanguage(t *testing.T) {
	service := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web",
			Labels: map[string]string{"kubernetes.io/service-name": "front", "app": "shop"}},
		Spec: corev1.ServiceSpec{Type: "ClusterIP", Ports: []corev1.ServicePort{
			{Name: "http", Port: 80}, {Name: "https", Port: 443}, {Name: "admin", Port: 9000}}},
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(service)
	require.NoError(t, err)
	text, err := json.Marshal(object)
	require.NoError(t, err)
	object["apiVersion"], object["kind"] = "example.com/v1", "Route"

	debug := &observe.Server{Token: "t"}
	debug.Register("object", func() any { return service })
	for _, c := range []struct {
		expr string
		want []string // nil where it is an error, the same in all places
		err  string
	}{
		{expr: "metadata.name", want: []string{"web"}},
		{expr: "{.metadata.name}", want: []string{"web"}},
		{expr: "$.metadata.name", want: []string{"web"}},
		{expr: "{$.metadata['name']}", want: []string{"web"}},
		{expr: ".metadata.labels['kubernetes.io/service-name']", want: []string{"front"}},
		{expr: `{.metadata.labels["kubernetes.io/service-name"]}`, want: []string{"front"}},
		{expr: `metadata.labels.kubernetes\.io/service-name`, want: []string{"front"}},
		{expr: `metadata.labels['kubernetes\.io/service-name']`, want: []string{"front"}},
		{expr: "metadata.labels.*", want: []string{"shop", "front"}},
		{expr: "spec.ports[*].name", want: []string{"http", "https", "admin"}},
		{expr: "{.spec.ports[1].port}", want: []string{"443"}},
		{expr: "spec.ports[-1].name", want: []string{"admin"}},
		{expr: `spec.ports[?(@.name=="https")].port`, want: []string{"443"}},
		{expr: "{.spec.ports[?(@.port>100)].name}", want: []string{"https", "admin"}},
		{expr: "spec.ports[", err: `jsonpath "spec.ports[": wrong at offset 10: unterminated array`},
		{expr: "{.spec", err: `jsonpath "{.spec": wrong at offset 6: unclosed action`},
		{expr: "spec.ports[?(@.port=80)]", err: "a filter has no operator ="},
		{expr: "{.metadata.name}/", err: "outside of the braces"},
		{expr: "spec.ports[0:2].name", err: "a range of positions is not allowed"},
		{expr: "spec.ports[0,2].name", err: "a list of keys or positions is not allowed"},
		{expr: "..port", err: ".. is not allowed"},
		{expr: "{range .spec.ports[*]}{.name}{end}", err: "a range is outside of the braces"},
	} {
		t.Run(c.expr, func(t *testing.T) {
			for place, find := range map[string]func() ([]string, error){
				"index of typed objects": func() ([]string, error) { return indexed(t, c.expr, service, "services", c.want) },
				"index of others": func() ([]string, error) {
					return indexed(t, c.expr, &unstructured.Unstructured{Object: object}, "routes", c.want)
				},
				"debug variable": func() ([]string, error) { return shown(t, c.expr, debug) },
				"template":       func() ([]string, error) { return dug(t, c.expr, object, c.want, c.err) },
				"case":           func() ([]string, error) { return c.want, holds(t, c.expr, text, c.want) },
				"indexBy of settings": func() ([]string, error) {
					quoted, err := json.Marshal(c.expr)
					require.NoError(t, err)
					_, err = settings.Parse("s.yaml", []byte("watchedResources: {services: {apiVersion: v1, resources: services, indexBy: ["+string(quoted)+"]}}\nhaproxyConfig: {template: x}\n"))
					return c.want, err
				},
			} {
				got, err := find()
				if c.err != "" {
					require.ErrorContains(t, err, c.err, place)
					continue
				}
				require.NoError(t, err, place)
				require.Empty(t, cmp.Diff(c.want, got), place)
			}
		})
	}
}

// indexed returns those of the values under which a watcher finds the object.
func indexed(t *testing.T, expr string, obj k8swatch.Object, resource string, want []string) (found []string, err error) {
	source, err := k8swatch.NewStatic(obj)
	require.NoError(t, err)
	w, err := k8swatch.New(source, obj.GetObjectKind().GroupVersionKind().GroupVersion().WithResource(resource), &k8swatch.Options{IndexBy: []string{expr}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	_, err = w.WaitForSync(ctx)
	require.NoError(t, err)
	for _, key := range want {
		if len(w.Snapshot().Get(key)) == 1 {
			found = append(found, key)
		}
	}
	cancel()
	return found, <-ended
}

// dug returns what a function of templates has there. Templates select one value, and
// refuse expressions that can select many.
func dug(t *testing.T, expr string, object map[string]any, want []string, wrong string) ([]string, error) {
	if wrong != "" {
		return nil, errors.New(wrong) // templates have words of their own
	}
	quoted, err := json.Marshal(expr)
	require.NoError(t, err)
	engine, err := templating.Compile(fstest.MapFS{"a.txt": {Data: []byte("{{ tostring(dig(object, " + string(quoted) + ")) }}")}}, &templating.Options{Vars: map[string]any{"object": object}})
	require.NoError(t, err)
	text, err := engine.Render(t.Context(), "a.txt", map[string]any{"object": object})
	if len(want) > 1 || strings.ContainsAny(expr, "?") {
		require.Error(t, err)
		return want, nil
	}
	return []string{text}, err
}

// shown returns what a debug variable has there.
func shown(t *testing.T, expr string, s *observe.Server) (found []string, err error) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/debug/vars/object?field="+url.QueryEscape(expr), nil)
	r.SetBasicAuth("me", "t")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		var problem struct{ Error string }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &problem))
		return nil, errors.New(problem.Error)
	}
	var one json.RawMessage
	list := []json.RawMessage{}
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &one))
		list = append(list, one)
	}
	for _, v := range list {
		found = append(found, strings.Trim(string(v), `"`))
	}
	return found, nil
}

// holds plays a case that asserts what a file of JSON has there.
func holds(t *testing.T, expr string, file []byte, want []string) error {
	assertion, err := json.Marshal(map[string]string{"type": "jsonpath", "target": "file:object.json", "jsonpath": expr, "expected": strings.Join(want, " ")})
	require.NoError(t, err)
	parsed, err := cases.Parse("case.yaml", slices.Concat([]byte("name: a\nassertions: ["), assertion, []byte("]\n")))
	if err != nil {
		return err
	}
	cfg, err := dataplane.NewConfig("global\n    maxconn 100\n", dataplane.File{Kind: dataplane.General, Name: "object.json", Content: file})
	require.NoError(t, err)
	runner := &cases.Runner{Renderer: func(context.Context, *cases.Input) (reconcile.Renderer, error) {
		return reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) { return &reconcile.Rendered{Config: cfg}, nil }), nil
	}}
	results := runner.Run(t.Context(), parsed)
	require.Contains(t, results.String(), "1 passed", results.String())
	return nil
}
