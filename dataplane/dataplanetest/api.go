package dataplanetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
)

// handler answers requests of one kind. It returns a body that is sent as JSON, or bytes that
// are sent unchanged.
type handler func(*request) (status int, body any, err error)

// routes returns all endpoints.
func (s *Server) routes() *http.ServeMux {
	const servers, maps, acls = "runtime/backends/{backend}/servers", "runtime/maps/{map}/entries", "runtime/acls/{acl}/entries"
	table := map[string]handler{
		"GET configuration/version":     s.getVersion,
		"GET configuration/raw":         s.getRaw,
		"POST configuration/raw":        s.postRaw,
		"GET reloads/{id}":              s.getReload,
		"GET stats/native":              s.stats,
		"GET runtime/info":              s.processInfo,
		"GET " + servers:                s.listServers,
		"POST " + servers:               s.addServer,
		"PUT " + servers + "/{name}":    s.setServer,
		"DELETE " + servers + "/{name}": s.deleteServer,
		"GET " + maps:                   s.listMap,
		"POST " + maps:                  s.addMapEntry,
		"PUT " + maps + "/{key}":        s.setMapEntry,
		"DELETE " + maps + "/{key}":     s.deleteMapEntry,
		"GET runtime/acls":              s.listACLs,
		"GET " + acls:                   s.listACL,
		"POST " + acls:                  s.addACLEntry,
		"DELETE " + acls + "/{entry}":   s.deleteACLEntry,
	}
	if s.atLeast32() {
		table["GET runtime/ssl_certs/{file}"] = s.getCertificate
		table["DELETE runtime/ssl_certs/{file}"] = s.deleteCertificate
		table["PUT runtime/ssl_ca_files/{file}"] = s.setCAFile
		table["POST runtime/ssl_crt_lists/entries"] = s.addToCrtList
		table["DELETE runtime/ssl_crt_lists/entries"] = s.dropFromCrtList
	}
	for name, kind := range map[string]dataplane.FileKind{"maps": dataplane.Map, "general": dataplane.General, "ssl_certificates": dataplane.Certificate} {
		for call, do := range map[string]func(*request, dataplane.FileKind) (int, any, error){
			"GET storage/%s": s.listFiles, "POST storage/%s": s.createFile,
			"GET storage/%s/{file}": s.getFile, "PUT storage/%s/{file}": s.replaceFile, "DELETE storage/%s/{file}": s.deleteFile,
		} {
			table[fmt.Sprintf(call, name)] = func(q *request) (int, any, error) { return do(q, kind) }
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /v3/info", handler(s.info))
	for pattern, do := range table {
		method, path, _ := strings.Cut(pattern, " ")
		mux.Handle(method+" /v3/services/haproxy/"+path, do)
	}
	return mux
}

// atLeast32 reports whether the API is version 3.2 or later.
func (s *Server) atLeast32() bool {
	return !strings.HasPrefix(s.opts.APIVersion, "v3.0") && !strings.HasPrefix(s.opts.APIVersion, "v3.1")
}

// before34 reports whether the API can change nothing but the state of a loaded server.
func (s *Server) before34() bool {
	return !s.atLeast32() || strings.HasPrefix(s.opts.APIVersion, "v3.2") || strings.HasPrefix(s.opts.APIVersion, "v3.3")
}

func (s *Server) info(*request) (int, any, error) {
	return http.StatusOK, map[string]any{"api": map[string]string{"version": s.opts.APIVersion}}, nil
}

// ServeHTTP answers as the Dataplane API does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	number, f := s.arrived(r, body)
	if !f.wait(r.Context()) {
		return
	}
	if f.Drop {
		panic(http.ErrAbortHandler)
	}
	out := httptest.NewRecorder()
	if f.Status != 0 {
		f.answer(out)
	} else {
		s.answer(out, r)
	}
	content := out.Body.Bytes()
	if len(content) > 0 {
		out.Header().Set("Content-Length", strconv.Itoa(len(content)))
	}
	s.mu.Lock()
	s.requests[number].Status = out.Code
	s.mu.Unlock()
	maps.Copy(w.Header(), out.Header())
	w.WriteHeader(out.Code)
	if f.Cut {
		_, _ = w.Write(content[:len(content)/2])
		if len(content) > 1 {
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(content)
}

// answer handles a request under the lock. The answer shows the version after the request.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if user, password, _ := r.BasicAuth(); user == s.opts.Username && password == s.opts.Password {
		s.mux.ServeHTTP(w, r)
	} else {
		handler(func(*request) (int, any, error) {
			return 0, nil, problemf(http.StatusUnauthorized, "unauthenticated for invalid credentials")
		}).ServeHTTP(w, r)
	}
	w.Header().Set("Configuration-Version", strconv.FormatInt(s.version, 10))
}

// ServeHTTP answers one request, with errors in the form of the API.
func (do handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, body, err := do(&request{Request: r, header: w.Header()})
	if err != nil {
		p := &problem{http.StatusInternalServerError, err.Error()}
		errors.As(err, &p)
		status, body = p.status, map[string]any{"code": p.status, "message": p.text}
	}
	content, raw := body.([]byte)
	if !raw && body != nil {
		w.Header().Set("Content-Type", "application/json")
		content, _ = json.Marshal(body) // cannot fail for these types
	}
	w.WriteHeader(status)
	_, _ = w.Write(content)
}

// problem is an error with the status that the API answers it with.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func problemf(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

// as adds a status to an error.
func as(status int, err error) error {
	if err == nil {
		return nil
	}
	return &problem{status, err.Error()}
}

// request is a request with the headers of its answer.
type request struct {
	*http.Request
	header http.Header
}

func (q *request) flag(name string) bool { return q.URL.Query().Get(name) == "true" }

// content reads the body, which must not be empty.
func (q *request) content() ([]byte, error) {
	content, err := io.ReadAll(q.Body)
	if err == nil && len(content) == 0 {
		err = problemf(http.StatusUnprocessableEntity, "data in body is required")
	}
	return content, err
}

// decode reads a JSON body.
func (q *request) decode(into any) error {
	content, err := q.content()
	if err != nil {
		return err
	}
	return as(http.StatusBadRequest, json.Unmarshal(content, into))
}

// uploaded reads the file of a form.
func (q *request) uploaded() (name string, content []byte, err error) {
	file, header, err := q.FormFile("file_upload")
	if err != nil {
		return "", nil, as(http.StatusBadRequest, err)
	}
	defer func() { _ = file.Close() }()
	content, err = io.ReadAll(file)
	return header.Filename, content, err
}
