package templating_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

func TestContextStopsALoop(t *testing.T) {
	e, err := templating.Compile(files("a.cfg", "{% for true %}{% end %}", "b.cfg", "{% macro A() %}{% for true %}{% end %}{% end macro %}{% var a = A() %}{{ a }}",
		"c.cfg", "{% macro A() %}0123456789{% end macro %}\n{% for true %}{% var _ = A() %}{% end %}"), nil)
	require.NoError(t, err)
	for _, name := range e.Entries() {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		require.ErrorIs(t, errOf(e.Render(ctx, name, nil)), context.DeadlineExceeded, name)
		cancel()
		require.Error(t, errOf(e.Render(ctx, name, nil)), "%s: rendered with a context that is done", name)
	}
}

func TestConcurrentRenders(t *testing.T) {
	e, err := templating.Compile(files("a.cfg", "{% list[0] = x %}{% for _, s := range list %}{{ s }} {% end %}{% if x == `7` %}{{ fail(x) }}{% end %}"), &templating.Options{
		Globals: map[string]any{"list": [2]string{"a", "b"}}, Vars: map[string]any{"x": ""}})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			x := fmt.Sprint(i)
			out, err := e.Render(t.Context(), "a.cfg", map[string]any{"x": x})
			if (i == 7) != (err != nil) || err == nil && out != x+" b " {
				t.Errorf("%s: got %q, %v", x, out, err)
			}
		})
	}
	wg.Wait()
}
