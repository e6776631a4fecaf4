package settings

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/templating"
)

// TestParseProgramErrors goes through testdata/settings/*.txtar: a file of
// settings, and all that is wrong in it, in order.
func TestParseProgramErrors(t *testing.T) {
	scripts, err := filepath.Glob("testdata/settings/*.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(script)
			require.NoError(t, err)
			files := map[string]string{}
			for _, f := range archive.Files {
				files[f.Name] = string(f.Data)
			}
			_, err = ParseProgram("s.yaml", []byte(files["s.yaml"]), &ProgramOptions{Namespace: "edge"})
			got := ""
			if err != nil {
				var all Errors
				if !errors.As(err, &all) {
					t.Errorf("a %T", err)
				}
				got = err.Error() + "\n"
			}
			if want := files["errors"]; got != want {
				if os.Getenv("UPDATE") != "" {
					for i := range archive.Files {
						if archive.Files[i].Name == "errors" {
							archive.Files[i].Data = []byte(got)
						}
					}
					require.NoError(t, os.WriteFile(script, txtar.Format(archive), 0o644))
				}
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestSettingsFromConfigMap(t *testing.T) {
	cm := func(data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "haptic", Name: "settings"}, Data: data}
	}
	s, err := FromConfigMap(cm(map[string]string{ConfigMapKey: "haproxyConfig: {template: global}\n"}))
	if err != nil || s.HAProxyConfig.Template != "global" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, c := range []struct {
		data map[string]string
		want string
	}{
		{nil, "ConfigMap haptic/settings: the key settings.yaml is missing"},
		{map[string]string{ConfigMapKey: "haproxyConfig: {template: x}\n", "haproxy.cfg": ""}, `ConfigMap haptic/settings: unknown key "haproxy.cfg", only settings.yaml is read`},
		{map[string]string{ConfigMapKey: "x: 1\nhaproxyConfig: {template: x}\n"}, "ConfigMap haptic/settings settings.yaml:1:1: x: unknown key"},
	} {
		if _, err := FromConfigMap(cm(c.data)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}

// TestTemplateErrorIsTyped: whoever wants to know finds the template's own error.
func TestTemplateErrorIsTyped(t *testing.T) {
	_, err := ParseProgram("s.yaml", []byte("haproxyConfig:\n  template: |\n    global\n    {{ nope }}\n"), nil)
	var at *templating.Error
	if !errors.As(err, &at) || at.File != "haproxy.cfg" || at.Line != 2 {
		t.Errorf("%v: %+v", err, at)
	}
	var own *Error
	if !errors.As(err, &own) || own.Line != 4 || own.Path != "haproxyConfig.template" {
		t.Errorf("%+v", own)
	}
}

func TestDefaulted(t *testing.T) {
	s, err := Parse("s.yaml", []byte(`
watchedResources: {slices: {apiVersion: discovery.k8s.io/v1, resources: endpointslices}, ingresses: {apiVersion: networking.k8s.io/v1, resources: ingresses, ignoreFields: [spec.rules]}}
watchedResourcesIgnoreFields: [status]
haproxyConfig: {template: x}
reconcile: {debounceInterval: 20ms}
dataplane: {mapsDir: /maps}
`))
	require.NoError(t, err)
	d := s.Defaulted()
	r := d.WatchedResources["ingresses"]
	if r.Store != StoreFull || !slices.Equal(r.IgnoreFields, []string{"status", "spec.rules"}) || len(r.IndexBy) != 2 {
		t.Errorf("%+v", r)
	}
	if r := d.WatchedResources["slices"]; len(r.IgnoreFields) > 0 {
		t.Errorf("instance slices have no status: %+v", r)
	}
	if d.Reconcile["debounceInterval"].Duration != 20*time.Millisecond || d.Reconcile["minDeploymentInterval"].Duration != 2*time.Second {
		t.Errorf("%+v", d.Reconcile)
	}
	if p := d.Dataplane; p.MapsDir != "/maps" || p.GeneralDir != "/etc/haproxy/general" || p.Port != 5555 || p.Strategy != "raw" {
		t.Errorf("%+v", p)
	}
	if len(s.WatchedResources["ingresses"].IndexBy) != 0 {
		t.Error("the settings themselves were changed")
	}
	if again := d.Defaulted(); again.Version() != d.Version() {
		t.Error("the defaults have defaults")
	}
}

// TestVersion: what is said counts, not how.
func TestVersion(t *testing.T) {
	parse := func(text string) string {
		s, err := Parse("s.yaml", []byte(text))
		require.NoError(t, err)
		return s.Version()
	}
	a := parse("haproxyConfig: {template: a}\nlogging: {level: info}\n")
	if b := parse("# hello\nlogging:\n  level: 'info'\nhaproxyConfig:\n  template: \"a\"\n"); a != b {
		t.Error(a, b)
	}
	if b := parse("haproxyConfig: {template: b}\nlogging: {level: info}\n"); a == b {
		t.Error(a, b)
	}
}

func TestExportResources(t *testing.T) {
	for in, want := range map[string]string{
		`resources.x {{ resources.x }} {{ "resources.x" }}`:         `resources.x {{ resources.X }} {{ "resources.x" }}`,
		`{% for a in resources.as.List() %}{# resources.b #}`:       `{% for a in resources.As.List() %}{# resources.b #}`,
		`{%% x := resources.b %%}`:                                  `{%% x := resources.B %%}`,
		`{{ a.resources.b }}{{ my_resources.b }}`:                   `{{ a.resources.b }}{{ my_resources.b }}`,
		"{{ `resources.b` + '\\'' + resources.b":                    "{{ `resources.b` + '\\'' + resources.B",
		`{% raw %}{{ resources.b }}{% end raw %}{{ resources.b }}`:  `{% raw %}{{ resources.b }}{% end raw %}{{ resources.B }}`,
		`{{ f("\\") + resources.b.Get("resources.b", 'x') }} { { {`: `{{ f("\\") + resources.B.Get("resources.b", 'x') }} { { {`,
	} {
		if got := exportResources(in); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	scripts, _ := filepath.Glob("testdata/settings/*.txtar")
	for _, script := range scripts {
		if archive, err := txtar.ParseFile(script); err == nil {
			for _, file := range archive.Files {
				f.Add(string(file.Data))
			}
		}
	}
	f.Add("---\n# nothing")
	f.Add("a: &a [*a]\n")
	f.Add("maps: &a {b: *a}\n")
	f.Add("haproxyConfig: {template: |2\n   x\n}")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("s.yaml", []byte(text))
		if (s == nil) == (err == nil) {
			t.Fatalf("%v, %v", s, err)
		}
		var all Errors
		if err != nil && (!errors.As(err, &all) || err.Error() == "") {
			t.Fatalf("%T %v", err, err)
		}
		lines := strings.Count(text, "\n") + 1
		for _, e := range all {
			if e.Line < 0 || e.Line > lines || e.Line > 0 && e.Column < 1 {
				t.Errorf("%+v in %d lines", e, lines)
			}
		}
		if s != nil {
			if err := s.Check(); err != nil {
				t.Errorf("parsed, and then: %v", err)
			}
			s.Defaulted()
			if exported := exportResources(s.HAProxyConfig.Template); len(exported) != len(s.HAProxyConfig.Template) {
				t.Error("a position moved")
			}
		}
	})
}
