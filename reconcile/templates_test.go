package reconcile

import (
	"context"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/templating"
)

func TestTemplatesSayWhatFileTheyAre(t *testing.T) {
	files := fstest.MapFS{
		"haproxy.cfg":         {Data: []byte("global\n")},
		"maps/hosts.map":      {Data: []byte("a b\n")},
		"crt-lists/certs.txt": {Data: []byte("# none\n")},
		"general/503.http":    {Data: []byte("HTTP/1.0 503\r\n\r\n")},
	}
	compile := func() *Templates {
		engine, err := templating.Compile(files, nil)
		require.NoError(t, err)
		return &Templates{Engine: engine, Input: func(context.Context) (*Input, error) { return &Input{}, nil }}
	}
	templates := compile()
	require.NoError(t, templates.Check())
	rendered, err := templates.Render(t.Context())
	require.NoError(t, err)
	require.Equal(t, "global\n", rendered.Config.Main())
	for kind, name := range map[dataplane.FileKind]string{dataplane.Map: "hosts.map", dataplane.CRTList: "certs.txt", dataplane.General: "503.http"} {
		_, ok := rendered.Config.File(kind, name)
		require.True(t, ok, "%s %s", kind, name)
	}

	delete(files, "haproxy.cfg")
	files["maps/a.b.map"] = &fstest.MapFile{Data: []byte("x")}
	files["elsewhere/x.txt"] = &fstest.MapFile{Data: []byte("x")}
	err = compile().Check()
	require.ErrorContains(t, err, "template haproxy.cfg: missing")
	require.ErrorContains(t, err, "template maps/a.b.map:")
	require.ErrorContains(t, err, "template elsewhere/x.txt:")
}

// TestTemplatesThatMisbehave leave what is deployed alone and name the line.
func TestTemplatesThatMisbehave(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"loops for ever":     {"global\n{% for %}{% end %}\n", "deadline exceeded"}, // no line: it is stopped wherever it is
		"prints without end": {"global\n{% for %}0123456789012345678901234567890123456789012345678901234567890123456789{% end %}\n", "too large"},
		"panics":             {"global\n{% var s []string %}{{ s[3] }}\n", "out of range"},
		"fails":              {"global\n{{ fail(\"no such thing\") }}\n", "no such thing"},
		"injects":            {"global\n# {{ hostile }}\n", "control character"},
	} {
		t.Run(name, func(t *testing.T) {
			engine, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte(c.text)}},
				&templating.Options{MaxOutput: 1 << 20, Globals: map[string]any{"hostile": "x\nbackend evil"}})
			require.NoError(t, err)
			target := &fakeTarget{name: "one"}
			loop, err := New(Options{
				Renderer: &Templates{Engine: engine, Input: func(context.Context) (*Input, error) { return &Input{}, nil }},
				Targets:  []Target{target}, RenderTimeout: 200 * time.Millisecond,
			})
			require.NoError(t, err)
			_, err = loop.Once(t.Context())
			require.ErrorContains(t, err, "haproxy.cfg:")
			require.ErrorContains(t, err, c.want)
			var where *templating.Error
			require.ErrorAs(t, err, &where)
			require.True(t, where.Line == 2 || where.Line == 0 && name == "loops for ever", "line %d", where.Line)
			require.Empty(t, target.texts())
		})
	}
}
