package dataplanetest

import (
	"fmt"
	"net/http"
	"time"
)

// Reload is one reload that took place.
type Reload struct {
	ID     string // of a scheduled reload, "" if it was forced
	Failed bool
	Output string
}

// schedule plans a reload, or joins the one that is already planned, and returns its
// identifier.
func (s *Server) schedule() string {
	if s.pending != nil {
		return s.next
	}
	s.next = fmt.Sprintf("%s-%d", time.Now().Format(time.DateOnly), s.scheduled)
	s.scheduled++
	s.pending = time.AfterFunc(s.opts.ReloadDelay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.pending != nil && !s.closed {
			s.reload()
		}
	})
	return s.next
}

// reload reloads. If that fails, the disk goes back to what was loaded last, and the memory
// stays. A forced reload also counts as the scheduled one.
func (s *Server) reload() (output string, ok bool) {
	id := s.next
	if s.pending != nil {
		s.pending.Stop()
		s.pending, s.next = nil, ""
	}
	if len(s.failing) > 0 {
		output, s.failing = s.failing[0], s.failing[1:]
	} else if err := s.proc.Reload(); err != nil {
		output = err.Error()
	} else {
		ok = true
	}
	s.reloads = append(s.reloads, Reload{ID: id, Failed: !ok, Output: output})
	if err := s.loaded(ok); err != nil {
		s.report(err)
	}
	return output, ok
}

// reloaded answers a request that only a reload completes. If the request forces the reload,
// it answers after it, with the status forced; else at once, with 202 and an identifier.
func (s *Server) reloaded(q *request, forced int, body any) (int, any, error) {
	if !q.flag("force_reload") {
		q.header.Set("Reload-ID", s.schedule())
		return http.StatusAccepted, body, nil
	}
	if output, ok := s.reload(); !ok {
		return 0, nil, problemf(http.StatusBadRequest, "Reload failed: %s", output)
	}
	return forced, body, nil
}

func (s *Server) getReload(q *request) (int, any, error) {
	id := q.PathValue("id")
	if s.pending != nil && id == s.next {
		return http.StatusOK, map[string]string{"status": "in_progress"}, nil
	}
	for _, r := range s.reloads {
		if r.ID != id {
			continue
		}
		status := "succeeded"
		if r.Failed {
			status = "failed"
		}
		return http.StatusOK, map[string]string{"id": id, "status": status, "response": r.Output}, nil
	}
	return 0, nil, problemf(http.StatusNotFound, "Reload with ID %s does not exist", id)
}
