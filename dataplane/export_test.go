package dataplane

import "time"

// SetFailpoint has f called before and after each step of l that changes its
// folder. If f never returns, the Local is as good as killed there.
func (l *Local) SetFailpoint(f func(step string)) { l.host.SetFailpoint(f) }

// SetGrace says how long requests under way may take when Run ends. It is called
// before Run.
func (l *Local) SetGrace(grace time.Duration) { l.host.SetGrace(grace) }
