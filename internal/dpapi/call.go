package dpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/internal/late"
	"github.com/hapticsdk/haptic/internal/printable"
)

// StatusError is an answer that is not success.
type StatusError struct {
	Method  string
	Path    string
	Status  int    // HTTP status
	Message string // what the API said
}

// Error returns call, status and message.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: status %d: %s", e.Method, e.Path, e.Status, e.Message)
}

// Status returns the HTTP status within an error, 0 if there is none.
func Status(err error) int {
	var s *StatusError
	if errors.As(err, &s) {
		return s.Status
	}
	return 0
}

// call is one request.
type call struct {
	method  string
	path    string // below /v3, escaped, with the query
	kind    string // media type of the body; text/plain if empty
	body    []byte
	actions string // for the running process
	large   bool   // the answer may be large
}

// answer is the answer to a successful request.
type answer struct {
	body     []byte
	version  int64  // of the configuration, 0 if absent
	reloadID string // of the reload that completes the request, "" if it is complete
}

// at returns a path below the prefix of most calls. Each %s takes one path element, with any
// characters.
func at(format string, elements ...string) string {
	escaped := make([]any, len(elements))
	for i, e := range elements {
		escaped[i] = url.PathEscape(e)
	}
	return "services/haproxy/" + fmt.Sprintf(format, escaped...)
}

func (c *Client) do(ctx context.Context, r call) (answer, error) {
	ctx, cancel := late.Context(ctx, "no answer", c.opts.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+"/"+r.path, bytes.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	if len(r.body) > 0 {
		req.Header.Set("Content-Type", cmp.Or(r.kind, "text/plain"))
	}
	req.Header.Set("Accept-Encoding", "identity") // the API never compresses
	if r.actions != "" {
		req.Header.Set("X-Runtime-Actions", r.actions)
	}
	if c.opts.Username != "" || c.opts.Password != "" {
		req.SetBasicAuth(c.opts.Username, c.opts.Password)
	}
	if c.fence != nil && r.method != http.MethodGet {
		if err := c.fence(); err != nil {
			return answer{}, err
		}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, printable.SaidError(err, c.hide) // already a *url.Error
	}
	defer func() { _ = res.Body.Close() }()
	good := res.StatusCode >= 200 && res.StatusCode <= 299
	limit := maxAnswer
	switch {
	case !good:
		limit = maxError
	case r.large:
		limit = maxLarge
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, int64(limit)+1))
	if err == nil && good && len(body) > limit {
		err = fmt.Errorf("the answer is larger than %d bytes: check that the URL leads to a Dataplane API", limit)
	}
	if err != nil {
		return answer{}, printable.SaidError(&url.Error{Op: "read the answer to " + r.method, URL: req.URL.String(), Err: err}, c.hide)
	}
	if !good {
		return answer{}, &StatusError{
			Method:  r.method,
			Path:    req.URL.Path,
			Status:  res.StatusCode,
			Message: printable.Said(cmp.Or(message(body), res.Status), c.hide),
		}
	}
	version, _ := strconv.ParseInt(res.Header.Get("Configuration-Version"), 10, 64)
	return answer{body: body, version: version, reloadID: res.Header.Get("Reload-ID")}, nil
}

// message returns the message of the API. It is {"code":…,"message":…}, for some calls quoted
// again as a JSON string, or plain text.
func message(body []byte) string {
	text := strings.TrimSpace(string(body))
	_ = json.Unmarshal([]byte(text), &text) // fails unless the text is quoted
	var m struct {
		Message string `json:"message"`
	}
	if json.Unmarshal([]byte(text), &m) == nil && m.Message != "" {
		text = m.Message
	}
	return strings.TrimSpace(text)
}

// read makes a call whose answer is JSON.
func read[T any](ctx context.Context, c *Client, r call) (value T, a answer, err error) {
	if a, err = c.do(ctx, r); err != nil {
		return value, a, err
	}
	if err := json.Unmarshal(a.body, &value); err != nil {
		return value, a, printable.SaidError(&url.Error{Op: "decode", URL: "answer", Err: unreadable(err)}, c.hide)
	}
	return value, a, nil
}

// get reads one value.
func get[T any](ctx context.Context, c *Client, path string) (T, error) {
	value, _, err := read[T](ctx, c, call{method: http.MethodGet, path: path})
	return value, err
}

func (c *Client) delete(ctx context.Context, path string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: path})
	return err
}

// sendJSON sends a value as JSON.
func (c *Client) sendJSON(ctx context.Context, method, path string, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, call{method: method, path: path, kind: "application/json", body: body})
	return err
}

func (c *Client) sendFile(ctx context.Context, method, path, name string, content []byte) (answer, error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile("file_upload", name)
	if err == nil {
		_, err = part.Write(content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return answer{}, err
	}
	return c.do(ctx, call{method: method, path: path, kind: w.FormDataContentType(), body: b.Bytes()})
}
