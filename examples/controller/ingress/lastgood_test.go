package ingress

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// refusesBad is a validator for which each line with the word "bad" is wrong.
func refusesBad(_ context.Context, cfg *dataplane.Config) error {
	texts := map[string]string{"haproxy.cfg": cfg.Main()}
	for _, f := range cfg.Files() {
		texts[string(f.Kind)+" "+f.Name] = string(f.Content)
	}
	for file, text := range texts {
		n := 0
		for line := range strings.Lines(text) {
			if n++; strings.Contains(line, "bad") {
				return &dataplane.Error{Err: dataplane.ErrInvalid, File: file, Line: n}
			}
		}
	}
	return nil
}

// TestLastGoodOfEachKind: an Ingress, a Service and a Secret that turn bad are served as
// they were, with all that follows from them, and the endpoints of now.
func TestLastGoodOfEachKind(t *testing.T) {
	dir := ownTemplates(t)
	file := filepath.Join(dir, "haproxy.d", "backend.cfg")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(text, "{% if backend.Service != nil %}    # {{ backend.Service.Annotations[`note`] }}{% end %}\n"...), 0o644))
	engine, err := Compile(os.DirFS(dir), dataplane.Layout{})
	require.NoError(t, err)

	w, version := newWorld(ingress("web", rule("x.test", path(prefix, "/", "a"))), ingress("other", rule("x.test", path(prefix, "/other", "b")))), 0
	crt, key := certificate(t)
	w.ingresses[0].Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"x.test"}, SecretName: "own"}}
	w.secrets["ns/own"] = secret("own", crt, key)
	change := func(o metav1.Object, note string) {
		version++
		o.SetResourceVersion(fmt.Sprint(version))
		o.SetAnnotations(map[string]string{"note": note, "options": note, "snippet": "# " + note})
	}
	turn := func(note string) {
		w.ingresses[0] = w.ingresses[0].DeepCopy()
		change(w.ingresses[0], note)
		w.services["ns/a"] = w.services["ns/a"].DeepCopy()
		change(w.services["ns/a"], note)
		w.secrets["ns/own"] = w.secrets["ns/own"].DeepCopy()
		change(w.secrets["ns/own"], note)
	}
	for _, o := range []metav1.Object{w.services["ns/b"], w.ingresses[1]} {
		change(o, "calm")
	}
	turn("good")

	slots, hosts, settings := &Slots{}, &Hosts{}, Settings{HTTP: ":8080", HTTPS: ":8443", Socket: "/run/haproxy.sock", MaxConn: 100, HardStopAfter: "30m"}
	var last *Routes
	view := viewOf(w)
	loop, err := reconcile.New(reconcile.Options{View: view, Validator: reconcile.ValidatorFunc(refusesBad), Renderer: &render.Templates{
		Engine: engine, Pure: true, Input: func(ctx context.Context) (*render.Input, error) {
			cluster := w.cluster()
			cluster.Held, cluster.Hosts = view.Held(), hosts
			last = Build(cluster, slots)
			return last.input(settings), nil
		}}})
	require.NoError(t, err)
	once := func() string {
		_, err := loop.Once(t.Context())
		require.NoError(t, err)
		var all strings.Builder
		all.WriteString(loop.Validated().Main())
		for _, f := range loop.Validated().Files() {
			all.Write(f.Content)
		}
		return all.String()
	}
	good := once()
	require.Contains(t, good, "x.test/ ns_a_80")

	turn("bad")
	require.Equal(t, good, once())
	require.Empty(t, last.Refused)
	require.Len(t, loop.State().Quarantined, 3)
	for _, q := range loop.State().Quarantined {
		require.NotZero(t, q.Before, "%s", q)
	}

	w.slices["ns/a"] = append(w.slices["ns/a"], slice("http", 8080, "192.0.2.7"))
	w.ingresses[0] = w.ingresses[0].DeepCopy()
	w.ingresses[0].Spec.Rules[0].Host = "y.test"
	change(w.ingresses[0], "bad, at another host")
	now := once()
	require.Contains(t, now, "192.0.2.7:8080")
	require.Contains(t, now, "x.test/ ns_a_80")
	require.NotContains(t, now, "y.test")

	delete(w.services, "ns/a")
	now = once()
	require.NotContains(t, now, "192.0.2.7:8080")
	require.Contains(t, now, "x.test/ ns_a_80", "the Ingress answers 503")
	require.Contains(t, last.Refused[0].Reason, "does not exist")
	require.Len(t, loop.State().Quarantined, 2)

	w.services["ns/a"] = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Spec: w.services["ns/b"].Spec}
	turn("better")
	loop.Release()
	now = once()
	require.Contains(t, now, "y.test/ ns_a_80")
	require.NotContains(t, now, "x.test/ ns_a_80")
	require.Contains(t, now, "# better")
	require.Empty(t, loop.State().Quarantined)
}
