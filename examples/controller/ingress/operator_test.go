package ingress

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// FuzzReadTCP: whatever a ConfigMap says, what is served has a port that is free and names
// of objects, and all else is refused by its key.
func FuzzReadTCP(f *testing.F) {
	for _, s := range [][2]string{{"9000", "ns/a:80"}, {"9001", "ns/a:http:PROXY"}, {"9002", "ns/a:80::PROXY"}, {"9003", "ns/a:80:PROXY:PROXY"},
		{"80", "ns/a:80"}, {"09000", "ns/a:80"}, {"8080", "ns/a:80"}, {"65536", "ns/a:80"}, {"9000", "ns/a"}, {"9000", "ns/a:80:"}, {"9000", "ns/a:80:proxy"}, {"9000", "n\ns/a:80"}, {"9000", "/a:80"}, {"9000", "ns/a:70000"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		rules := &endpoints.Addresses{Listeners: endpoints.Listeners{8080: {netip.Addr{}}}}
		read := ReadTCP(&corev1.ConfigMap{Data: map[string]string{key: value}}, "edge/tcp", ":8080", rules)
		require.Equal(t, 1, len(read.services)+len(read.problems))
		for _, s := range read.services {
			require.True(t, s.port >= lowestTCP && s.port != 8080)
			require.Empty(t, nameProblem(s.ref.Namespace)+nameProblem(s.ref.Name)+nameProblem(s.ref.Port.Name))
			require.NotEmpty(t, read.Addresses.Listeners[s.port], "no endpoint leads there")
			require.Empty(t, rules.Listeners[s.port], "and others do not see it")
		}
	})
}

func TestParseServiceRef(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"", "a", "a/b", "a/b:", "/b:80", "a/:80", "a/b:0", "A/b:80", "a/b c:80", "a/b:80:81"} {
		_, err := ParseServiceRef(wrong)
		require.ErrorContains(t, err, "want namespace/service:port", wrong)
	}
	ref, err := ParseServiceRef("a/b:http")
	require.NoError(t, err)
	require.Equal(t, "http", ref.Port.Name)
}

func TestBinds(t *testing.T) {
	t.Parallel()
	require.Equal(t, []Bind{{"[::]:8080", false}}, Settings{}.Binds("[::]:8080"), "for both")
	require.Equal(t, []Bind{{":8080", false}, {"[::]:8080", true}}, Settings{}.Binds(":8080,[::]:8080"))
	read := ReadTCP(nil, "edge/tcp", ":8080,ipv6@[::]:8080", &endpoints.Addresses{})
	require.Equal(t, []string{"", "[::]"}, read.hosts)
}

// TestHTTP3InTemplates: there is a listener for QUIC beside the one for TLS, and clients
// hear of it.
func TestHTTP3InTemplates(t *testing.T) {
	crt, key := certificate(t)
	w := newWorld(withTLS(ingress("web", rule("x.test", path(prefix, "/", "a"))), "x.test", "cert"))
	w.secrets["ns/cert"] = secret("cert", crt, key)
	layout := dataplane.Layout{Base: t.TempDir()}
	engine, err := Compile(os.DirFS("../templates"), layout)
	require.NoError(t, err)
	renderer := &render.Templates{Engine: engine, Input: func(context.Context) (*render.Input, error) {
		return w.build().input(Settings{HTTP: ":8080", HTTPS: ":8443", HTTP3: "quic4", LimitedQUIC: true, AcceptProxy: []string{"10.0.0.0/8"}, Socket: filepath.Join(layout.Base, "run.sock"), HardStopAfter: "30m"}), nil
	}}
	rendered, err := renderer.Render(t.Context())
	require.NoError(t, err)
	main := rendered.Config.Main()
	require.Regexp(t, `(?m)^    bind :8443 ssl crt-list \S+ alpn h2,http/1\.1 strict-sni$`, main)
	require.Regexp(t, `(?m)^    bind quic4@:8443 ssl crt-list \S+ name http3 alpn h3 strict-sni$`, main)
	require.Regexp(t, `(?m)^    limited-quic$`, main)
	require.Regexp(t, `(?m)^    tcp-request connection expect-proxy layer4 if \{ src 10\.0\.0\.0/8 \} !\{ so_name http3 \}$`, main, "UDP has no PROXY protocol")
	require.Equal(t, 1, strings.Count(main, `alt-svc 'h3=":%[var(txn.port)]"; ma=900' if { ssl_fc }`))
}
