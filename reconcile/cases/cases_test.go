package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/render"
	"github.com/hapticsdk/haptic/templating"
)

// caseRunner runs cases over templates that see Services, what was deployed
// before, and what can be fetched. Configurations with the word "nonsense" are
// not valid.
func caseRunner(t *testing.T, files fstest.MapFS) *Runner {
	vars := map[string]any{"services": []*corev1.Service(nil), "secrets": []*corev1.Secret(nil), "previous": "", "http": map[string]string(nil)}
	engine, err := templating.Compile(Without(files), &templating.Options{Vars: vars})
	require.NoError(t, err)
	var asked atomic.Int32
	return &Runner{
		Renderer: func(ctx context.Context, in *Input) (reconcile.Renderer, error) {
			services, err := k8swatch.New(in.Source, corev1.SchemeGroupVersion.WithResource("services"), nil)
			require.NoError(t, err)
			secrets, err := k8swatch.New(in.Source, corev1.SchemeGroupVersion.WithResource("secrets"), nil)
			require.NoError(t, err)
			watchers := k8swatch.NewGroup(nil)
			require.NoError(t, watchers.Add(services, secrets))
			if err := in.Sync(ctx, watchers); err != nil {
				return nil, err
			}
			return &render.Templates{Engine: engine, Input: func(context.Context) (*render.Input, error) {
				values := map[string]any{"previous": "", "http": in.HTTP,
					"services": k8swatch.Read[*corev1.Service](services.Snapshot()).List(),
					"secrets":  k8swatch.Read[*corev1.Secret](secrets.Snapshot()).List()}
				if in.Previous != nil {
					values["previous"] = in.Previous.Main()
				}
				return &render.Input{Vars: values, Resources: map[string]int{"services": len(in.Source.Objects())},
					Refused: []reconcile.Refusal{{Resource: "Service default/x", Field: "spec", Reason: "an example"}}}, nil
			}}, nil
		},
		Validator: reconcile.ValidatorFunc(func(_ context.Context, cfg *dataplane.Config) error {
			if !asked.CompareAndSwap(0, 1) {
				return errors.New("asked twice at once")
			}
			defer asked.Store(0)
			if strings.Contains(cfg.Main(), "nonsense") {
				return errors.New("haproxy.cfg:2: unknown keyword 'nonsense'")
			}
			return nil
		}),
	}
}

// TestCases plays the scripts in testdata: templates with their cases, and what
// is said of them.
func TestCases(t *testing.T) {
	scripts, err := filepath.Glob("testdata/cases/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(script)
			require.NoError(t, err)
			files, want := fstest.MapFS{}, ""
			for _, f := range archive.Files {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				files[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			folder, err := files.Sub(Folder)
			require.NoError(t, err)
			cases, err := Read(folder)
			got := ""
			if err != nil {
				got = err.Error() + "\n"
			} else {
				results := caseRunner(t, files).Run(t.Context(), cases)
				got = results.String()
				_, err := json.Marshal(results)
				require.NoError(t, err)
			}
			if os.Getenv("UPDATE") != "" {
				for i, f := range archive.Files {
					if f.Name == "want" {
						archive.Files[i].Data = []byte(got)
					}
				}
				require.NoError(t, os.WriteFile(script, txtar.Format(archive), 0o600))
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got)\n%s\ngot\n%s", d, got)
			}
		})
	}
}

func parse(t *testing.T, text string) []Case {
	t.Helper()
	cases, err := Parse("c.yaml", []byte(text))
	require.NoError(t, err)
	return cases
}

// TestBadCasesStopNoOther: one hangs with its context, one without, one panics.
func TestBadCasesStopNoOther(t *testing.T) {
	var text string
	for _, name := range []string{"hangs", "panics", "never ends", "good", "fails", "nothing", "panics later"} {
		text += fmt.Sprintf("- {name: %s, currentConfig: \"# %s\\n\", assertions: [{type: contains, pattern: global}]}\n", name, name)
	}
	cases := parse(t, text)
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		runner := &Runner{Parallel: 2, Timeout: 10 * time.Second, Renderer: func(ctx context.Context, in *Input) (reconcile.Renderer, error) {
			switch strings.TrimSpace(strings.TrimPrefix(in.Previous.Main(), "# ")) {
			case "hangs":
				<-ctx.Done()
				return nil, ctx.Err()
			case "panics":
				panic("at once")
			case "never ends":
				<-let
			case "fails":
				return nil, errors.New("no such thing")
			case "nothing":
				return nil, nil
			case "panics later":
				return reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) { panic("later") }), nil
			}
			return reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
				cfg, err := dataplane.NewConfig("global\n")
				return &reconcile.Rendered{Config: cfg}, err
			}), nil
		}}
		start := time.Now()
		results := runner.Run(t.Context(), cases)
		require.LessOrEqual(t, time.Since(start), 21*time.Second)
		require.Equal(t, `FAIL  hangs
    c.yaml:1: renderer: context deadline exceeded
FAIL  panics
    c.yaml:2: panic: at once
FAIL  never ends
    c.yaml:3: it does not end with its context: context deadline exceeded
ok    good
FAIL  fails
    c.yaml:5: renderer: no such thing
FAIL  nothing
    c.yaml:6: renderer: Runner.Renderer returned none
FAIL  panics later
    c.yaml:7: panic: later
7 cases: 1 passed, 6 failed
`, results.String())
		close(let)
	})
}

