package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/validate"
)

// ownTemplates are the built-in templates with what a user added: annotations
// of Ingresses and Secrets that end where they can do harm.
func ownTemplates(tb testing.TB) string {
	dir := tb.TempDir()
	require.NoError(tb, os.CopyFS(dir, os.DirFS("templates")))
	change := func(name, old, new string) {
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		require.NoError(tb, err)
		require.Contains(tb, string(text), old)
		require.NoError(tb, os.WriteFile(file, []byte(strings.Replace(string(text), old, new, 1)), 0o644))
	}
	change("haproxy.cfg", "    use_backend %", `{% for p in prefix %}
{% notes := p.Ingress.Annotations %}
{% if notes["fail"] != "" %}{{ fail("no " + notes["fail"]) }}{% end %}
{% if notes["snippet"] != "" %}
    {{ raw(notes["snippet"]) }}
{% end %}
{% if notes["tag"] != "" %}
    http-request set-var(txn.tag) str({{ notes["tag"] }})
{% end %}
{% end %}
    use_backend %`)
	change("crt-lists/certificates.txt", `{% for host in c.Hosts %}`,
		`{% if c.Secret.Annotations["options"] != "" %} [{{ raw(c.Secret.Annotations["options"]) }}]{% end %}{% for host in c.Hosts %}`)
	return dir
}

// ingressManifest is an Ingress for a host of its own.
func ingressManifest(name, annotations string) string {
	return fmt.Sprintf(`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %[1]s, namespace: demo, annotations: {%[2]s}}
spec:
  ingressClassName: haptic
  rules:
    - host: %[1]s.demo.test
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: blog, port: {number: 80}}}}]}
`, name, annotations)
}

// TestQuarantine: whatever is wrong with one resource, all others are served,
// and it is named with its line and that of the template.
func TestQuarantine(t *testing.T) {
	templates := ownTemplates(t)
	d := startDemo(t, "-templates", templates)
	const blog = "127.0.0.14:18080"
	save := func(name, annotations string) {
		d.edit(name+".yaml", func(string) string { return ingressManifest(name, annotations) })
	}
	for name, c := range map[string]struct{ bad, good, says string }{
		"snippet": {`snippet: "foo bar"`, `snippet: "http-request set-header X-A b"`, "written by haproxy.cfg:43"},
		"deny":    {`snippet: "http-request deny deny_status x"`, `snippet: ""`, "written by haproxy.cfg:43"},
		"fail":    {`fail: "way"`, `snippet: ""`, "haproxy.cfg:41: no way"},
		"tag":     {`tag: "a\nb"`, `tag: "ab"`, "haproxy.cfg:46: refused"},
	} {
		t.Run(name, func(t *testing.T) {
			save(name, c.bad)
			d.until(func() bool { return strings.Contains(d.stderr.String(), `resource="Ingress demo/`+name+`"`) })
			require.Contains(t, d.stderr.String(), c.says)
			require.Contains(t, d.stderr.String(), "for Ingress demo/"+name+" ("+filepath.Join(d.manifests, name+".yaml")+":1)")
			save(name+"-next", "")
			d.until(func() bool { return d.answers(name+"-next.demo.test", "/") == blog })
			status, _ := d.get("http://"+d.http+"/", name+".demo.test")
			require.Equal(t, http.StatusNotFound, status)
			save(name, c.good)
			d.until(func() bool { return d.answers(name+".demo.test", "/") == blog })
			d.until(func() bool {
				return strings.Contains(d.stderr.String(), `released from quarantine: Ingress demo/`+name+`: `)
			})
		})
	}

	t.Run("a Secret", func(t *testing.T) {
		crt, key := certificate(t)
		secret := func(options string) {
			d.edit("own-tls.yaml", func(string) string {
				return fmt.Sprintf("apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {name: own, namespace: demo, annotations: {options: %q}}\ndata: {tls.crt: %s, tls.key: %s}\n",
					options, base64.StdEncoding.EncodeToString(crt), base64.StdEncoding.EncodeToString(key))
			})
		}
		secret("foo bar")
		d.edit("own.yaml", func(string) string {
			return ingressManifest("own", "") + "  tls: [{hosts: [own.demo.test], secretName: own}]\n"
		})
		d.until(func() bool {
			return strings.Contains(d.stderr.String(), `resource="Secret demo/own" source=`+filepath.Join(d.manifests, "own-tls.yaml")+":1")
		})
		require.Contains(t, d.stderr.String(), "crt-list certificates.txt:")
		d.until(func() bool { return d.answers("own.demo.test", "/") == blog })
		secret("alpn h2")
		d.until(func() bool {
			return strings.Contains(d.stderr.String(), `released from quarantine: Secret demo/own: `)
		})
		require.Equal(t, blog, d.answers("own.demo.test", "/"))
	})
}

