package ingress

import (
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

var hostileRuns = flag.Int("hostile", 500, "clusters with a hostile Ingress that the hostile test renders")

// hostileIngress is an Ingress of which every text comes from somebody else.
type hostileIngress struct {
	name, namespace, host, path, service, port, secret, annotation, address string
}

// hostileFragments are what means something to HAProxy, a map or a file system.
var hostileFragments = []string{"a", "b", "x.test", "good.test", "/good", "/", "..", "../", "/etc/passwd", ".", "-", "_", "*", "*.", ":", " ", "\t", "\n", "\r\n", "\x00", "\xff", "ü",
	"\nbackend evil\n", "\nserver evil 192.0.2.9:80\n", "\ngood.test/ ns_evil_80\n", `"`, "'", `\`, "#", "$HOME", "${HOME}", "%", "%[env(HOME)]", "(", ")", ",", "[", "]", "{", "}",
	"if", "http", "80", "unix@/run/x", "192.0.2.9", "::1", "?", ";", "|", strings.Repeat("a", 300)}

func hostileText(r *rand.Rand, usual string) string {
	if r.IntN(3) == 0 {
		return usual
	}
	var b strings.Builder
	if r.IntN(2) == 0 {
		b.WriteString(usual)
	}
	for range 1 + r.IntN(3) {
		b.WriteString(hostileFragments[r.IntN(len(hostileFragments))])
	}
	return b.String()
}

// around puts the hostile Ingress beside a good one, and makes all that it
// refers to exist.
func (h hostileIngress) around() *world {
	paths := path(exact, h.path, h.service)
	paths.Backend.Service.Port = networkingv1.ServiceBackendPort{Name: h.port}
	bad := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.name, Annotations: map[string]string{"kubernetes.io/ingress.class": "", "a": h.annotation, h.annotation: "b"}},
		Spec: networkingv1.IngressSpec{
			Rules: []networkingv1.IngressRule{rule(h.host, paths, path(prefix, h.path, "a"))},
			TLS:   []networkingv1.IngressTLS{{Hosts: []string{h.host}, SecretName: h.secret}},
		},
	}
	delete(bad.Annotations, "kubernetes.io/ingress.class")
	bad.CreationTimestamp = metav1.Unix(1, 0) // the older one gets a free host
	w := newWorld(ingress("good", rule("good.test", path(prefix, "/good", "a"))), bad)
	key := h.namespace + "/" + h.service
	w.services[key] = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: h.service},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: h.port, Port: 81}}}}
	w.slices[key] = append(w.slices[key], slice(h.port, 8080, h.address))
	w.secrets[h.namespace+"/"+h.secret] = secret(h.secret, []byte(h.annotation), []byte(h.annotation))
	return w
}

// hostileSettings are what the operator says, not the resources.
var hostileSettings = Settings{HTTP: ":8080", HTTPS: ":8443", Socket: "/run/haproxy.sock", MaxConn: 100, MaxPassed: 200, Share: 50, SharedHosts: true, HardStopAfter: "30m"}

// checkHostile renders the controller's templates and counts: sections,
// directives, words, lines of maps and names of files are those of the routes,
// and the routes of the others are where they were.
func checkHostile(t *testing.T, engine *templating.Engine, frontend []string, h hostileIngress) {
	t.Helper()
	routes := h.around().build()
	in := routes.Input(hostileSettings)
	vars := render.Declare(in.Vars)
	vars["backend"] = (*Backend)(nil)
	render := func(entry string) string {
		texts := []string{""}
		var err error
		if each, ok := in.Each[entry]; ok && entry != BackendEntry {
			texts, err = engine.RenderEach(t.Context(), entry, each.Var, slices.Concat(each.Parts...), vars)
		} else {
			texts[0], err = engine.Render(t.Context(), entry, vars)
		}
		if err != nil {
			t.Fatalf("%+v: one resource stops the others: %v", h, err)
		}
		return strings.Join(texts, "")
	}
	main := strings.Split(render("haproxy.cfg"), "\n")
	if !slices.Equal(main, frontend) {
		t.Fatalf("%+v: haproxy.cfg is another one:\n%s", h, strings.Join(main, "\n"))
	}
	lines := 0
	for _, entry := range []string{"maps/hosts.map", "maps/wildcards.map", "maps/exact.map", "maps/prefix.map"} {
		for line := range strings.Lines(render(entry)) {
			if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, "#") || line == "" {
				continue
			}
			if lines++; len(strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\v\f", r) })) != 2 {
				t.Fatalf("%+v: %s has the line %q", h, entry, line)
			}
		}
	}
	if want := routes.Hosts.Len() + len(routes.Wildcards) + routes.Exact.Len() + routes.Prefix.Len(); lines != want {
		t.Fatalf("%+v: %d lines of maps, want %d", h, lines, want)
	}
	if !strings.Contains(render("maps/prefix.map"), "\ngood.test/good/ ns_a_80\n") {
		t.Fatalf("%+v: the good route is gone:\n%s", h, render("maps/prefix.map"))
	}
	for _, b := range routes.Backends.Slice() {
		vars["backend"] = b
		checkBackend(t, h, b, render(BackendEntry))
	}
	for _, f := range routes.Files {
		if err := dataplane.CheckFileName(f.Kind, f.Name); err != nil {
			t.Fatalf("%+v: file %q: %v", h, f.Name, err)
		}
	}
}

func checkBackend(t *testing.T, h hostileIngress, b *Backend, text string) {
	t.Helper()
	cfg, err := dataplane.NewConfig(text)
	if err != nil {
		t.Fatalf("%+v: %q: %v", h, text, err)
	}
	var words [][]string
	for _, s := range cfg.Sections() {
		if s.Kind != "" {
			words = append(words, strings.Fields(s.Kind+" "+s.Name))
		}
		words = append(words, s.Lines("")...)
	}
	lines := 0 // those with quotes that do not match are no words
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	if lines != len(words) || !strings.Contains(text, "\nbackend "+b.Name+"\n") {
		t.Fatalf("%+v: %d lines, %d of them with words:\n%s", h, lines, len(words), text)
	}
	ok := len(words) == 1+len(b.Servers) && slices.Equal(words[0], []string{"backend", b.Name})
	for i, s := range b.Servers {
		want := []string{"server", s.Name, s.Address}
		if s.Disabled {
			want = append(want, "disabled")
		}
		ok = ok && slices.Equal(words[1+i], want)
	}
	if !ok {
		t.Fatalf("%+v: backend %+v became\n%s", h, b, text)
	}
}

func hostileEngine(tb testing.TB) (*templating.Engine, []string) {
	tb.Helper()
	engine, err := Compile(os.DirFS("../templates"), dataplane.Layout{Base: "/etc/haproxy"})
	if err != nil {
		tb.Fatal(err)
	}
	vars := render.Declare(newWorld(ingress("good", rule("good.test", path(prefix, "/good", "a")))).build().Input(hostileSettings).Vars)
	vars["backend"] = (*Backend)(nil)
	text, err := engine.Render(tb.Context(), "haproxy.cfg", vars)
	if err != nil {
		tb.Fatal(err)
	}
	return engine, strings.Split(text, "\n")
}

// FuzzHostile puts hostile hosts, paths, annotations, names, Secrets, Services
// and ports through Build and the controller's templates.
func FuzzHostile(f *testing.F) {
	for _, s := range hostileFragments {
		f.Add("bad", "ns", s, "/", "b", "http", "secret", "", "192.0.2.2")
		f.Add("bad", "ns", "x.test", "/"+s, "b", "http", s, s, "192.0.2.2")
		f.Add(s, "ns", "x.test", "/", s, s, "secret", "", s)
	}
	engine, frontend := hostileEngine(f)
	f.Fuzz(func(t *testing.T, name, namespace, host, path, service, port, secret, annotation, address string) {
		checkHostile(t, engine, frontend, hostileIngress{name, namespace, host, path, service, port, secret, annotation, address})
	})
}

// TestHostileMillions is FuzzHostile over texts made of what means something to
// HAProxy, as often as -hostile says.
func TestHostileMillions(t *testing.T) {
	engine, frontend := hostileEngine(t)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	n := 0
	defer func() { t.Logf("seed %d: %d clusters", seed, n) }()
	deadline, limited := t.Deadline()
	for ; n < *hostileRuns && (!limited || time.Until(deadline) > 5*time.Second); n++ {
		checkHostile(t, engine, frontend, hostileIngress{
			name: hostileText(r, "bad"), namespace: hostileText(r, "ns"), host: hostileText(r, "x.test"), path: hostileText(r, "/p"), service: hostileText(r, "b"),
			port: hostileText(r, "http"), secret: hostileText(r, "s"), annotation: hostileText(r, ""), address: hostileText(r, "192.0.2.3")})
	}
}
