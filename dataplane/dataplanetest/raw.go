package dataplanetest

import (
	"crypto/md5" //nolint:gosec // what the API uses to name a text
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/internal/dpapi"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

func (s *Server) sendRaw(w http.ResponseWriter, status int, reloadID string) {
	text := s.disk
	if s.diskVer != 0 {
		sum := fmt.Sprintf("%x", md5.Sum([]byte(s.disk))) //nolint:gosec // see the import
		text = fmt.Sprintf("# _md5hash=%s\n# _version=%d\n%s", sum, s.diskVer, s.disk)
		w.Header().Set("Configuration-Checksum", sum)
	}
	if reloadID != "" {
		w.Header().Set("Reload-ID", reloadID)
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

func (s *Server) postRaw(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	text, _ := dpapi.SplitText(string(body))
	switch {
	case len(body) == 0:
		fail(w, http.StatusUnprocessableEntity, "data in body is required")
		return
	case !strings.Contains(text, "\n"):
		fail(w, http.StatusBadRequest, "invalid configuration: no newline character found")
		return
	}
	if flag(r, "only_validate") {
		if why := s.proc.validate(text); why != "" {
			failf(w, http.StatusBadRequest, "validation error: exit status 1: %s", why)
			return
		}
		s.sendRaw(w, http.StatusAccepted, "")
		return
	}
	if len(s.behind) > 0 {
		s.write(s.behind[0])
		s.behind = s.behind[1:]
	}
	version, err := strconv.ParseInt(r.URL.Query().Get("version"), 10, 64)
	switch {
	case err != nil && !flag(r, "skip_version"):
		fail(w, http.StatusBadRequest, "version or transaction not specified, specify only one")
		return
	case !flag(r, "skip_version") && version != s.version:
		failf(w, http.StatusConflict, "version mismatch: version in configuration file is %d, given version is %d", s.version, version)
		return
	}
	stored, err := s.norm.Normalise(text)
	if err != nil { // the real one refuses nothing, and loses what it loses
		stored, err = haproxycfg.RoundTrip(text)
	}
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	if why := s.proc.validate(stored); why != "" {
		failf(w, http.StatusBadRequest, "validation error: exit status 1: %s", why)
		return
	}
	s.write(stored)
	s.afterPush(w, r)
}

func (s *Server) afterPush(w http.ResponseWriter, r *http.Request) {
	switch {
	case flag(r, "skip_reload"):
		for _, action := range strings.Split(r.Header.Get("X-Runtime-Actions"), ";") {
			if action == "" {
				continue
			}
			s.actions = append(s.actions, action)
			if err := s.proc.action(strings.Split(action, " ")); err != nil {
				failf(w, http.StatusInternalServerError, "cannot execute %s: %s", strings.Split(action, " ")[0], err)
				return
			}
		}
		s.sendRaw(w, http.StatusCreated, "")
	case flag(r, "force_reload"):
		if output, ok := s.reload(""); !ok {
			failf(w, http.StatusBadRequest, "Reload failed: %s", output)
			return
		}
		s.sendRaw(w, http.StatusCreated, "")
	default:
		s.sendRaw(w, http.StatusAccepted, s.schedule())
	}
}

// schedule has a reload take place soon, together with others.
func (s *Server) schedule() string {
	id := fmt.Sprintf("%s-%d", time.Now().Format("2006-01-02"), len(s.reloads))
	if s.pending == nil {
		s.pending = time.AfterFunc(s.opts.ReloadDelay, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.pending != nil && !s.closed {
				s.reload(id)
			}
		})
	}
	return id
}

// reload does what a reload does: on failure the disk goes back to what was
// loaded last, while the memory stays.
func (s *Server) reload(id string) (output string, ok bool) {
	if s.pending != nil { // a forced reload does the scheduled one as well
		s.pending.Stop()
		s.pending = nil
		if id == "" {
			id = fmt.Sprintf("%s-%d", time.Now().Format("2006-01-02"), len(s.reloads))
		}
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
		s.lastGood, s.goodVer = s.disk, s.diskVer
	} else {
		s.disk, s.diskVer = s.lastGood, s.goodVer
		s.proc.save(s.disk)
	}
	return output, ok
}

func (s *Server) getReload(w http.ResponseWriter, id string) {
	for _, r := range s.reloads {
		if r.ID == id {
			status := "succeeded"
			if r.Failed {
				status = "failed"
			}
			reply(w, http.StatusOK, map[string]any{"id": id, "status": status, "response": r.Output})
			return
		}
	}
	if s.pending != nil {
		reply(w, http.StatusOK, map[string]any{"id": id, "status": "in_progress"})
		return
	}
	failf(w, http.StatusNotFound, "Reload with ID %s does not exist", id)
}
