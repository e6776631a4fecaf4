package dataplanetest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
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
	number := len(s.requests)
	s.requests = append(s.requests, Request{
		Method: r.Method, Path: strings.TrimPrefix(r.URL.Path, "/v3"), Query: r.URL.RawQuery, Body: string(body),
	})
	f := s.take(r)
	s.mu.Unlock()
	answered := func(status int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests[number].Status = status
	}
	if f != nil && f.suffer(w, r, answered) {
		return
	}
	answer := httptest.NewRecorder()
	s.answer(answer, r)
	answered(answer.Code)
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
	defer func() {
		version := s.engine.version(r.URL.Query().Get("transaction_id"))
		w.Header().Set("Configuration-Version", strconv.FormatInt(version, 10))
	}()
	user, password, _ := r.BasicAuth()
	if user != s.opts.Username || password != s.opts.Password {
		w.Header().Set("WWW-Authenticate", `Basic realm="API"`)
		fail(w, http.StatusUnauthorized, "unauthenticated for invalid credentials")
		return
	}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/v3/")
	if !ok {
		notFound(w, r)
		return
	}
	if rest == "info" || rest == "health" {
		s.about(w, r, rest)
		return
	}
	rest, ok = strings.CutPrefix(rest, "services/haproxy/")
	path := strings.Split(rest, "/")
	switch area := path[0]; {
	case !ok:
		notFound(w, r)
	case rest == "configuration/raw":
		s.raw(w, r)
	case area == "configuration":
		s.configuration(w, r, path[1:])
	case area == "transactions":
		s.transactions(w, r, path[1:])
	case area == "reloads" && len(path) <= 2:
		s.getReloads(w, r, path[1:])
	case area == "storage" && len(path) >= 2:
		s.storage(w, r, path[1], path[2:])
	case rest == "stats/native":
		s.stats(w, r)
	case area == "runtime":
		s.runtime(w, r, path[1:])
	default:
		notFound(w, r)
	}
}

func (s *Server) about(w http.ResponseWriter, r *http.Request, what string) {
	switch {
	case r.Method != http.MethodGet:
		notAllowed(w, r, http.MethodGet)
	case what == "info":
		reply(w, http.StatusOK, map[string]any{"api": map[string]string{"version": s.opts.APIVersion}, "system": struct{}{}})
	default:
		reply(w, http.StatusOK, map[string]string{"haproxy": "up"})
	}
}

func notFound(w http.ResponseWriter, r *http.Request) {
	failf(w, http.StatusNotFound, "path %s was not found", r.URL.Path)
}

func notAllowed(w http.ResponseWriter, r *http.Request, methods ...string) {
	slices.Sort(methods)
	failf(w, http.StatusMethodNotAllowed, "method %s is not allowed, but [%s] are", r.Method, strings.Join(methods, ","))
}
