package settings

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const smallest = "haproxyConfig: {template: x}\n"

// TestParseAttacks: whatever YAML can do, settings say what they seem to
// say, or are refused with a line; nothing costs more than a file of its size.
func TestParseAttacks(t *testing.T) {
	laughs := "maps:\n  a0: &a0 {template: x}\n"
	for i := range 9 {
		was := "*a" + string(rune('0'+i))
		laughs += "  a" + string(rune('1'+i)) + ": &a" + string(rune('1'+i)) + " {" + strings.Repeat("x: "+was+", ", 9) + "y: " + was + "}\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"aliases by the billion":      {smallest + laughs, "s.yaml:4:"},
		"cases by the billion":        {smallest + "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\nvalidationTests: [*f,*f,*f]\n", "too large once aliases are followed"},
		"an alias of itself":          {"maps: &a {b.map: *a}\n" + smallest, "s.yaml:1:"},
		"ten megabytes":               {smallest + "#" + strings.Repeat("x", 10<<20), "are more than the"},
		"lists in lists":              {smallest + "maps: " + strings.Repeat("[", 1<<20), "s.yaml:2:1: not YAML: exceeded max depth"},
		"lists in lists, by dashes":   {smallest + "maps:\n  " + strings.Repeat("- ", 1<<19), "s.yaml:"},
		"keys that are keys":          {smallest + "maps:\n  " + strings.Repeat("? ", 1<<19), "s.yaml:"},
		"a key given twice":           {smallest + smallest, "s.yaml:2:1: haproxyConfig: given twice, first in line 1"},
		"the same in another style":   {smallest + "\"haproxyConfig\": {template: y}\n", "s.yaml:2:1: haproxyConfig: given twice"},
		"merge keys":                  {"maps: {a.map: &a {template: x}, b.map: {<<: *a}}\n" + smallest, "merge keys (<<) are not available"},
		"tabs":                        {smallest + "maps:\n\ta.map: {template: x}\n", "s.yaml:3:1: not YAML"},
		"binary":                      {"haproxyConfig: {template: !!binary eA==}\n", "a string wanted, not !!binary"},
		"a tag of one's own":          {"haproxyConfig: {template: !raw x}\n", "a string wanted, not !raw"},
		"a number as a string":        {"haproxyConfig: {template: !!str 5}\n", ""},
		"a number as a text":          {"haproxyConfig: {template: 5}\n", "a string wanted, not a number; put it in quotes"},
		"a boolean as a text":         {"haproxyConfig: {template: yes}\n", ""}, // a string in YAML 1.2
		"a number as a name":          {smallest + "maps: {5: {template: x}}\n", "a key must be a string; put it in quotes"},
		"nothing as a name":           {smallest + "maps: {~: {template: x}}\n", "a key must be a string; put it in quotes"},
		"NUL":                         {"haproxyConfig: {template: \"a\x00\"}\n", "s.yaml:1:1: not YAML: control characters"},
		"NUL, escaped":                {`haproxyConfig: {template: "a\nb\0"}`, "control character '\\x00' in line 2"},
		"an escape character":         {smallest + `maps: {a.map: {template: "\e"}}`, "control character"},
		"not UTF-8":                   {"haproxyConfig: {template: \xff}\n", "not UTF-8"},
		"UTF-16":                      {"\xff\xfeh\x00", "not UTF-8"},
		"a byte order mark":           {"\ufeff" + smallest, ""},
		"CRLF":                        {"haproxyConfig:\r\n  template: |\r\n    one\r\n    {{ two }}\r\n", "s.yaml:4:8: haproxyConfig.template: undefined: two"},
		"a map outside of its folder": {smallest + "maps: {../a.map: {template: x}}\n", "maps['../a.map']"},
		"a snippet outside":           {smallest + "templateSnippets: {../a.cfg: {template: x}}\n", "templateSnippets['../a.cfg']"},
		"a section outside":           {smallest + "haproxySections: {../a.cfg: {template: x}}\n", "haproxySections['../a.cfg']"},
		"a hidden file":               {smallest + "files: {.a: {template: x}}\n", "files['.a']"},
		"JSON":                        {`{"haproxyConfig": {"template": "x"}, "reconcile": {"debounceInterval": "1s"}}`, ""},
		"two documents":               {smallest + "---\n" + smallest, "more than one document"},
		"a directive":                 {"%YAML 1.1\n---\n" + smallest, ""},
		"a directive nobody knows":    {"%YAML 3.0\n---\n" + smallest, "s.yaml:1:1: not YAML"},
		"each without its resource":   {smallest + "maps: {a.map: {template: x, each: {resource: b, as: c}}}\n", `"b" is not in watchedResources`},
		"each of maps":                {"watchedResources: {r: {apiVersion: x.test/v1, resources: rs}}\n" + smallest + "maps: {a.map: {template: x, each: {resource: r, as: c}}}\n", ""},
		"each, on demand":             {"watchedResources: {r: {apiVersion: v1, resources: pods, store: on-demand}}\n" + smallest + "maps: {a.map: {template: x, each: {resource: r, as: c}}}\n", "fetched on demand"},
		"each as what is taken":       {"watchedResources: {r: {apiVersion: v1, resources: pods}}\n" + smallest + "maps: {a.map: {template: x, each: {resource: r, as: shared}}}\n", "or templates use it already"},
		"each as two":                 {"watchedResources: {r: {apiVersion: v1, resources: pods}, s: {apiVersion: v1, resources: services}}\n" + smallest + "maps: {a.map: {template: x, each: {resource: r, as: o}}, b.map: {template: x, each: {resource: s, as: o}}}\n", "a variable is always of one resource"},
		"each of haproxy.cfg":         {"haproxyConfig: {template: x, each: {resource: r, as: o}}\n", "haproxy.cfg is rendered once"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseProgram("s.yaml", []byte(c.text), nil)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.Less(t, len(err.Error()), 1<<16, "who reads that?")
		})
	}
}

// TestConfigMapAttacks: a ConfigMap has one key, and nothing else beside it.
func TestConfigMapAttacks(t *testing.T) {
	for name, c := range map[string]struct {
		cm   corev1.ConfigMap
		want string
	}{
		"good":          {corev1.ConfigMap{Data: map[string]string{ConfigMapKey: smallest}}, ""},
		"two keys":      {corev1.ConfigMap{Data: map[string]string{ConfigMapKey: smallest, "settings.yml": smallest}}, `unknown key "settings.yml"`},
		"binary":        {corev1.ConfigMap{BinaryData: map[string][]byte{ConfigMapKey: []byte(smallest)}}, ""},
		"binary beside": {corev1.ConfigMap{Data: map[string]string{ConfigMapKey: smallest}, BinaryData: map[string][]byte{"x": nil}}, `unknown key "x"`},
		"empty":         {corev1.ConfigMap{}, "the key settings.yaml is missing"},
		"empty value":   {corev1.ConfigMap{Data: map[string]string{ConfigMapKey: ""}}, "empty"},
	} {
		c.cm.ObjectMeta = metav1.ObjectMeta{Namespace: "a", Name: "b"}
		_, err := FromConfigMap(&c.cm)
		if c.want == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.want, name)
			require.ErrorContains(t, err, "ConfigMap a/b", name)
		}
	}
}
