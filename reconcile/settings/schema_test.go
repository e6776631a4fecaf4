package settings

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

// TestSchemaFile keeps the published file what the Go type says: UPDATE=1 writes
// it anew.
func TestSchemaFile(t *testing.T) {
	const file = "settings.schema.json"
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(file, Schema(), 0o644))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(text), string(Schema()))
}

// TestSchemaAgreesWithParser: where the parser finds nothing wrong, the schema
// does not either; and every structural mistake is one to both.
func TestSchemaAgreesWithParser(t *testing.T) {
	examples := map[string]string{}
	scripts, err := filepath.Glob("testdata/settings/*.txtar")
	require.NoError(t, err)
	for _, script := range scripts {
		archive, err := txtar.ParseFile(script)
		require.NoError(t, err)
		examples[filepath.Base(script)] = string(archive.Files[0].Data)
	}
	text, err := os.ReadFile("../../examples/settings/testdata/settings.yaml")
	require.NoError(t, err)
	examples["examples"] = string(text)
	const good = "haproxyConfig: {template: x}\n"
	valid := []string{"dataplane: {scheme: https, tls: {caSecretRef: {name: ca, key: bundle.pem}, serverName: haproxy.edge}}", "reconcile: {debounceInterval: 1m30.5s}", "dataplane: {port: 80, keepFiles: true, podSelector: {matchLabels: {a: b}}}", "maps: {a.map: {template: ''}}"}
	for _, line := range valid {
		examples[line] = good + line
	}
	for name, text := range examples {
		s, errs := read("s.yaml", []byte(text))
		var doc any
		if s == nil || yaml.UnmarshalStrict([]byte(text), &doc) != nil {
			continue
		}
		wrong := schemaErrors(t, doc)
		if len(errs) == 0 && len(wrong) > 0 {
			t.Errorf("%s: the schema refuses what the parser takes: %v", name, wrong)
		}
	}
	for _, line := range []string{
		"map: {}", "maps: []", "maps: {a.map: {}}", "maps: {a.map: x}", "maps: {a.map: {template: 1}}", "maps:", "logging: {level: loud}",
		"reconcile: {debounceInterval: 1}", "reconcile: {debounceInterval: -1s}", "reconcile: {debounceInterval: fast}",
		"dataplane: {port: '1'}", "dataplane: {port: 70000}", "dataplane: {port: 1.5}", "dataplane: {tls: {caSecretRef: {key: ca.crt}}}", "dataplane: {keepFiles: 'yes'}",
		"watchedResources: {a: {apiVersion: v1}}", "watchedResources: {a: {apiVersion: v1, resources: pods, indexBy: x}}",
		"watchedResources: {a: {apiVersion: v1, resources: pods, store: none}}", "watchedResourcesIgnoreFields: [1]",
		"haproxySections: {a.cfg: {template: x, each: {resource: a}}}", "credentialsSecretRef: {}", "files: {x.http: {template: x, postProcessing: [{type: other}]}}",
	} {
		text := good + line + "\n"
		_, err := Parse("s.yaml", []byte(text))
		var doc any
		require.NoError(t, yaml.Unmarshal([]byte(text), &doc), line)
		if wrong := schemaErrors(t, doc); err == nil || len(wrong) == 0 {
			t.Errorf("%s: the parser says %v, the schema %v", line, err, wrong)
		}
	}
}

// schemaErrors is what Kubernetes' validator of JSON schemas says.
func schemaErrors(t *testing.T, doc any) (wrong []error) {
	var schema spec.Schema
	require.NoError(t, json.Unmarshal(Schema(), &schema))
	return validate.NewSchemaValidator(&schema, nil, "", strfmt.Default).Validate(doc).Errors
}
