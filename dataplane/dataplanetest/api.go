package dataplanetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
)

// ServeHTTP answers as the Dataplane API does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.mu.Lock()
	s.requests = append(s.requests, Request{
		Method: r.Method, Path: strings.TrimPrefix(r.URL.Path, "/v3"), Query: r.URL.RawQuery, Body: string(body),
	})
	f := s.take(r)
	s.mu.Unlock()
	if f != nil && f.suffer(w, r) {
		return
	}
	answer := httptest.NewRecorder()
	s.answer(answer, r)
	for k, v := range answer.Header() {
		w.Header()[k] = v
	}
	out := answer.Body.Bytes()
	w.Header().Set("Content-Length", strconv.Itoa(len(out)))
	w.WriteHeader(answer.Code)
	if f != nil && f.Cut {
		_, _ = w.Write(out[:len(out)/2])
		if flusher, ok := w.(http.Flusher); ok && len(out) > 1 {
			flusher.Flush()
		}
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(out)
}

// answer does what is asked under the lock; the version on the answer is that
// of afterwards.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { w.Header().Set("Configuration-Version", strconv.FormatInt(s.version, 10)) }()
	user, password, _ := r.BasicAuth()
	if user != s.opts.Username || password != s.opts.Password {
		w.Header().Set("WWW-Authenticate", `Basic realm="API"`)
		fail(w, http.StatusUnauthorized, "unauthenticated for invalid credentials")
		return
	}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/v3/")
	if !ok {
		fail(w, http.StatusNotFound, "path "+r.URL.Path+" was not found")
		return
	}
	rest = strings.TrimPrefix(rest, "services/haproxy/")
	path := strings.Split(rest, "/")
	switch {
	case rest == "info" && r.Method == http.MethodGet:
		reply(w, http.StatusOK, map[string]any{"api": map[string]string{"version": s.opts.APIVersion}, "system": struct{}{}})
	case rest == "health" && r.Method == http.MethodGet:
		reply(w, http.StatusOK, map[string]string{"haproxy": "up"})
	case rest == "configuration/raw" && r.Method == http.MethodGet:
		s.sendRaw(w, http.StatusOK, "")
	case rest == "configuration/raw" && r.Method == http.MethodPost:
		s.postRaw(w, r)
	case path[0] == "reloads" && len(path) == 2 && r.Method == http.MethodGet:
		s.getReload(w, path[1])
	case path[0] == "storage" && len(path) >= 2 && s.files[path[1]] != nil:
		s.storage(w, r, path[1], path[2:])
	case path[0] == "runtime":
		s.runtime(w, r, path[1:])
	default:
		fail(w, http.StatusNotFound, "path "+r.URL.Path+" was not found")
	}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func fail(w http.ResponseWriter, status int, message string) {
	reply(w, status, map[string]any{"code": status, "message": message})
}

func failf(w http.ResponseWriter, status int, format string, args ...any) {
	fail(w, status, fmt.Sprintf(format, args...))
}

func flag(r *http.Request, name string) bool { return r.URL.Query().Get(name) == "true" }
