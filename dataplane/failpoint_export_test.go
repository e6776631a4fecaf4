package dataplane

// SetFailpoint has f called before and after each step of l that changes its
// folder. Who never returns from f is as good as killed there.
func (l *Local) SetFailpoint(f func(step string)) { l.store.failpoint = f }
