package templating_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/templating"
)

func manifest(kind, name string, spec map[string]any) map[string]any {
	return map[string]any{"kind": kind, "metadata": map[string]any{"namespace": "demo", "name": name}, "spec": spec}
}

// hostServer is what a host makes of a part of an object: it says so with a field.
type hostServer struct {
	Address string
	Slice   *corev1.ConfigMap
}

// hostStore answers calls.
type hostStore struct{ one *corev1.ConfigMap }

func (s *hostStore) One(string) *corev1.ConfigMap { return s.one }

func (s *hostStore) Two() (string, error) { return s.one.Data["k"], nil }

// TestWhoAnswersForAValue: the object that a shown value was read from answers for its
// line, before those of the loops around it, through variables, macros and functions.
func TestWhoAnswersForAValue(t *testing.T) {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "conf"}, Data: map[string]string{"k": "v"}}
	vars := map[string]any{
		"routes":  []map[string]any{manifest("Route", "web", map[string]any{"to": "x"})},
		"slices":  []map[string]any{manifest("Slice", "one", map[string]any{"ip": "1", "ips": []any{"1"}})},
		"find":    func(string) *corev1.ConfigMap { return config },
		"servers": []*hostServer{{"a", config}},
		"item":    config,
	}
	for body, want := range map[string]string{
		// What a loop says stays, for what shows nothing of another object.
		`{% for r in routes %}text{% end %}`:                                            "web",
		`{% for r in routes %}# {{ r.spec.to }}{% end %}`:                               "web",
		`{% for r in routes %}{% for s in slices %}# {{ s.spec.ip }}{% end %}{% end %}`: "web one",
		// The value decides, not the innermost loop; the last one of a line is the innermost.
		`{% for r in routes %}{% for s in slices %}# {{ r.spec.to }}{% end %}{% end %}`:                 "one web",
		`{% for r in routes %}{% for s in slices %}# {{ r.spec.to }} {{ s.spec.ip }}{% end %}{% end %}`: "web one",
		`{% for r in routes %}{% c := find(digString(r, "spec.to")) %}# {{ c.Data["k"] }}{% end %}`:     "web conf",
		`{% for r in routes %}{% if c := find("x"); c != nil %}# {{ c.Name }}{% end %}{% end %}`:        "web conf",
		// Through variables, loops over a part, macros and functions.
		`{% for r in routes %}{% c := find("") %}{% k := c.Data["k"] %}{% l := k + "!" %}# {{ l }}{% end %}`:                             "web conf",
		`{% for r in routes %}{% for s in slices %}{% for ip in digList(s, "spec.ips") %}# {{ ip }}{% end %}{% end %}{% end %}`:          "web one",
		`{% for r in routes %}{% c := find("") %}{% for _, k := range c.Data %}# {{ k }}{% end %}{% end %}`:                              "web conf",
		`{% macro line(ip any) %}# {{ ip }}{% end %}{% for r in routes %}{% c := find("") %}{{ line(c.Data["k"]) }}{% end %}`:            "web conf",
		`{% macro line(ip any) %}# {{ ip }}{% end %}{% for r in routes %}{% c := find("") %}{{ indent(line(c.Data["k"]), 2) }}{% end %}`: "web conf",
		`{% for r in routes %}{% c := find("") %}# {{ upper(c.Data["k"]) }}{% end %}`:                                                    "web conf",
		`{% for r in routes %}{% c := find("") %}{% var k string %}{% k = c.Data["k"] %}# {{ k }}{% end %}`:                              "web conf",
		// What only chooses does not answer; what the template says itself stays.
		`{% c := find("") %}{% for r in routes %}{% m := map[string]string{"v": "w"} %}# {{ m[c.Data["k"]] }}{% end %}`: "web",
		`{% for r in routes %}{% c := find("") %}{% owner(r) %}# {{ c.Name }}{% end %}`:                                 "web",
		// A value of the host belongs to the objects in its fields.
		`{% for r in routes %}{% for s in servers %}# {{ s.Address }}{% end %}{% end %}`:         "web conf",
		`{% for r in routes %}# {{ hosts.One("x").Data["k"] }}{% end %}`:                         "web conf",
		`{% for r in routes %}{% k := hosts.One("x").Data["k"] %}# {{ k }}{% end %}`:             "web conf",
		`{% for r in routes %}# {{ hosts.One(digString(r, "spec.to")).Data["k"] }}{% end %}`:     "web conf",
		`{% for r in routes %}{% k, err := hosts.Two() %}# {{ k }} {{ err == nil }}{% end %}`:    "web",
		`{% for r in routes %}{% var k, err = hosts.Two() %}# {{ k }} {{ err == nil }}{% end %}`: "web",
		`{% for r in routes %}# {{ both(hosts.Two()) }}{% end %}`:                                "web",
		`{% for r in routes %}# {{ true && hosts.One("x").Name == "conf" }}{% end %}`:            "web",
		`# {{ servers[0].Slice.Name }} {{ item.Name }}`:                                          "conf",
	} {
		decls := map[string]any{"routes": []map[string]any(nil), "slices": []map[string]any(nil), "servers": []*hostServer(nil), "item": (*corev1.ConfigMap)(nil), "hosts": (*hostStore)(nil)}
		globals := map[string]any{"find": vars["find"], "both": func(s string, _ error) string { return s }}
		given := map[string]any{"routes": vars["routes"], "slices": vars["slices"], "servers": vars["servers"], "item": vars["item"], "hosts": &hostStore{config}}
		if !strings.Contains(body, "item") {
			delete(decls, "item")
			delete(given, "item")
		}
		engine, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte(body)}}, &templating.Options{Vars: decls, Globals: globals})
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		plain, err := engine.Render(t.Context(), "haproxy.cfg", given)
		require.NoError(t, err, body)
		traced, err := engine.RenderTraced(t.Context(), "haproxy.cfg", given)
		require.NoError(t, err, body)
		require.Equal(t, plain, traced.Text, body)
		last := ""
		for i := range strings.Count(traced.Text, "\n") + 1 {
			if o := traced.Origin(i + 1); o.File != "" && strings.TrimSpace(strings.Split(traced.Text, "\n")[i]) != "" {
				last = strings.Trim(strings.TrimSpace(named(o.Owners)), "[]")
			}
		}
		require.Equal(t, want, last, "%s", body)
	}
}

