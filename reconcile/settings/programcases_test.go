package settings

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
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

// TestCaseRefusedByHAProxy: what HAProxy refuses of a case is told at the line of the
// template that wrote it, and what else fails at the case.
func TestCaseRefusedByHAProxy(t *testing.T) {
	const text = `haproxyConfig:
  template: |
    global
        foo
validationTests:
- name: one
  assertions: [{type: haproxy_valid}]
- name: two
  assertions:
  - {type: haproxy_valid}
  - {type: contains, pattern: web}
`
	program, err := ParseProgram("s.yaml", []byte(text), nil)
	require.NoError(t, err)
	validator := reconcile.ValidatorFunc(func(context.Context, *dataplane.Config) error { return &refusal{dataplane.Position{Line: 2}} })
	const at = "s.yaml:4:9: haproxyConfig.template: no such keyword; rendered as line 2 of haproxy.cfg; "
	require.EqualError(t, runCases(t.Context(), &inUse{program: program, validator: validator}).OrNil(),
		at+"so the case \"one\" fails (s.yaml:7)\n"+at+"so the case \"two\" fails (s.yaml:10)\n"+
			"s.yaml:8:1: validationTests: FAIL  two\n    s.yaml:11: contains haproxy.cfg /web/: no match in haproxy.cfg")
}
