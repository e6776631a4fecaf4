package dataplanetest

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// Fault is trouble for one request.
type Fault struct {
	Method string // zero means any
	Path   string // part of the path below /v3; zero means any
	Query  string // part of the raw query; zero means any

	// Skip is how many requests that fit pass before the one that fails, and
	// Times how many fail then. Zero Times means one.
	Skip, Times int

	Status int           // answer with this status instead of doing anything
	Body   string        // of that answer; zero means an error in the API's form
	Delay  time.Duration // wait before anything else, at most as long as the client does
	Cut    bool          // do what is asked, then cut the connection in the middle of the answer
	Drop   bool          // cut the connection before doing anything
}

type fault struct {
	Fault
	once sync.Once
	gone chan struct{} // closed when the server closes
}

func (f *fault) release() { f.once.Do(func() { close(f.gone) }) }

// Fail makes the next request that fits fail.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.faults = append(s.faults, &fault{Fault: f, gone: make(chan struct{})})
}

// FailReload makes the next reload fail with that output. With a haproxy it
// fails without asking it.
func (s *Server) FailReload(output string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = append(s.failing, output)
}

// Write replaces the configuration as another client of the API would, without
// a reload.
func (s *Server) Write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(text)
}

// write is Write. The lock is held.
func (s *Server) write(text string) {
	if err := s.config.overwrite(text); err != nil {
		s.report(err)
	}
}

// WriteBehind has another client write that text just before the next push of a
// configuration takes place, so that its version is stale.
func (s *Server) WriteBehind(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = append(s.behind, text)
}

// EditConfig replaces haproxy.cfg as an editor does, with or without the lines
// at the top. The API sees it, reads the file again and counts the version up
// from that of the text. It validates and reloads nothing.
func (s *Server) EditConfig(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.config.edit(text); err != nil {
		s.report(err)
	}
}

// Runtime sends a command to the running process behind the API's back, such as
// "set server be/s1 state maint", and returns its answer: drift. What a Server
// without a haproxy understands is what the API's own endpoints lead to.
func (s *Server) Runtime(command string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked(command)
}

// take finds the fault for a request. The lock is held.
func (s *Server) take(r *http.Request) *fault {
	for _, f := range s.faults {
		switch {
		case f.Times == 0,
			f.Method != "" && f.Method != r.Method,
			!strings.Contains(r.URL.Path, f.Path),
			!strings.Contains(r.URL.RawQuery, f.Query):
		case f.Skip > 0:
			f.Skip--
		default:
			f.Times--
			return f
		}
	}
	return nil
}

// suffer carries out a fault and reports whether the request is done with.
func (f *fault) suffer(w http.ResponseWriter, r *http.Request, answered func(status int)) (done bool) {
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			return true
		case <-f.gone:
			return true
		}
	}
	switch {
	case f.Drop:
		panic(http.ErrAbortHandler)
	case f.Status != 0 && f.Body != "":
		answered(f.Status)
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte(f.Body))
		return true
	case f.Status != 0:
		answered(f.Status)
		a := refusal(problemf(f.Status, "a fault that the test asked for"))
		a.send(w)
		return true
	}
	return false
}
