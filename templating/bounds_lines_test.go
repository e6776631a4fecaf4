package templating_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// TestPrintsWithoutEnd: the bounds of the output end a render, with the line where it is,
// and before it took much of the memory. With the default bounds that takes 3 to 8
// seconds of a processor, and 270 MiB.
func TestPrintsWithoutEnd(t *testing.T) {
	const most = 1 << 20
	for name, template := range map[string]string{
		"values":   "{% for true %}{{ x }}\n{% end %}",
		"one line": "{% for true %}abc {{ x }} def {% end %}",
		"text":     "{% for true %}\n0123456789{% end %}",
		"in macro": "{% macro A() %}{% for true %}{{ 123456789 }}{% end %}{% end macro %}\n{{ A() }}",
		"macro":    "{% macro m(x int) %}{{ x }}\n{% end %}{% for true %}{{ m(x) }}{% end %}",
	} {
		t.Run(name, func(t *testing.T) {
			e, err := templating.Compile(files("a.cfg", template), &templating.Options{Vars: map[string]any{"x": 0}, MaxOutput: most})
			require.NoError(t, err)
			peak := peakOfHeap()
			_, err = e.Render(t.Context(), "a.cfg", map[string]any{"x": 1})
			var at *templating.Error
			if !errors.Is(err, templating.ErrTooLarge) || !errors.As(err, &at) || at.Line == 0 || strings.Contains(err.Error(), "memory") {
				t.Errorf("got %v", err)
			}
			require.LessOrEqual(t, peak(), uint64(64*most))
		})
	}
}
