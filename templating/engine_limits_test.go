package templating_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

func TestLimits(t *testing.T) {
	for name, template := range map[string]string{
		"output":         "{% for true %}\n0123456789{% end %}",
		"value":          "{% for true %}\n{{ 123456789 }}{% end %}",
		"macro":          "{% macro A() %}{% for true %}0123456789{% end %}{% end macro %}\n{{ A() }}",
		"value in macro": "{% macro A() %}{% for true %}{{ 123456789 }}{% end %}{% end macro %}\n{{ A() }}",
	} {
		t.Run(name, func(t *testing.T) {
			e, err := templating.Compile(files("a.cfg", template), &templating.Options{MaxOutput: 1000})
			require.NoError(t, err)
			_, err = e.Render(t.Context(), "a.cfg", nil)
			var at *templating.Error
			if !errors.Is(err, templating.ErrTooLarge) || !errors.As(err, &at) || at.Line == 0 {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestContextStopsALoop(t *testing.T) {
	e, err := templating.Compile(files("a.cfg", "{% for true %}{% end %}", "b.cfg", "{% macro A() %}{% for true %}{% end %}{% end macro %}{% var a = A() %}{{ a }}",
		"c.cfg", "{% macro A() %}0123456789{% end macro %}\n{% for true %}{% var _ = A() %}{% end %}"), nil)
	require.NoError(t, err)
	for _, name := range e.Entries() {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := e.Render(ctx, name, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", name, err)
		}
		cancel()
		if _, err := e.Render(ctx, name, nil); err == nil {
			t.Errorf("%s: rendered with a context that is done", name)
		}
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