// TestNoQuarantineFlag keeps what is there, and names the culprit all the same.
func TestNoQuarantineFlag(t *testing.T) {
	d := startDemo(t, "-templates", ownTemplates(t), "-no-quarantine")
	d.edit("bad.yaml", func(string) string { return ingressManifest("bad", `snippet: "foo bar"`) })
	d.until(func() bool {
		return strings.Contains(d.stderr.String(), "for Ingress demo/bad ("+filepath.Join(d.manifests, "bad.yaml")+":1)")
	})
	d.edit("next.yaml", func(string) string { return ingressManifest("next", "") })
	d.edit("bad.yaml", func(string) string { return ingressManifest("bad", "") })
	d.until(func() bool { return d.answers("next.demo.test", "/") == "127.0.0.14:18080" })
	require.NotContains(t, d.stderr.String(), "in quarantine")
}

// BenchmarkQuarantine goes from a bad Ingress among many to a configuration of
// all others that haproxy accepts; it fails where that takes more than two
// renders and two validations.
func BenchmarkQuarantine(b *testing.B) {
	needHAProxy(b)
	const n = 5000
	engine, err := compileTemplates(ownTemplates(b), dataplane.Layout{})
	require.NoError(b, err)
	w, slots := manyIngresses(n), &Slots{}
	settings := Settings{HTTP: ":8080", Socket: "/run/haproxy.sock", MaxConn: 100, HardStopAfter: "30m"}
	validator := &validate.Validator{}
	var renders, checks atomic.Int32
	var last *Routes
	templates := &render.Templates{Engine: engine, Pure: true, Input: func(ctx context.Context) (*render.Input, error) {
		renders.Add(1)
		cluster := w.cluster()
		cluster.Excluded = reconcile.Excluding(ctx)
		routes := BuildRoutes(cluster, slots)
		routes.Keep(last)
		last = routes
		return routes.input(settings), nil
	}}
	loop, err := reconcile.New(reconcile.Options{Renderer: templates, Validator: reconcile.ValidatorFunc(
		func(ctx context.Context, cfg *dataplane.Config) error {
			checks.Add(1)
			return validator.Validate(ctx, cfg)
		})})
	require.NoError(b, err)
	good := w.ingresses[77]
	_, err = loop.Once(b.Context())
	require.NoError(b, err)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		w.ingresses[77] = good.DeepCopy()
		w.ingresses[77].ResourceVersion = fmt.Sprint("good", i)
		loop.Release() // or it would wait for its trial
		_, err = loop.Once(b.Context())
		require.NoError(b, err)
		w.ingresses[77] = good.DeepCopy()
		w.ingresses[77].ResourceVersion = fmt.Sprint("bad", i)
		w.ingresses[77].Annotations = map[string]string{"snippet": fmt.Sprintf("http-request deny deny_status x%d", i)}
		renders.Store(0)
		checks.Store(0)
		b.StartTimer()
		_, err = loop.Once(b.Context())
		require.NoError(b, err)
		require.Equal(b, []int32{2, 2}, []int32{renders.Load(), checks.Load()})
		require.Len(b, loop.State().Quarantined, 1)
		require.Equal(b, "svc-00077", loop.State().Quarantined[0].Resource.Name)
	}
}

