package dataplane

import (
	"context"
	"time"
)

// SetFailpoint has f called before and after each step of l that changes its
// folder. Who never returns from f is as good as killed there.
func (l *Local) SetFailpoint(f func(step string)) { l.store.failpoint = f }

// Tidy looks after servers that go, as Run does every now and then.
func (l *Local) Tidy(ctx context.Context) { l.tidy(ctx) }

// SetGrace says how long requests under way may take when Run ends. It is called
// before Run.
func (l *Local) SetGrace(grace time.Duration) { l.grace = grace }