// TestValidatorThatHangs: whoever waits for it ends with its own time.
func TestValidatorThatHangs(t *testing.T) {
	cases := parse(t, "- {name: a, assertions: [{type: haproxy_valid}]}\n- {name: b, assertions: [{type: haproxy_valid}]}\n- {name: c, assertions: [{type: contains, pattern: global}]}\n")
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		runner := &Runner{Parallel: 3, Timeout: 10 * time.Second,
			Renderer: func(context.Context, *Input) (reconcile.Renderer, error) {
				return reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
					cfg, err := dataplane.NewConfig("global\n")
					return &reconcile.Rendered{Config: cfg}, err
				}), nil
			},
			Validator: reconcile.ValidatorFunc(func(context.Context, *dataplane.Config) error { <-let; return nil })}
		results := runner.Run(t.Context(), cases)
		require.False(t, results[0].Passed())
		require.False(t, results[1].Passed())
		require.True(t, results[2].Passed())
		require.Contains(t, results.String(), "it does not end with its context")
		close(let)
	})
}

// TestCaseHTTP: templates fetch what the case gives, and nothing else.
func TestCaseHTTP(t *testing.T) {
	vars := render.HostVars()
	engine, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte("global\n# {{ http.Fetch(\"https://example.test/list\") }}, {{ len(currentConfig.Sections(\"backend\")) }} backends\n")}}, &templating.Options{Vars: vars})
	require.NoError(t, err)
	runner := &Runner{Renderer: func(context.Context, *Input) (reconcile.Renderer, error) {
		return &render.Templates{Engine: engine, Input: func(context.Context) (*render.Input, error) { return &render.Input{Vars: vars}, nil }}, nil
	}}
	results := runner.Run(t.Context(), parse(t, `
- name: given
  currentConfig: "backend a\nbackend b\n"
  http: {"https://example.test/list": the list}
  assertions: [{type: contains, pattern: "^# the list, 2 backends$"}]
- name: not given
  assertions: [{type: contains, target: rendering_error, pattern: no http content}]
`))
	require.True(t, results.Passed(), results.String())
}

// TestCasesThatAreNotRun fail: what was not looked at is not well.
func TestCasesThatAreNotRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	runner := caseRunner(t, fstest.MapFS{"haproxy.cfg": {Data: []byte("global\n")}})
	err := runner.Check(ctx, parse(t, "{name: a, assertions: [{type: contains, pattern: global}]}"))
	var failed *Failed
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "1 case: 0 passed, 1 failed\nFAIL  a\n    c.yaml:1: context canceled", err.Error())
	require.NoError(t, runner.Check(t.Context(), nil))
}

// TestNotDeterministic: a renderer that differs from render to render, and one
// that differs with the order of the fixtures alone.
func TestNotDeterministic(t *testing.T) {
	cases := parse(t, `
name: a
fixtures: [{apiVersion: v1, kind: Service, metadata: {name: v}}, {apiVersion: v1, kind: Service, metadata: {name: w}}]
assertions: [{type: deterministic}]`)
	render := func(text func(in *Input) string) string {
		runner := &Runner{Renderer: func(_ context.Context, in *Input) (reconcile.Renderer, error) {
			return reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
				cfg, err := dataplane.NewConfig("global\n    # " + text(in) + "\n")
				return &reconcile.Rendered{Config: cfg}, err
			}), nil
		}}
		results := runner.Run(t.Context(), cases)
		return results[0].Problems()
	}
	n := 0
	require.Equal(t, `c.yaml:4: deterministic: render 2 of the same differs from the first: haproxy.cfg: line 2 (- wanted, + is)
    - # 1
    + # 2
`, render(func(*Input) string { n++; return fmt.Sprint(n) }))
	require.Equal(t, `c.yaml:4: deterministic: with the fixtures in another order: haproxy.cfg: line 2 (- wanted, + is)
    - # v
    + # w
`, render(func(in *Input) string { return in.Source.Objects()[0].GetName() }))
	require.Empty(t, render(func(*Input) string { return "" }))
}

