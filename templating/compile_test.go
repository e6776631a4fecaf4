package templating_test

import (
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"

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
