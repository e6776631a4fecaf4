package dataplane

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// keepSockets has HAProxy load the last good configuration once more if a
// failed reload has taken its unix sockets away. From HAProxy 3.1 on, a master
// whose last load failed does not hand them to the next worker, which binds
// them anew and, if it fails as well, leaves nobody there.
func (s *syncing) keepSockets(ctx context.Context) {
	l := s.l
	conn, err := new(net.Dialer).DialContext(ctx, "unix", l.opts.RuntimeSocket)
	if err == nil {
		_ = conn.Close()
		return
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return // there is none, and none was lost
	}
	worker, err := s.reload(ctx)
	if err != nil {
		l.log.Error("HAProxy has lost its unix sockets", "error", err)
		l.mark(true)
		return
	}
	l.log.Warn("HAProxy has lost its unix sockets in a reload that failed, and has them again")
	l.applied, l.worker = nil, worker // it runs what is stored
	l.mark(false)
	clear(l.leaving)
	s.result.WorkerPID = worker
	s.result.Reloads = 1
}
