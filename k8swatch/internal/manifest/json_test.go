package manifest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	yamlnode "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// FuzzPlainJSON: what is read in the fast way is what kubectl reads.
func FuzzPlainJSON(f *testing.F) {
	for _, s := range []string{
		"a: b", "{a: [1, 0, 10.1.2.3, 10.0.0.0/8, true, null, ~, yes, y, off, 'x', \"y\\tz\"]}", "a: |\n  b\n  c\n", "a: >-\n  b\n\n  c\n", "a: |2+\n   b\n\n",
		"a: 012", "a: 0x1f", "a: 1_000", "a: 1.5", "a: .inf", "a: 2001-01-01", "a: 12:30:45", "a: !!str 1", "!!map {a: b}", "<<: {a: b}", "1: b", "y: b", "a: /x/y", "a: 123456789012345678",
		"a:", "a: {}", "[]", "a: 'don''t'", "a: \"\\u0085\"", "a: =", "a: '='", "a: 1e3", "a: E3", "NO: Null", "a: \"\\x01\"", "a: '\u00e9'", "a: -1", "a: +1", "a: 1.2.3.4.5", "'': ''", "a: n\n'b': 'n'", "a: \"null\"",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var node yamlnode.Node
		if yamlnode.Unmarshal([]byte(text), &node) != nil || node.Kind == 0 {
			return
		}
		i := inliner{budget: maxAliased}
		plain, err := i.copy(&node, false)
		if err != nil {
			return
		}
		fast, ok := plainJSON(nil, plain)
		if !ok {
			return
		}
		again, err := yamlnode.Marshal(plain)
		require.NoError(t, err)
		slow, err := yaml.YAMLToJSON(again)
		require.NoError(t, err, "%s", again)
		var x, y any
		require.NoError(t, json.Unmarshal(fast, &x), "%s", fast)
		require.NoError(t, json.Unmarshal(slow, &y))
		require.Equal(t, y, x, "%s\n%s", fast, slow)
	})
}

// TestPlainManifestsAreFast: usual manifests are read in the fast way.
func TestPlainManifestsAreFast(t *testing.T) {
	for _, text := range []string{
		"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web-1, labels: {kubernetes.io/service-name: web}}\nports: [{port: 80}]\nendpoints:\n- addresses: [192.0.2.1]\n  conditions: {ready: true}\n",
		"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a, annotations: {x.io/y: \"1m\"}}\nspec:\n  rules:\n  - host: '*.shop.test'\n    http: {paths: [{path: /, pathType: Prefix}]}\n",
	} {
		var node yamlnode.Node
		require.NoError(t, yamlnode.Unmarshal([]byte(text), &node))
		_, ok := plainJSON(nil, node.Content[0])
		require.True(t, ok, text)
	}
}
