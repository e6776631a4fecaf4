package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// ProcessEvent says what happened to HAProxy. Package dataplane documents it.
type ProcessEvent struct {
	Kind  string
	PID   int
	Err   error
	Tries int
	Times int
}

// The kinds of a ProcessEvent.
const (
	Started     = "started"
	Adopted     = "adopted"
	Ended       = "ended"
	StartFailed = "start failed"
	Silent      = "silent"
	Answers     = "answers"
)

// Run asks the worker every askEvery whether it serves, and waits askedFor for the answer. So
// it notices a stopped worker within 2 s.
const (
	askEvery = 500 * time.Millisecond
	askedFor = time.Second
)

// flapTime is the time after an end, or a silence, in which another one counts as a
// repetition.
const flapTime = 5 * time.Minute

// logProcess logs the events if there is no OnProcess. If starts fail in a row, it logs the
// first, the second, the fourth, and so on.
func (h *Host) logProcess(e ProcessEvent) {
	if e.Kind == StartFailed && e.Tries&(e.Tries-1) != 0 {
		return
	}
	level := slog.LevelWarn
	if e.Err == nil {
		level = slog.LevelInfo
	}
	says := []any{"pid", e.PID}
	if e.Err != nil {
		says = append(says, "error", e.Err)
	}
	if e.Tries > 0 {
		says = append(says, "tries", e.Tries)
	}
	h.log.Log(context.Background(), level, "haproxy "+e.Kind, says...)
}

// status is the state of the process as Run sees it. Only Run changes it.
type status struct {
	tell  func(ProcessEvent)
	tries int       // starts that failed in a row
	fell  time.Time // when it last ended or fell silent
	times int       // number of ends and silences, with less than flapTime in between

	mu     sync.Mutex
	err    error // why it does not serve; nil if it does
	master error // why it cannot reload although it serves; nil if it can
}

// Serving returns nil while the worker answers, and else why it does not. The answer
// is at most 2 s old.
func (h *Host) Serving() error {
	h.status.mu.Lock()
	defer h.status.mu.Unlock()
	return h.status.err
}

// MasterAnswers returns nil while the master answers, and else why it does not: HAProxy then
// serves, but cannot reload. It also returns nil while HAProxy does not serve.
func (h *Host) MasterAnswers() error {
	h.status.mu.Lock()
	defer h.status.mu.Unlock()
	if h.status.err != nil {
		return nil
	}
	return h.status.master
}

// ends handles the end of Run, which is not an event.
func (s *status) ends() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = &config.Error{Stage: "process", Err: config.ErrNotRunning}
}

// becomes notes a change and reports it.
func (s *status) becomes(kind string, pid int, err error) {
	s.mu.Lock()
	s.err = err
	if kind == Started || kind == Adopted {
		s.master = nil
	}
	s.mu.Unlock()
	e := ProcessEvent{Kind: kind, PID: pid, Err: err}
	if kind == StartFailed {
		s.tries++
	}
	if kind == Ended || kind == Silent {
		if time.Since(s.fell) > flapTime {
			s.times = 0
		}
		s.fell, s.times = time.Now(), s.times+1
	}
	e.Tries, e.Times = s.tries, s.times
	if err == nil {
		s.tries = 0
	}
	s.tell(e)
}

// heard notes the answers of the worker and the master of a running process.
func (s *status) heard(pid int, err, master error) {
	s.mu.Lock()
	s.master = master
	s.mu.Unlock()
	switch was := s.err; {
	case err == nil && was != nil:
		s.becomes(Answers, pid, nil)
	case err != nil && was == nil:
		s.becomes(Silent, pid, err)
	case err != nil:
		s.mu.Lock()
		s.err = err // the cause may have changed
		s.mu.Unlock()
	}
}

// watcher asks the worker from time to time, in parallel to Run.
type watcher struct {
	tick    *time.Ticker
	answers chan answer // of size 1
	asking  bool
	wg      sync.WaitGroup
}

