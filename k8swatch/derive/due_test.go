package derive

import (
	"errors"
	"testing"
	"time"
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
		if err := g.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n%3 == 0 {
			g.Rollback()
		} else if err := g.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if len(g.due) > 1100 {
		t.Errorf("%d deadlines", len(g.due))
	}
	in.Delete("a")
	if err := errors.Join(g.Run(t.Context()), g.Commit()); err != nil || !g.Next().IsZero() {
		t.Errorf("%v, next %v", err, g.Next())
	}
}
