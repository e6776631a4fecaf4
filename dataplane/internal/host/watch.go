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

// ProcessEvent says what became of the HAProxy. Package dataplane documents it.
type ProcessEvent struct {
	Kind  string
	PID   int
	Err   error
	Tries int
	Away  time.Duration
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

// askEvery is how often Run asks the worker whether it serves, and askedFor how long
// that may take: one that is stopped is known within 2 s.
const (
	askEvery = 500 * time.Millisecond
	askedFor = time.Second
)

// flapTime is how soon after an end, or a silence, another one counts as a repetition.
const flapTime = 5 * time.Minute

// lateTime is after how long a silence that goes on is told of anew, as the first one, if
// it is the fifth or a later one: package reconcile leaves out lines of these.
const lateTime = time.Minute

// logProcess is for where nobody else is told: of starts that fail in a row the first,
// and then each doubling.
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
	if e.Away > 0 {
		says = append(says, "away", e.Away)
	}
	h.log.Log(context.Background(), level, "haproxy "+e.Kind, says...)
}

// status is what Run knows of the process. Only Run changes it.
type status struct {
	tell  func(ProcessEvent)
	since time.Time // it does not serve
	tries int       // starts that failed in a row
	fell  time.Time // when it last ended or fell silent
	times int       // how often it did, without flapTime in between

	mu     sync.Mutex
	err    error // why it does not serve; nil: it does
	master error // why it cannot be reloaded though it serves; nil: it can
}

// Serving returns nil while the worker answers, and else why it does not. The answer
// is at most 2 s old.
func (h *Host) Serving() error {
	h.status.mu.Lock()
	defer h.status.mu.Unlock()
	return h.status.err
}

// MasterAnswers returns nil while the master answers, and else why it does not: HAProxy
// serves then, and cannot be reloaded. It is nil where HAProxy does not serve, too.
func (h *Host) MasterAnswers() error {
	h.status.mu.Lock()
	defer h.status.mu.Unlock()
	if h.status.err != nil {
		return nil
	}
	return h.status.master
}

// ends is for the end of Run, which is no event.
func (s *status) ends() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = &config.Error{Stage: "process", Err: config.ErrNotRunning}
}

// becomes notes a change, and tells it.
func (s *status) becomes(kind string, pid int, err error) {
	s.mu.Lock()
	if s.err = err; kind == Started || kind == Adopted {
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
	switch {
	case err != nil && s.since.IsZero():
		s.since = time.Now()
	case err == nil:
		if !s.since.IsZero() {
			e.Away = time.Since(s.since)
		}
		s.since, s.tries = time.Time{}, 0
	}
	s.tell(e)
}

// heard notes what the worker and the master of a process that runs have answered.
func (s *status) heard(pid int, err, master error) {
	s.mu.Lock()
	s.master = master
	s.mu.Unlock()
	switch was := s.err; {
	case err == nil && was != nil:
		s.becomes(Answers, pid, nil)
	case err != nil && was == nil:
		s.becomes(Silent, pid, err)
	case err != nil && s.times > 4 && time.Since(s.since) > lateTime:
		s.times = 0
		s.becomes(Silent, pid, err)
	case err != nil:
		s.mu.Lock()
		s.err = err // the cause may be another one by now
		s.mu.Unlock()
	}
}

// watcher asks the worker now and then, beside whatever else Run does.
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

// ask asks for a process, unless an answer is due yet.
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

// stop waits until nothing is asked any more; the context has ended.
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
			if w.asking = false; ctx.Err() == nil {
				h.status.heard(0, a.err, a.master)
			}
		}
	}
}

// masterAsked asks the master. One that reloads is away for a while: for a reload of ours
// it is not asked.
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
	if p != nil { // another's may count its processes otherwise
		who += fmt.Sprintf(" (process %d)", p.pid())
	}
	if p != nil && readStat(p.pid()).state == "T" {
		why = "it is stopped (SIGSTOP): SIGCONT lets it go on"
	}
	return &config.Error{Stage: "process", Err: &worded{who + " does not answer: HAProxy serves, and cannot be reloaded: " + why, config.ErrSilent}}
}

// asked asks the worker on its stats socket. Without such a socket in the configuration
// it asks the master whether a worker serves; a master that is busy says nothing of it.
func (h *Host) asked(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	var err error
	_ = poll(short, nil, func() bool { // in a reload the socket may be away for a moment
		conn, now := haproxyctl.Dial(short, h.opts.RuntimeSocket)
		if now == nil {
			_, now = conn.Exec(short, "show info")
			_ = conn.Close()
		}
		if err == nil || !errors.Is(now, context.DeadlineExceeded) { // the end of the time says less than the tries before
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
		return nil // an old one serves while the next one loads
	case worker != 0:
		what = fmt.Sprintf("its worker, process %d, says nothing within %s", worker, askedFor)
	case unknown != nil && !noMaster:
		what = "neither its worker nor its master answers"
	}
	return &config.Error{Stage: "process", Err: fmt.Errorf("%w: %s", config.ErrSilent, what)}
}
