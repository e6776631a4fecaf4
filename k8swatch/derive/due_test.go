package derive

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDeadlinesDoNotPileUp: an item that is computed again and again has one.
func TestDeadlinesDoNotPileUp(t *testing.T) {
	g, start := New(), time.Now()
	in := NewInput[string, int](g, "in")
	Each("items", in.Collection, func(at *Reads, _ string, n, _ int) (int, bool) {
		at.Again(start.Add(time.Duration(n+1) * time.Hour))
		return n, true
	})
	for n := range 10_000 {
		in.Set("a", n)
		require.NoError(t, g.Run(t.Context()))
		if n%3 == 0 {
			g.Rollback()
		} else if err := g.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	require.LessOrEqual(t, len(g.due), 1100)
	in.Delete("a")
	if err := errors.Join(g.Run(t.Context()), g.Commit()); err != nil || !g.Next().IsZero() {
		t.Errorf("%v, next %v", err, g.Next())
	}
}
