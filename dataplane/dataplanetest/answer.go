package dataplanetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// answer is what a handler has to say. The body is sent as JSON, a string as
// plain text, bytes as they are, nil not at all.
type answer struct {
	status   int
	body     any
	reloadID string // of the reload that completes the request
	checksum string // of the configuration
	version  int64  // of the configuration, 0 if it is not told
}

// send writes the answer.
func (a *answer) send(w http.ResponseWriter) {
	kind, body := a.content()
	headers := map[string]string{"Content-Type": kind, "Reload-ID": a.reloadID, "Configuration-Checksum": a.checksum}
	if a.version != 0 {
		headers["Configuration-Version"] = strconv.FormatInt(a.version, 10)
	}
	if a.status == http.StatusUnauthorized {
		headers["WWW-Authenticate"] = `Basic realm="API"`
	}
	if a.status != http.StatusNoContent {
		headers["Content-Length"] = strconv.Itoa(len(body))
	}
	for name, value := range headers {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(body)
}

// cut breaks the connection off in the middle of the answer.
func (a *answer) cut(w http.ResponseWriter) {
	_, body := a.content()
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(body[:len(body)/2])
	if flusher, ok := w.(http.Flusher); ok && len(body) > 1 {
		flusher.Flush()
	}
	panic(http.ErrAbortHandler)
}

func (a *answer) content() (kind string, body []byte) {
	switch content := a.body.(type) {
	case nil:
		return "", nil
	case string:
		return "text/plain", []byte(content)
	case []byte:
		return "application/octet-stream", content
	}
	body, err := json.Marshal(a.body)
	if err != nil {
		body = []byte(strconv.Quote(err.Error()))
	}
	return "application/json", body
}

// problem is an error with the status that the API answers it with.
type problem struct {
	status int
	code   int // in the body; 0 means the status
	text   string
}

func (p *problem) Error() string { return p.text }

func problemf(status int, format string, args ...any) error {
	return &problem{status: status, text: fmt.Sprintf(format, args...)}
}

// invalid is what the framework of the API says of a parameter, with a code of
// its own.
func invalid(code int, format string, args ...any) error {
	return &problem{http.StatusUnprocessableEntity, code, fmt.Sprintf(format, args...)}
}

// Codes of the framework: a value has a wrong type, is missing, does not match
// a pattern.
const (
	codeType     = 601
	codeRequired = 602
	codePattern  = 605
)

// What client-native calls the errors of HAProxy.
var (
	errNotFound = errors.New("not found")
	errExists   = errors.New("already exists")
	errGeneral  = errors.New("general error")
)

// refusal is the answer for an error.
func refusal(err error) answer {
	p := &problem{status: http.StatusInternalServerError, text: err.Error()}
	if !errors.As(err, &p) && errors.Is(err, errNotFound) {
		p.status = http.StatusNotFound
	}
	if p.code == 0 {
		p.code = p.status
	}
	return answer{status: p.status, body: map[string]any{"code": p.code, "message": p.text}}
}

// request is a request with its body, and with the elements of its path that
// an endpoint leaves open.
type request struct {
	*http.Request
	body []byte
	args []string
}

func (q *request) flag(name string) bool { return q.param(name) == "true" }

func (q *request) param(name string) string { return q.URL.Query().Get(name) }

// number reads a parameter of the query, 0 if it is absent.
func (q *request) number(name string) (int64, error) {
	text := q.param(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, invalid(codeType, "%s in query must be of type int64: %q", name, text)
	}
	return n, nil
}

// decode reads a JSON body.
func (q *request) decode(into any) error {
	if len(q.body) == 0 {
		return invalid(codeRequired, "data in body is required")
	}
	if err := json.Unmarshal(q.body, into); err != nil {
		return problemf(http.StatusBadRequest, "parsing data body from \"\" failed, because %s", err)
	}
	return nil
}

// uploaded reads the file of a form.
func (q *request) uploaded() (name string, content []byte, err error) {
	file, header, err := q.FormFile("file_upload")
	if err != nil {
		return "", nil, problemf(http.StatusBadRequest, "parsing file_upload formData from \"\" failed, because %s", err)
	}
	defer func() { _ = file.Close() }()
	content, err = io.ReadAll(file)
	return header.Filename, content, err
}