type answer struct {
	of     *process
	err    error
	master error
}

func newWatcher() *watcher {
	return &watcher{tick: time.NewTicker(askEvery), answers: make(chan answer, 1)}
}

// ask asks the worker and the master of a process, unless an answer is still due.
func (w *watcher) ask(ctx context.Context, h *Host, p *process) {
	if w.asking {
		return
	}
	w.asking = true
	w.wg.Go(func() {
		master := make(chan error, 1)
		go func() { master <- h.masterAsked(ctx, p) }()
		w.answers <- answer{p, h.asked(ctx), <-master}
	})
}

// stop waits until no question is open; the context has ended.
func (w *watcher) stop() {
	w.tick.Stop()
	w.wg.Wait()
}

// watchOther watches a HAProxy that another program runs.
func (h *Host) watchOther(ctx context.Context) {
	w := newWatcher()
	defer h.status.ends()
	defer w.stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.tick.C:
			w.ask(ctx, h, nil)
		case a := <-w.answers:
			w.asking = false
			if ctx.Err() == nil {
				h.status.heard(0, a.err, a.master)
			}
		}
	}
}

// masterAsked asks the master. A master does not answer for a while when it reloads, so
// during our own reload masterAsked does not wait for an answer.
func (h *Host) masterAsked(ctx context.Context, p *process) error {
	short, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	err := poll(short, nil, func() bool {
		_, err := h.master.Procs(short)
		return err == nil || h.reloads.Load()
	})
	if err == nil || ctx.Err() != nil {
		return nil
	}
	who, why := "the HAProxy master", fmt.Sprintf("it says nothing within %s", askedFor)
	if p != nil { // another program's HAProxy may have other process ids
		who += fmt.Sprintf(" (process %d)", p.pid())
	}
	if p != nil && readStat(p.pid()).state == "T" {
		why = "it is stopped (SIGSTOP): SIGCONT lets it go on"
	}
	return &config.Error{Stage: "process", Err: &worded{who + " does not answer: HAProxy serves, and cannot be reloaded: " + why, config.ErrSilent}}
}

// asked asks the worker on its stats socket. If the configuration has no such socket, it asks
// the master whether a worker serves. The silence of a busy master proves nothing then.
func (h *Host) asked(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	var err error
	_ = poll(short, nil, func() bool { // in a reload the socket may be missing for a moment
		conn, now := haproxyctl.Dial(short, h.opts.RuntimeSocket)
		if now == nil {
			_, now = conn.Exec(short, "show info")
			_ = conn.Close()
		}
		if err == nil || !errors.Is(now, context.DeadlineExceeded) { // a time-out says less than the errors before it
			err = now
		}
		return err == nil || errors.Is(err, os.ErrNotExist)
	})
	if err == nil {
		return nil
	}
	short, cancel = context.WithTimeout(ctx, askedFor/4)
	defer cancel()
	procs, unknown := h.master.Procs(short)
	worker, what := procs.WorkerPID(), "it has no worker that serves"
	noSocket, noMaster := haproxyctl.Absent(err), haproxyctl.Absent(unknown)
	switch {
	case noMaster && h.opts.NoStart:
		return &config.Error{Stage: "process", Err: &worded{"no HAProxy listens on the master socket: " + unknown.Error(), config.ErrNotRunning}}
	case worker != 0 && readStat(worker).state == "T":
		what = fmt.Sprintf("its worker, process %d, is stopped (SIGSTOP): SIGCONT lets it go on", worker)
	case noSocket && (worker != 0 || len(procs.Old) > 0 || unknown != nil && !noMaster):
		return nil // an old worker serves while the next one loads
	case worker != 0:
		what = fmt.Sprintf("its worker, process %d, says nothing within %s", worker, askedFor)
	case unknown != nil && !noMaster:
		what = "neither its worker nor its master answers"
	}
	return &config.Error{Stage: "process", Err: fmt.Errorf("%w: %s", config.ErrSilent, what)}
}