// TestWhoAnswersForWhatFails: a value that is refused, or with which a function fails,
// names the object that it was read from, and all that is wrong is found.
func TestWhoAnswersForWhatFails(t *testing.T) {
	configs := map[string]*corev1.ConfigMap{}
	var routes []map[string]any
	for i := range 6 {
		name := fmt.Sprintf("c%d", i/2)
		configs[name] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name}, Data: map[string]string{"k": "a\nb"}}
		routes = append(routes, manifest("Route", fmt.Sprintf("r%d", i), map[string]any{"to": name}))
	}
	configs["c2"].Data["k"] = "good"
	for name, line := range map[string]string{"refused": `# {{ c.Data["k"] }}`, "fails": `{% if c.Data["k"] != "good" %}{{ fail("no " + c.Data["k"]) }}{% end %}`} {
		engine := compile(t, fstest.MapFS{"haproxy.cfg": {Data: []byte("{% for r in routes %}\n{% c := find(digString(r, `spec.to`)) %}\n" + line + "\n{% end %}\n")}},
			&templating.Options{Vars: map[string]any{"routes": []map[string]any(nil)}, Globals: map[string]any{"find": func(name string) *corev1.ConfigMap { return configs[name] }}})
		_, err := engine.Render(t.Context(), "haproxy.cfg", map[string]any{"routes": routes})
		found := map[string]bool{}
		for _, e := range templating.Errors(err) {
			found[named(e.Owners)] = true
		}
		require.Equal(t, map[string]bool{" [r0 c0]": true, " [r1 c0]": true, " [r2 c1]": true, " [r3 c1]": true}, found, name)
	}
}

// TestALineOfManyValues: what a traced render takes grows with the values, also where one
// line, or an indented macro, shows those of thousands of objects.
func TestALineOfManyValues(t *testing.T) {
	const n = 10_000
	var slices []map[string]any
	for i := range n {
		slices = append(slices, manifest("Slice", fmt.Sprint("s", i), map[string]any{"ip": "1"}))
	}
	vars := map[string]any{"route": manifest("Route", "web", map[string]any{"to": "x"}), "slices": slices}
	for _, body := range []string{
		"# {% for _, s := range slices %}{{ s.metadata.name }} {{ route.spec.to }},{% end %}",
		"{% macro M %}{% for i := range slices %}{% s := slices[i] %}\n# {{ s.metadata.name }} {{ route.spec.to }}{% end %}{% end %}\n{{ indent(M(), 2) }}",
	} {
		engine := compile(t, fstest.MapFS{"haproxy.cfg": {Data: []byte(body)}}, &templating.Options{Vars: map[string]any{"route": map[string]any(nil), "slices": []map[string]any(nil)}})
		begin := time.Now()
		traced, err := engine.RenderTraced(t.Context(), "haproxy.cfg", vars)
		require.NoError(t, err)
		require.Empty(t, traced.Refused)
		require.Less(t, time.Since(begin), 20*time.Second)
		owners := named(traced.Origin(strings.Count(traced.Text, "\n") + 1).Owners)
		require.Contains(t, owners, "s9999")
		require.Contains(t, owners, "web")
	}
}
