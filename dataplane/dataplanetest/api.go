package dataplanetest

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// endpoint is a method of a path below /v3, in which {} leaves an element open.
type endpoint struct {
	method, path string
	do           func(*Server, *request) (answer, error)
}

// haproxy is what most paths begin with.
const haproxy = "services/haproxy/"

// endpoints are all that there are.
func endpoints() []endpoint {
	const runtime = haproxy + "runtime/"
	list := []endpoint{
		{"GET", "info", (*Server).info},
		{"GET", "health", (*Server).health},
		{"GET", haproxy + "configuration/version", (*Server).getVersion},
		{"GET", haproxy + "configuration/raw", (*Server).getRaw},
		{"POST", haproxy + "configuration/raw", (*Server).postRaw},
		{"GET", haproxy + "reloads/{}", (*Server).getReload},
		{"GET", haproxy + "stats/native", (*Server).stats},
		{"GET", runtime + "info", (*Server).processInfo},
		{"GET", runtime + "backends/{}/servers", (*Server).listServers},
		{"POST", runtime + "backends/{}/servers", (*Server).addServer},
		{"GET", runtime + "backends/{}/servers/{}", (*Server).getServer},
		{"PUT", runtime + "backends/{}/servers/{}", (*Server).setServer},
		{"DELETE", runtime + "backends/{}/servers/{}", (*Server).deleteServer},
		{"GET", runtime + "maps/{}/entries", ofMaps((*Server).listMap)},
		{"POST", runtime + "maps/{}/entries", ofMaps((*Server).addMapEntry)},
		{"GET", runtime + "maps/{}/entries/{}", ofMaps((*Server).getMapEntry)},
		{"PUT", runtime + "maps/{}/entries/{}", ofMaps((*Server).setMapEntry)},
		{"DELETE", runtime + "maps/{}/entries/{}", ofMaps((*Server).deleteMapEntry)},
		{"GET", runtime + "acls", (*Server).listACLs},
		{"GET", runtime + "acls/{}/entries", (*Server).listACL},
		{"POST", runtime + "acls/{}/entries", (*Server).addACLEntry},
		{"DELETE", runtime + "acls/{}/entries/{}", (*Server).deleteACLEntry},
		{"GET", runtime + "ssl_certs/{}", (*Server).getCertificate},
		{"DELETE", runtime + "ssl_certs/{}", (*Server).deleteCertificate},
		{"GET", runtime + "ssl_ca_files/{}", (*Server).getCAFile},
		{"PUT", runtime + "ssl_ca_files/{}", (*Server).setCAFile},
		{"GET", runtime + "ssl_ca_files/{}/entries/{}", (*Server).getCA},
		{"GET", runtime + "ssl_crt_lists/entries", (*Server).listCrtList},
		{"POST", runtime + "ssl_crt_lists/entries", (*Server).addToCrtList},
		{"DELETE", runtime + "ssl_crt_lists/entries", (*Server).dropFromCrtList},
	}
	for _, kind := range []string{"maps", "general", "ssl_certificates"} {
		of := func(do func(*Server, *request, *store) (answer, error)) func(*Server, *request) (answer, error) {
			return func(s *Server, q *request) (answer, error) { return do(s, q, s.store(kind)) }
		}
		list = append(list,
			endpoint{"GET", haproxy + "storage/" + kind, of((*Server).listFiles)},
			endpoint{"POST", haproxy + "storage/" + kind, of((*Server).createFile)},
			endpoint{"GET", haproxy + "storage/" + kind + "/{}", of((*Server).getFile)},
			endpoint{"PUT", haproxy + "storage/" + kind + "/{}", of((*Server).replaceFile)},
			endpoint{"DELETE", haproxy + "storage/" + kind + "/{}", of((*Server).deleteFile)})
	}
	return list
}

// matches finds the open elements of a path.
func (e *endpoint) matches(path []string) (args []string, ok bool) {
	pattern := strings.Split(e.path, "/")
	if len(pattern) != len(path) {
		return nil, false
	}
	for i, element := range path {
		switch pattern[i] {
		case "{}":
			plain, err := url.PathUnescape(element)
			if err != nil || plain == "" {
				return nil, false
			}
			args = append(args, plain)
		case element:
		default:
			return nil, false
		}
	}
	return args, true
}

// route has the endpoint of a request answer it.
func (s *Server) route(q *request) (answer, error) {
	notFound := problemf(http.StatusNotFound, "path %s was not found", q.URL.Path)
	below, ok := strings.CutPrefix(q.URL.EscapedPath(), "/v3/")
	if !ok || strings.HasPrefix(below, haproxy+"runtime/ssl_") && !s.atLeast32() {
		return answer{}, notFound
	}
	path := strings.Split(below, "/")
	var methods []string
	for _, e := range endpoints() {
		args, ok := e.matches(path)
		if ok && e.method == q.Method {
			q.args = args
			return e.do(s, q)
		}
		if ok {
			methods = append(methods, e.method)
		}
	}
	if len(methods) == 0 {
		return answer{}, notFound
	}
	slices.Sort(methods)
	return answer{}, problemf(http.StatusMethodNotAllowed, "method %s is not allowed, but [%s] are", q.Method, strings.Join(methods, ","))
}

// atLeast32 reports whether the API is one of 3.2 or later.
func (s *Server) atLeast32() bool {
	return !strings.HasPrefix(s.opts.APIVersion, "v3.0") && !strings.HasPrefix(s.opts.APIVersion, "v3.1")
}

func (s *Server) info(*request) (answer, error) {
	return answer{status: http.StatusOK, body: map[string]any{"api": map[string]string{"version": s.opts.APIVersion}, "system": struct{}{}}}, nil
}

func (s *Server) health(*request) (answer, error) {
	return answer{status: http.StatusOK, body: map[string]string{"haproxy": "up"}}, nil
}

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
	a := s.answer(&request{Request: r, body: body})
	answered(a.status)
	if f != nil && f.Cut {
		a.cut(w)
	}
	a.send(w)
}

// answer does what is asked under the lock. The version on the answer is that
// of afterwards.
func (s *Server) answer(q *request) (a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := problemf(http.StatusUnauthorized, "unauthenticated for invalid credentials")
	if user, password, _ := q.BasicAuth(); user == s.opts.Username && password == s.opts.Password {
		a, err = s.route(q)
	}
	if err != nil {
		a = refusal(err)
	}
	a.version = s.config.version
	return a
}
