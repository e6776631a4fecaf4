package reconcile

import (
	"time"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/phrase"
)

// publishRollout publishes [DeploymentCompleted] for the rolling revision. It does so once each
// instance has it or failed on it, or when another revision takes its place. The caller
// holds l.mu.
func (l *Loop) publishRollout(successor *validated) {
	v := l.rolling
	if v == nil || !l.sched.leading || len(l.targets) == 0 {
		return
	}
	e := DeploymentCompleted{ID: v.id, Hash: v.config.Hash(), Took: time.Since(l.rolls)}
	for _, t := range l.targets {
		name := t.Name()
		w, is := l.workers[name], l.sched.instances[name]
		switch known := w != nil && w.target == t && is != nil && is.born == w.born; {
		case known && v.same(is.have):
			e.Instances = append(e.Instances, name)
		case known && is.failures > 0 && (v.same(is.failed) || is.probe && !is.fits):
			e.Failed = append(e.Failed, name)
		case successor == nil:
			return
		default:
			e.Superseded = append(e.Superseded, name)
		}
	}
	l.rolling = nil
	eventbus.Publish(l.bus, e)
}

// publishUnfinished publishes, at the end of the loop, which instances lack the newest revision
// and why, if this process led. The caller holds l.mu.
func (l *Loop) publishUnfinished(led bool, now time.Time) {
	v := l.sched.newest
	if v == nil || !led {
		return
	}
	for _, t := range l.targets {
		w, e := l.workers[t.Name()], l.sched.instances[t.Name()]
		if w == nil || w.target != t || e == nil || w.public.StaleSince.IsZero() {
			continue
		}
		eventbus.Publish(l.bus, DeploymentUnfinished{ID: v.id, Hash: v.config.Hash(), Instance: t.Name(), Waits: w.waitsFor(e, now)})
	}
}

// waitsFor says why an instance lacks the newest revision. The caller holds Loop.mu.
func (w *worker) waitsFor(e *instanceState, now time.Time) string {
	o, p := w.loop.live.Load(), w.public
	switch {
	case p.Error != "":
		return "failed" + phrase.InARow(e.failures) + ", and waits for the next try: " + p.Error
	case p.Waits != "":
		return "waits for old workers to end: " + p.Waits
	case e.probe && !e.fits:
		return "the controller did not know yet which version of HAProxy this instance runs"
	case e.cut:
		return "a deployment was under way, and the controller does not know its outcome"
	case now.Before(e.spaced(o)):
		return "waits for the interval of " + o.MinInterval.String() + " between two reloads"
	}
	return "the deployment was about to begin"
}
