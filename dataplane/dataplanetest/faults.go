package dataplanetest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Fault is trouble for one request.
type Fault struct {
	Method string // zero means any
	Path   string // part of the path below /v3; zero means any
	Query  string // part of the raw query; zero means any

	// Skip is the number of matching requests that pass before the first one that fails.
	// Times is how many then fail; zero means one.
	Skip, Times int

	Status int           // answer with this status instead of doing anything
	Body   string        // of that answer; zero means an error in the API's form
	Delay  time.Duration // wait this long before anything else, or until the client gives up
	Cut    bool          // handle the request, then cut the connection in the middle of the answer
	Drop   bool          // cut the connection before doing anything
}

// Fail makes the next matching request fail.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Times = max(f.Times, 1)
	s.faults = append(s.faults, &f)
}

// FailReload makes the next reload fail with that output. A real haproxy does not see that
// reload.
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

// write is Write with the lock held.
func (s *Server) write(text string) {
	if err := s.overwrite(text); err != nil {
		s.report(err)
	}
}

// WriteBehind makes another client write that text just before the next push of a
// configuration, so that the push has a stale version.
func (s *Server) WriteBehind(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = append(s.behind, text)
}

// Runtime makes drift: it sends a command to the running process behind the API's back, such
// as "set server be/s1 state maint", and returns its answer. Without a haproxy, a Server
// understands only the commands that the API's own endpoints need.
func (s *Server) Runtime(command string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked(command)
}

// arrived records a request and returns the fault for it, or an empty one.
func (s *Server) arrived(r *http.Request, body []byte) (number int, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, Request{
		Method: r.Method, Path: strings.TrimPrefix(r.URL.Path, "/v3"), Query: r.URL.RawQuery, Body: string(body),
	})
	number = len(s.requests) - 1
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
			return number, *f
		}
	}
	return number, Fault{}
}

// wait waits for the delay. It reports whether the client is still there.
func (f *Fault) wait(ctx context.Context) bool {
	if f.Delay <= 0 {
		return true
	}
	t := time.NewTimer(f.Delay)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// answer sends the answer of the fault.
func (f *Fault) answer(w http.ResponseWriter) {
	body := f.Body
	if body == "" {
		body = fmt.Sprintf(`{"code":%d,"message":"a fault that the test asked for"}`, f.Status)
	}
	w.WriteHeader(f.Status)
	_, _ = io.WriteString(w, body)
}
