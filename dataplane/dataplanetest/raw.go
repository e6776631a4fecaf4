package dataplanetest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/haproxytech/client-native/v6/configuration"
)

// raw answers below configuration/raw. Whatever it says is plain text, errors
// too, which have JSON in it.
func (s *Server) raw(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		version, ok := number(w, r, "version")
		if ok {
			s.sendRaw(w, http.StatusOK, r.URL.Query().Get("transaction_id"), version)
		}
	case http.MethodPost:
		s.postRaw(w, r)
	default:
		notAllowed(w, r, http.MethodGet, http.MethodPost)
	}
}

func failRaw(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(strings.TrimSpace(string(asJSON(map[string]any{"code": status, "message": message})))))
}

func (s *Server) sendRaw(w http.ResponseWriter, status int, transaction string, version int64) {
	var sum, text string
	err := s.engine.do(func(cfg configuration.Configuration) (err error) {
		_, _, sum, text, err = cfg.GetRawConfigurationWithClusterData(transaction, version)
		return err
	})
	if err != nil {
		failRaw(w, statusOf(err), s.shown(err.Error()))
		return
	}
	if sum != "" {
		w.Header().Set("Configuration-Checksum", sum)
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

func (s *Server) postRaw(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind == "application/json" && len(body) > 0 {
		var text string
		if err := json.Unmarshal(body, &text); err != nil {
			failf(w, http.StatusBadRequest, "parsing data body from %q failed, because %s", "", err)
			return
		}
		body = []byte(text)
	}
	version, ok := number(w, r, "version")
	switch {
	case !ok:
		return
	case len(body) == 0:
		w.Header().Set("Content-Type", "text/plain")
		failRequired(w, "data in body")
		return
	case !strings.Contains(string(body), "\n"):
		failRaw(w, http.StatusBadRequest, "invalid configuration: no newline character found")
		return
	}
	if flag(r, "only_validate") {
		if err := s.engine.validate(string(body)); err != nil {
			failRaw(w, statusOf(err), err.Error())
			return
		}
		s.sendRaw(w, http.StatusAccepted, "", 0)
		return
	}
	s.beforeWrite()
	if err := s.engine.push(string(body), version, flag(r, "skip_version")); err != nil {
		failRaw(w, statusOf(err), err.Error())
		return
	}
	s.afterPush(w, r)
}

func (s *Server) afterPush(w http.ResponseWriter, r *http.Request) {
	switch {
	case flag(r, "skip_reload"):
		for _, action := range strings.Split(r.Header.Get("X-Runtime-Actions"), ";") {
			if action == "" {
				continue
			}
			if err := s.act(action); err != nil {
				failRaw(w, http.StatusInternalServerError, "cannot execute "+splitAction(action)[0]+": "+err.Error())
				return
			}
		}
		s.sendRaw(w, http.StatusCreated, "", 0)
	case flag(r, "force_reload"):
		if output, ok := s.reload(); !ok {
			failRaw(w, http.StatusBadRequest, "Reload failed: "+output)
			return
		}
		s.sendRaw(w, http.StatusCreated, "", 0)
	default:
		w.Header().Set("Reload-ID", s.schedule())
		s.sendRaw(w, http.StatusAccepted, "", 0)
	}
}