// BenchmarkQuarantineMany is BenchmarkQuarantine for 200 bad Ingresses. Where
// the templates find them, or the syntax check, it takes two renders. (HAProxy
// itself ends with the first error of some rules: then it takes a render each.)
func BenchmarkQuarantineMany(b *testing.B) {
	needHAProxy(b)
	const n, bad = 5000, 200
	for name, c := range map[string]struct {
		annotation, value string
		renders           int32
	}{
		"refused": {"tag", "a\nb", 2},
		"fail":    {"fail", "way", 2},
		"line":    {"snippet", "foo bar", 2},
	} {
		b.Run(name, func(b *testing.B) {
			engine, err := compileTemplates(ownTemplates(b), dataplane.Layout{})
			require.NoError(b, err)
			w, slots := manyIngresses(n), &Slots{}
			for i, ing := range w.ingresses {
				ing.ResourceVersion = "1"
				if i%(n/bad) == 7 {
					ing.Annotations = map[string]string{c.annotation: c.value}
				}
			}
			settings := Settings{HTTP: ":8080", Socket: "/run/haproxy.sock", MaxConn: 100, HardStopAfter: "30m"}
			for b.Loop() {
				var renders atomic.Int32
				templates := &render.Templates{Engine: engine, Pure: true, Input: func(ctx context.Context) (*render.Input, error) {
					renders.Add(1)
					cluster := w.cluster()
					cluster.Excluded = reconcile.Excluding(ctx)
					return BuildRoutes(cluster, slots).input(settings), nil
				}}
				loop, err := reconcile.New(reconcile.Options{Renderer: templates, Validator: &validate.Validator{}})
				require.NoError(b, err)
				_, err = loop.Once(b.Context())
				require.NoError(b, err)
				require.Len(b, loop.State().Quarantined, bad)
				require.LessOrEqual(b, renders.Load(), c.renders)
			}
		})
	}
}

// TestQuarantineOfServices: a Service that is left out answers 503, whatever
// names it.
func TestQuarantineOfServices(t *testing.T) {
	w := newWorld(ingress("web", rule("x.test", path(prefix, "/", "a"), path(prefix, "/b", "b"))))
	service, _ := reconcile.ResourceOf(w.services["ns/a"])
	cluster := w.cluster()
	cluster.Excluded = reconcile.Excluding(reconcile.WithExcluded(t.Context(), service))
	r := BuildRoutes(cluster, &Slots{})
	require.Len(t, r.Backends, 2)
	require.Empty(t, r.Backends[0].Servers)
	require.Len(t, r.Backends[1].Servers, 1)
	require.Contains(t, r.Refused[0].Reason, "Service ns/a is in quarantine")
	require.IsType(t, &corev1.Service{}, r.Backends[1].Owners()[1])
	require.Len(t, r.Backends[0].Owners(), 1)

	slots := &Slots{}
	w.slices["ns/a"] = []*discoveryv1.EndpointSlice{slice("http", 8080, "192.0.2.1", "192.0.2.7")}
	free, servers := w.cluster(), func(c *Cluster) []Server { return BuildRoutes(c, slots).Backends[0].Servers }
	require.Len(t, servers(free), 2)
	w.slices["ns/a"] = []*discoveryv1.EndpointSlice{slice("http", 8080, "192.0.2.7")}
	want := servers(free)
	require.Equal(t, "s2", want[0].Name)
	held := w.cluster()
	held.Excluded = cluster.Excluded
	require.Empty(t, servers(held))
	require.Same(t, BuildRoutes(held, slots).Backends[0], BuildRoutes(held, slots).Backends[0])
	require.Equal(t, want, servers(free), "endpoints find their slots again")

	w.slices["ns/a"] = []*discoveryv1.EndpointSlice{}
	w.services["ns/a"].ResourceVersion = "2"
	require.NotEmpty(t, BuildRoutes(cluster, &Slots{}).Refused, "it changed, and is tried apart from the others")
}
