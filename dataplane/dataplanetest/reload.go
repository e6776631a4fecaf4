package dataplanetest

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
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
	} else if err := s.proc.reload(); err != nil {
		output = err.Error()
	} else {
		ok = true
	}
	s.reloads = append(s.reloads, Reload{ID: id, Failed: !ok, Output: output})
	if ok {
		s.lastGood = s.diskText()
	} else if err := os.WriteFile(s.engine.file, []byte(s.lastGood), 0o644); err != nil {
		s.report(err)
	}
	return output, ok
}

// finish answers for a request that only a reload completes: at once where it
// is forced, with a status of its own, else 202 and an identifier.
func (s *Server) finish(w http.ResponseWriter, r *http.Request, forced int, body any) {
	if !flag(r, "force_reload") {
		w.Header().Set("Reload-ID", s.schedule())
		send(w, http.StatusAccepted, body)
		return
	}
	if output, ok := s.reload(); !ok {
		fail(w, http.StatusBadRequest, "Reload failed: "+output)
		return
	}
	send(w, forced, body)
}

// send answers with a body, or without one if it is nil.
func send(w http.ResponseWriter, status int, body any) {
	if body == nil {
		w.WriteHeader(status)
		return
	}
	reply(w, status, body)
}

// reloadInfo is what the API tells of a reload.
type reloadInfo struct {
	ID       string `json:"id,omitempty"`
	Status   string `json:"status"`
	Response string `json:"response,omitempty"`
}

// getReloads answers below reloads.
func (s *Server) getReloads(w http.ResponseWriter, r *http.Request, path []string) {
	switch {
	case r.Method != http.MethodGet:
		notAllowed(w, r, http.MethodGet)
	case len(path) == 0:
		s.listReloads(w)
	case !reloadID.MatchString(path[0]):
		failCode(w, http.StatusUnprocessableEntity, codePattern, "id in path should match '"+reloadID.String()+"'")
	default:
		s.getReload(w, path[0])
	}
}

var reloadID = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}-\d+$`)

// getReload answers as the API does, which remembers failures and the last
// success, takes every earlier one for a success, and does not repeat the
// identifier of one that has yet to come.
func (s *Server) getReload(w http.ResponseWriter, id string) {
	if s.pending != nil && id == s.next {
		reply(w, http.StatusOK, reloadInfo{Status: "in_progress"})
		return
	}
	for _, r := range s.reloads {
		if r.ID == id && id != "" && r.Failed {
			reply(w, http.StatusOK, reloadInfo{ID: id, Status: "failed", Response: r.Output})
			return
		}
	}
	if last := s.lastSuccess(); last != nil {
		if last.ID == id {
			reply(w, http.StatusOK, reloadInfo{ID: id, Status: "succeeded", Response: last.Output})
			return
		}
		day, index, ok := cutReloadID(id)
		lastDay, lastIndex, _ := cutReloadID(last.ID)
		if ok && (day < lastDay || index < lastIndex) {
			reply(w, http.StatusOK, reloadInfo{ID: id, Status: "succeeded"})
			return
		}
	}
	failf(w, http.StatusNotFound, "Reload with ID %s does not exist", id)
}

// listReloads tells of all reloads that are remembered.
func (s *Server) listReloads(w http.ResponseWriter) {
	list := []reloadInfo{}
	for _, r := range s.reloads {
		if r.Failed && r.ID != "" {
			list = append(list, reloadInfo{ID: r.ID, Status: "failed", Response: r.Output})
		}
	}
	if last := s.lastSuccess(); last != nil {
		list = append(list, reloadInfo{ID: last.ID, Status: "succeeded", Response: last.Output})
	}
	if s.pending != nil {
		list = append(list, reloadInfo{ID: s.next, Status: "in_progress"})
	}
	reply(w, http.StatusOK, list)
}

// lastSuccess is the last scheduled reload that succeeded.
func (s *Server) lastSuccess() *Reload {
	for i := len(s.reloads) - 1; i >= 0; i-- {
		if r := &s.reloads[i]; r.ID != "" && !r.Failed {
			return r
		}
	}
	return nil
}

func cutReloadID(id string) (day string, index int, ok bool) {
	i := strings.LastIndexByte(id, '-')
	if i < 0 {
		return "", 0, false
	}
	if _, err := time.Parse(time.DateOnly, id[:i]); err != nil {
		return "", 0, false
	}
	index, err := strconv.Atoi(id[i+1:])
	return id[:i], index, err == nil
}
