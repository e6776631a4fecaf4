package dataplane

import (
	"context"
	"errors"
	"time"
)

// returning are the servers that come back with these actions while those of
// before still have connections.
func (l *Local) returning(actions []*action) map[serverRef]bool {
	refs := make(map[serverRef]bool)
	for _, do := range actions {
		ref := serverRef{do.backend, do.server}
		if _, ok := l.leaving[ref]; ok && do.kind == setServer {
			refs[ref] = true
		}
	}
	return refs
}

// returning has servers come back that still have connections from before they
// went: they exist, and get what has changed since. Where that cannot be set, it
// calls retry, which may find the connections ended, and leaves the rest to a
// reload.
func (d *difference) returning(leaving map[serverRef][]string, retry func()) {
	reasons := make(map[int]string)
	for i := range d.steps {
		do := d.steps[i].do
		if do == nil || do.kind != addServer {
			continue
		}
		args, ok := leaving[serverRef{do.backend, do.server}]
		if !ok {
			continue
		}
		back, why := d.comesBack(do, args)
		if why == "" {
			d.steps[i].do = back
		} else {
			reasons[i] = why
		}
	}
	if len(reasons) > 0 && retry != nil {
		retry()
	}
	for i, why := range reasons {
		st := &d.steps[i]
		if _, ok := leaving[serverRef{st.do.backend, st.do.server}]; ok {
			st.do, st.op.Impact = nil, ImpactReload
			st.op.Reason = "the server of before still has connections, and " + why
		}
	}
}

// comesBack returns what makes the server that an action adds of the one that
// was there with these words, or why that takes a reload.
func (d *difference) comesBack(do *action, args []string) (back *action, why string) {
	old, ok1 := parseServer(append([]string{"server", do.server}, args...))
	now, ok2 := parseServer(append([]string{"server", do.server}, do.args...))
	v, ok3 := d.viewOf(do.backend)
	if !ok1 || !ok2 || !ok3 {
		return nil, "cannot be compared with it"
	}
	_, fields, why := d.changedFields(&v, &old, &now)
	if why != "" {
		return nil, why
	}
	addr, _ := now.literal()
	back = &action{kind: setServer, backend: do.backend, server: do.server, fields: []serverField{{"address", addr.String()}}}
	for _, f := range fields {
		if f.name != "address" && f.name != "state" {
			back.fields = append(back.fields, f)
		}
	}
	state := "ready"
	if now.value("state") == "disabled" {
		state = "maint"
	}
	back.fields = append(back.fields, serverField{"state", state})
	return back, ""
}

// viewOf reads a backend of the desired configuration.
func (d *difference) viewOf(backend string) (backendView, bool) {
	x := d.desired.split()
	for _, s := range x.list {
		if s.Name == backend && (s.Kind == "backend" || s.Kind == "listen") {
			return view(x, s, meaningfulLines(s.Text))
		}
	}
	return backendView{}, false
}

// retryLeaving tries to delete the servers that had connections when they went.
// A connection whose last request has ended stays in the pool of idle ones,
// from which only a change of the address removes it: entering maintenance did
// so once, for those that were idle then. The address changes back at once, as
// a request may still be about to connect.
func (a *applier) retryLeaving(ctx context.Context, returning map[serverRef]bool) error {
	for ref, args := range a.l.leaving {
		if returning[ref] {
			continue
		}
		name, err := serverPath(ref.backend, ref.server)
		if err != nil {
			return err
		}
		states, err := a.states(ctx, ref.backend)
		if err != nil {
			return err
		}
		if s, ok := states[ref.server]; ok {
			other := "1"
			if s.port == other {
				other = "2"
			}
			for _, port := range []string{other, s.port} {
				if _, err := a.conn.Exec(ctx, "set server "+name+" addr "+s.address+" port "+port); err != nil {
					return err
				}
				// One after the other: HAProxy drops the second as no
				// change at all while the first is not carried out.
				if _, err := a.await(ctx, ref.backend, func(now serverStates) bool { return now[ref.server].port == port }); err != nil {
					return err
				}
			}
		}
		var no *refused
		if err := a.deleteServer(ctx, ref, args); errors.As(err, &no) {
			a.l.log.Debug("a server that goes is not gone yet", "error", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// tidyEvery is how often Run tries to delete servers that had connections.
const tidyEvery = time.Second

// tidy deletes servers whose last connection has ended, unless a Sync is under
// way, which does the same.
func (l *Local) tidy(ctx context.Context) {
	select {
	case <-l.turn:
	default:
		return
	}
	defer l.unlock()
	if len(l.leaving) == 0 {
		return
	}
	procs, err := l.master.Procs(ctx)
	if err != nil || len(procs.Loading) > 0 {
		return // it reloads: whether the process goes is not known yet
	}
	if procs.WorkerPID() != l.worker {
		clear(l.leaving) // they went with their process
		return
	}
	if _, err := l.apply(ctx, l.worker, nil, nil); err != nil {
		l.log.Debug("servers that go are not gone yet", "error", err)
	}
}
