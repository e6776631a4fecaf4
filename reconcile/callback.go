package reconcile

import (
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/panics"
)

// PanicError is a panic in a function of the program. In a [Renderer], [Validator] or [Target]
// the loop treats it as a failure of that call. See [CallbackFailed] for other functions.
type PanicError = panics.Error

// callback calls a function of the program that returns no error, and reports whether it did
// not panic. A panic ends nothing, and is published.
func (l *Loop) callback(name string, f func()) bool {
	err := panics.Guard(func() error { f(); return nil })
	l.calledBack(name, err)
	return err == nil
}

// calledBack notes how a callback ended.
func (l *Loop) calledBack(name string, err error) {
	l.callbacks.Lock()
	defer l.callbacks.Unlock()
	if err == nil {
		delete(l.panics, name)
		return
	}
	l.panics[name]++
	eventbus.Publish(l.bus, CallbackFailed{Callback: name, Err: err, Failures: l.panics[name]})
}

// publishDeployed calls Deployed of the newest render that made a configuration.
func (l *Loop) publishDeployed(v *validated, term uint64) {
	l.mu.Lock()
	if newest := l.sched.newest; v.same(newest) {
		v = newest
	}
	l.mu.Unlock()
	if v.deployed != nil {
		l.callback("Rendered.Deployed", func() { v.deployed(term) })
	}
}

// deployedIn returns the current term if an instance has the newest configuration, and
// otherwise 0. The caller holds l.mu.
func (l *Loop) deployedIn() uint64 {
	for _, e := range l.sched.instances {
		if l.sched.leading && e.have != nil && e.have.same(l.sched.newest) {
			return l.sched.term
		}
	}
	return 0
}
