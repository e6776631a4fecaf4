package dataplanetest

import (
	"fmt"
	"net/http"
	"regexp"
	"time"
)

// Reload is one reload that took place.
type Reload struct {
	ID     string // of a scheduled reload, "" if it was forced
	Failed bool
	Output string
}

// schedule has a reload take place soon, together with others, and returns its
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

// reload does what a reload does: on failure the disk goes back to what was
// loaded last, while the memory stays. A forced one does the scheduled one as
// well.
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
	if err := s.config.loaded(ok); err != nil {
		s.report(err)
	}
	return output, ok
}

// reloaded answers a request that only a reload completes: at once where it is
// forced, with a status of its own, else with 202 and an identifier.
func (s *Server) reloaded(q *request, forced int, body any) (answer, error) {
	if !q.flag("force_reload") {
		return answer{status: http.StatusAccepted, body: body, reloadID: s.schedule()}, nil
	}
	if output, ok := s.reload(); !ok {
		return answer{}, problemf(http.StatusBadRequest, "Reload failed: %s", output)
	}
	return answer{status: forced, body: body}, nil
}

// reloadInfo is what the API tells of a reload.
type reloadInfo struct {
	ID       string `json:"id,omitempty"`
	Status   string `json:"status"`
	Response string `json:"response,omitempty"`
}

var reloadID = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}-\d+$`)

func (s *Server) getReload(q *request) (answer, error) {
	id := q.args[0]
	if !reloadID.MatchString(id) {
		return answer{}, invalid(codePattern, "id in path should match '%s'", reloadID)
	}
	if s.pending != nil && id == s.next { // the API does not repeat the identifier
		return answer{status: http.StatusOK, body: reloadInfo{Status: "in_progress"}}, nil
	}
	for _, r := range s.reloads {
		if r.ID != id {
			continue
		}
		status := "succeeded"
		if r.Failed {
			status = "failed"
		}
		return answer{status: http.StatusOK, body: reloadInfo{id, status, r.Output}}, nil
	}
	return answer{}, problemf(http.StatusNotFound, "Reload with ID %s does not exist", id)
}
