package ingress

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/annotation"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

// shapes are the lines of a configuration: the first two words, and how many there are.
func shapes(t *testing.T, text string) (all map[string]bool, sections int) {
	t.Helper()
	cfg, err := dataplane.NewConfig(text)
	require.NoError(t, err, "%q", text)
	all = map[string]bool{}
	lines := 0
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines++
		}
	}
	for _, s := range cfg.Sections() {
		if s.Kind != "" {
			sections, lines = sections+1, lines-1
		}
		for _, words := range s.Lines("") {
			lines--
			second := ""
			if len(words) > 1 && words[0] != "server" {
				second = words[1]
			}
			switch words[0] {
			case "cookie", "user":
				second = ""
			case "balance":
				second, _, _ = strings.Cut(second, "(")
			}
			n := len(words)
			if words[0] == "cookie" { // has attributes
				n = 0
			}
			all[fmt.Sprint(words[0], " ", second, " ", n)] = true
		}
	}
	require.Zero(t, lines, "lines that are no words:\n%s", text)
	return all, sections
}

// hostileOptions renders what a hostile value of an annotation becomes.
func hostileOptions(t *testing.T, engine *templating.Engine, backends map[string]string, name, value string) (text string, routes *Routes) {
	t.Helper()
	at := rule("x.test", path(specific, "/(a)", "a"))
	bad, canary := ingress("bad", at), ingress("canary", rule("x.test", path(specific, "/(a)", "b")))
	bad.Annotations = map[string]string{nginx + "auth-type": "basic", nginx + "auth-secret": "users", nginx + "enable-cors": "true", nginx + "affinity": "cookie", tech + "check": "true",
		nginx + "limit-rps": "1", nginx + "backend-protocol": "HTTPS", nginx + "permanent-redirect": "https://x.test/", tech + "request-set-header": "X-A b"}
	canary.Annotations = map[string]string{nginx + "canary": "true", nginx + "canary-by-header": "X-A", nginx + "canary-by-cookie": "b"}
	if strings.Contains(name, "canary") {
		canary.Annotations[name] = value
	} else {
		bad.Annotations[name] = value
	}
	w := newWorld(bad, canary)
	w.secrets["ns/users"] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "users"}, Data: map[string][]byte{"auth": []byte("a:" + userHash)}}
	w.secrets["ns/"+value] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: value}, Data: map[string][]byte{"auth": []byte("a" + value + ":" + userHash + value), "ca.crt": []byte(value)}}
	w.services["ns/a"].Annotations = map[string]string{name: value}
	routes = w.build()
	vars := render.Declare(routes.Input(hostileSettings).Vars)
	render := func(entry string) string {
		out, err := engine.Render(t.Context(), entry, vars)
		require.NoError(t, err, "%s: %q: one annotation stops the others", name, value)
		return out
	}
	text = render("haproxy.cfg")
	for _, b := range routes.Backends.Slice() {
		vars["backend"] = b
		one := render(BackendEntry)
		backends[b.Name] = one
		text += one
	}
	for i := range routes.Userlists.Slice() {
		vars["userlist"] = routes.Userlists.Slice()[i]
		one := render("haproxy.d/userlist.cfg")
		backends["~"+routes.Userlists.Slice()[i].Name] = one
		text += one
	}
	for i := range routes.Patterns.Slice() {
		vars["route"] = routes.Patterns.Slice()[i]
		require.Len(t, strings.Fields(render("maps/paths_reg.map")), 2)
	}
	return text, routes
}

// TestHostileAnnotations: whatever stands in an annotation, there are no other lines,
// sections or words in a line than those of good values.
func TestHostileAnnotations(t *testing.T) {
	engine, _ := hostileEngine(t)
	backends := map[string]string{}
	good := map[string]map[string]bool{} // values by name
	known, _ := shapes(t, renderRoutes(t, dataplane.Layout{Base: "/x"}, effectsWorld(t).build()).Main())
	add := func(name, value string) {
		if good[name] == nil {
			good[name] = map[string]bool{}
		}
		good[name][value] = true
	}
	for _, e := range effects {
		for name, value := range e.give {
			add(name, value)
		}
	}
	for name, value := range map[string]string{"canary": "true", "canary-weight": "10", "canary-weight-total": "200", "canary-by-header": "X-B", "canary-by-header-value": "v", "canary-by-header-pattern": "^v+$", "canary-by-cookie": "c"} {
		add(nginx+name, value)
		text, _ := hostileOptions(t, engine, backends, nginx+name, value)
		more, _ := shapes(t, text)
		maps.Copy(known, more)
	}
	fragments := append(slices.Clone(hostileFragments), "a } || { src 0.0.0.0/0", "a' if { src 0.0.0.0/0 } '", "' #", "%[env(TOKEN)]", "lua.x", "-f /etc/passwd", "\v", "\u0085", "\u2028", "(?i)", "(", "[", "$1", `\1`, `\`)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 3))
	n, seen := 0, map[string]bool{}
	for _, row := range annotation.Table() {
		if row.Refused+row.Ignored != "" {
			continue
		}
		for _, name := range row.Names() {
			for _, f := range fragments {
				values := []string{f}
				for v := range good[name] {
					values = append(values, v+f, v[:len(v)/2]+f+v[len(v)/2:], v+" "+f)
				}
				for _, value := range values {
					if r.IntN(14_000) > *hostileRuns {
						continue
					}
					text, routes := hostileOptions(t, engine, backends, name, value)
					if n++; seen[text] {
						continue
					}
					seen[text] = true
					got, sections := shapes(t, text)
					for shape := range got {
						require.True(t, known[shape], "%s: %q becomes a line of another shape, %q:\n%s", name, value, shape, text)
					}
					require.Equal(t, 7+routes.Backends.Len()+2*routes.Userlists.Len(), sections, "%s: %q\n%s", name, value, text)
				}
			}
		}
	}
	t.Log(n, "hostile values,", len(seen), "configurations, seed", seed)
	t.Run("HAProxy takes all", func(t *testing.T) {
		layout := dataplane.Layout{Base: t.TempDir()}
		text := "global\n    localpeer haptic\npeers haptic\n    peer haptic unix@/run/peers.sock\ndefaults\n    mode http\n    timeout connect 1s\n    timeout client 1s\n    timeout server 1s\nfrontend f\n    bind 127.0.0.1:8080\n"
		for _, name := range slices.Sorted(maps.Keys(backends)) {
			text += backends[name]
		}
		cfg, err := dataplane.NewConfig(text)
		require.NoError(t, err)
		acceptable(t, layout, cfg)
	})
}
