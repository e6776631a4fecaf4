package settings

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/reconcile/cases"
)

// TestProgramCaseErrors: where a template fails for the fixtures of a case, the
// message has the line of the settings that it stands in.
func TestProgramCaseErrors(t *testing.T) {
	program, err := ParseProgram("s.yaml", []byte(`watchedResources:
  services: {apiVersion: v1, resources: services}
haproxyConfig:
  template: |
    global
    {% for svc in resources.services.List() %}
    # {{ fail("not " + svc.Name) }}
    {% end %}
validationTests:
- name: one
  fixtures: [{apiVersion: v1, kind: Service, metadata: {namespace: a, name: web}}]
  assertions: [{type: contains, pattern: web}]
`), nil)
	require.NoError(t, err)
	runner := &cases.Runner{Renderer: program.CaseRenderer}
	results := runner.Run(t.Context(), program.Settings().Cases)
	require.Contains(t, results.String(), "s.yaml:7:")
	require.Contains(t, results.String(), "not web")
}
