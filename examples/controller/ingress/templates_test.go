package ingress

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

// renderRoutes renders the built-in templates.
func renderRoutes(t *testing.T, layout dataplane.Layout, routes *Routes) *dataplane.Config {
	t.Helper()
	return renderWith(t, compiled(t, layout), layout, routes)
}

func compiled(t *testing.T, layout dataplane.Layout) *templating.Engine {
	t.Helper()
	engine, err := Compile(os.DirFS("../templates"), layout)
	require.NoError(t, err)
	return engine
}

func renderWith(t *testing.T, engine *templating.Engine, layout dataplane.Layout, routes *Routes) *dataplane.Config {
	t.Helper()
	return renderAt(t, engine, layout, routes, ":8080", ":8443")
}

func renderAt(t *testing.T, engine *templating.Engine, layout dataplane.Layout, routes *Routes, http, https string) *dataplane.Config {
	t.Helper()
	renderer := &render.Templates{Engine: engine, Input: func(context.Context) (*render.Input, error) {
		return routes.input(Settings{HTTP: http, HTTPS: https,
			Socket: filepath.Join(layout.Base, "run.sock"), TLSSocket: filepath.Join(layout.Base, "tls.sock"), MaxConn: 100, MaxPassed: 200, Share: 50, SharedHosts: true, HardStopAfter: "30m"}), nil
	}}
	require.NoError(t, renderer.Check())
	rendered, err := renderer.Render(t.Context())
	require.NoError(t, err)
	return rendered.Config
}

func TestTemplatesMakeWhatHAProxyAccepts(t *testing.T) {
	needHAProxy(t)
	binary, err := exec.LookPath("haproxy")
	require.NoError(t, err)
	crt, key := certificate(t)
	w := newWorld(withTLS(ingress("web", rule("x.test", path(prefix, "/", "a"), path(exact, "/e", "b")),
		rule("*.y.test", path(specific, "/im", "b")), rule("", path(prefix, "/any", "a"))), "x.test", "cert"))
	w.secrets["ns/cert"] = secret("cert", crt, key)
	for name, routes := range map[string]*Routes{
		"nothing":       newWorld().build(),
		"all":           w.build(),
		"spare servers": Build(w.cluster(), &Slots{Step: 4}),
	} {
		t.Run(name, func(t *testing.T) {
			layout := dataplane.Layout{Base: t.TempDir()}
			cfg := renderRoutes(t, layout, routes)
			writeConfig(t, layout, cfg)
			out, err := exec.CommandContext(t.Context(), binary, "-c", "-f", layout.ConfigPath()).CombinedOutput()
			require.NoError(t, err, "%s\n%s", out, cfg.Main())
			require.NotContains(t, string(out), "[WARNING]", "%s", cfg.Main())
		})
	}
}

func TestTemplatesPrintMaps(t *testing.T) {
	cfg := renderRoutes(t, dataplane.Layout{}, newWorld(
		ingress("web", rule("x.test", path(prefix, "/p", "a"), path(exact, "/e", "b")))).build())
	lines := func(name string) []string {
		f, ok := cfg.File(dataplane.Map, name)
		require.True(t, ok)
		return strings.Split(strings.TrimSpace(string(f.Content)), "\n")[1:]
	}
	require.Equal(t, []string{"x.test ns"}, lines("hosts.map"))
	require.Equal(t, []string{"x.test/e ns_b_80"}, lines("exact.map"))
	require.Equal(t, []string{"x.test/p/ ns_a_80"}, lines("prefix.map"))
	require.Contains(t, cfg.Main(), "\nbackend ns_a_80\n    server s1 192.0.2.1:8080\n")
}
