package templating_test

import (
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// Programs with several engines compile them when it suits them. The race
// detector tells.
func TestCompileAtOnce(t *testing.T) {
	files := fstest.MapFS{"haproxy.cfg": {Data: []byte("{% for true %}{% if !false && true %}{% break %}{% end %}{% end %}global\n")}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			engine, err := templating.Compile(files, nil)
			if assert.NoError(t, err) {
				_, err = engine.RenderTraced(t.Context(), "haproxy.cfg", nil)
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
}

// A loop that shows nothing but what is refused writes nothing, so that no bound
// of the output ends it.
func TestEndlessRefusalsEnd(t *testing.T) {
	engine, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte("{% for true %}# {{ s }}{% end %}\n")}},
		&templating.Options{Vars: map[string]any{"s": ""}, MaxOutput: 1 << 30})
	require.NoError(t, err)
	_, err = engine.Render(t.Context(), "haproxy.cfg", map[string]any{"s": "a\nb"})
	require.ErrorContains(t, err, "control character")
}

// TestMarkerThatIsNoText: the marker of a raw block that is not UTF-8 is an error.
func TestMarkerThatIsNoText(t *testing.T) {
	_, err := templating.Compile(fstest.MapFS{"haproxy.cfg": {Data: []byte("{% raw \xad %}{{ raw(x) }}\n")}}, nil)
	require.Error(t, err)
	require.NotEmpty(t, templating.Errors(err))
}