// TestCaseSecrets: neither keys nor values of Secrets are in a result, however
// an assertion fails.
func TestCaseSecrets(t *testing.T) {
	canary := "c4nary-value-" + strings.Repeat("0123456789", 50) // longer than a line that is shown
	text := `
name: a
fixtures:
- {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: ` + canary + `, tls.key: "-----BEGIN K-----\n` + canary + `-of-key\n-----END K-----\n"}}
assertions:
`
	for _, target := range []string{"haproxy.cfg", "cert:c.pem", "file:f.json", "rendering_error"} {
		text += fmt.Sprintf(`
- {type: contains, target: %[1]s, pattern: %[2]s.*missing}
- {type: not_contains, target: %[1]s, pattern: "."}
- {type: match_count, target: %[1]s, pattern: ".", expected: 0}
- {type: equals, target: %[1]s, expected: %[2]s}
- {type: match_order, target: %[1]s, patterns: [value, canary-is-missing]}
`, target, canary)
	}
	text += `
- {type: jsonpath, target: "file:f.json", jsonpath: "{.p}", expected: none}
- {type: jsonpath, jsonpath: "{.config}", expected: none}
- {type: jsonpath, jsonpath: "{.files}", expected: none}
- {type: haproxy_valid}
`
	templates := fstest.MapFS{
		"haproxy.cfg":        {Data: []byte("{% for s in secrets %}{% for k, v := range s.Data %}{% if k == \"password\" %}userlist u\n    user a insecure-password {{ raw(string(v)) }}\n    # nonsense \"{{ raw(string(v)) }}\"\n{% end %}{% end %}{% end %}")},
		"certificates/c.pem": {Data: []byte("{% for s in secrets %}{% for k, v := range s.Data %}{% if k == \"tls.key\" %}{{ raw(string(v)) }}{% end %}{% end %}{% end %}")},
		"general/f.json":     {Data: []byte("{% for s in secrets %}{% for k, v := range s.Data %}{% if k == \"password\" %}{\"p\": \"{{ raw(string(v)) }}\"}{% end %}{% end %}{% end %}")},
	}
	runner := caseRunner(t, templates)
	runner.Validator = reconcile.ValidatorFunc(func(_ context.Context, cfg *dataplane.Config) error { return errors.New("no: " + cfg.Main()) })
	for name, cfg := range map[string]string{"good": "", "render fails": "{% for s in secrets %}{{ fail(sprintf(\"%s\", s.Data)) }}{% end %}"} {
		if cfg != "" {
			templates["haproxy.cfg"].Data = []byte(cfg)
			runner = caseRunner(t, templates)
		}
		results := runner.Run(t.Context(), parse(t, text))
		encoded, err := json.Marshal(results)
		require.NoError(t, err)
		require.NotContains(t, results.String()+string(encoded), "c4nary", name)
		require.GreaterOrEqual(t, strings.Count(results.String(), "\n    c.yaml:"), 15, "%s: %s", name, results)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"name: a\nassertions:\n- type: contains\n  pattern: a\n",
		"- {name: a, fixtures: [{apiVersion: v1, kind: Service, metadata: {name: x}}], assertions: [{type: deterministic}]}\n---\nname: b\n",
		"name: a\ncurrentConfig: x\nhttp: {a: b}\nassertions: [{type: jsonpath, jsonpath: '{.a[?(@.b==1)]}', expected: 1}]",
		"a: &a [*a]\n", "name: a\nfixtures: &x {a: *x}\nassertions: []", "? {a: b}\n: c\n", "- - -\n", "\t", "name: !!binary a",
		"name: a\nassertions: [{type: match_order, patterns: [a, '(']}, {type: match_count, pattern: a, expected: -1}]",
		"name: a\nfixtures: {services: [{apiVersion: v1, kind: List, items: [{}]}]}\nassertions: [{type: equals, expected: ''}]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cases, err := Parse("f.yaml", []byte(text))
		if err != nil {
			if cases != nil {
				t.Error("cases beside an error")
			}
			for _, line := range strings.Split(err.Error(), "\n") {
				if strings.HasPrefix(line, "f.yaml:0") {
					t.Errorf("no line: %s", line)
				}
			}
			return
		}
		for i := range cases {
			c := &cases[i]
			if c.Name == "" || c.Line < 1 || len(c.Assertions) == 0 {
				t.Errorf("incomplete: %+v", c)
			}
			for _, a := range c.Assertions {
				if a.Line < 1 || a.Target == "" || a.String() == "" {
					t.Errorf("incomplete: %+v", a)
				}
			}
		}
		runner := &Runner{Renderer: func(context.Context, *Input) (reconcile.Renderer, error) {
			return reconcile.RendererFunc(func(context.Context) (*reconcile.Rendered, error) {
				cfg, err := dataplane.NewConfig(text)
				return &reconcile.Rendered{Config: cfg}, err
			}), nil
		}}
		for _, r := range runner.Run(t.Context(), cases) {
			if strings.Contains(r.String(), "panic: runtime error") {
				t.Error(r.String())
			}
		}
	})
}

// TestMissingRendererIsNamed: a Runner without fields fails its cases, and says why.
func TestMissingRendererIsNamed(t *testing.T) {
	results := (&Runner{}).Run(t.Context(), []Case{{Name: "one"}})
	require.Equal(t, "Runner.Renderer is missing", results[0].Error)
	runner := &Runner{Renderer: func(context.Context, *Input) (reconcile.Renderer, error) { return (*render.Templates)(nil), nil }}
	results = runner.Run(t.Context(), []Case{{Name: "one", Assertions: []Assertion{{Type: "contains", Pattern: "x"}}}})
	require.Contains(t, results[0].Assertions[0].Problem, "render: Templates.Engine is missing")
}
