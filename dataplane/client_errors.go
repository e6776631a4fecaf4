package dataplane

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/internal/dpapi"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// configFile is what errors call the text of a configuration.
const configFile = "haproxy.cfg"

// errorAt makes an [*Error] of whatever a call of the API returned.
func (c *Client) errorAt(stage string, err error) *Error {
	var already *Error
	if errors.As(err, &already) {
		return already
	}
	e := &Error{Endpoint: c.Name(), Stage: stage, Err: err}
	var s *dpapi.StatusError
	if !errors.As(err, &s) {
		return e
	}
	e.Status, e.Output = s.Status, s.Message
	switch s.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Err = ErrUnauthorized
	case http.StatusConflict:
		e.Err = ErrConflict
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge, http.StatusNotAcceptable:
		e.Err = ErrInvalid
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		e.Err = ErrUnsupported
	default:
		e.Err = errors.New(s.Method + " " + s.Path + " failed")
	}
	return e
}

// probeError is errorAt for the first request to an endpoint.
func (c *Client) probeError(err error) *Error {
	e := c.errorAt("probe", err)
	if errors.Is(e.Err, ErrUnsupported) {
		e.Output = strings.TrimSpace("no Dataplane API of version 3 answers here: " + e.Output)
	}
	return e
}

func (c *Client) fileError(err error, kind FileKind, name string) *Error {
	e := c.errorAt("files", err)
	e.File = string(kind) + " " + name
	return e
}

// readError is fileError for a file that was there a moment ago.
func (c *Client) readError(err error, f File) *Error {
	e := c.fileError(err, f.Kind, f.Name)
	if e.Status == http.StatusNotFound {
		e.Err = ErrConflict
	}
	return e
}

// refused makes an [*Error] of a text that must not be sent.
func (c *Client) refused(err error) *Error {
	e := &Error{Endpoint: c.Name(), Stage: "check", Err: ErrUnsupported, Output: err.Error()}
	var r *haproxycfg.Refusal
	if errors.As(err, &r) {
		e.File, e.Line, e.Output = configFile, r.Line, redactRaw(r.Text)+": "+r.Why
	}
	return e
}

// pushError says why a text was not taken. HAProxy counts the lines of the
// normalised text there, which nobody but the API has seen, so the line comes
// from a second, harmless look at the desired text.
func (c *Client) pushError(ctx context.Context, err error, j *job) *Error {
	e := c.errorAt("configuration", err)
	if !errors.Is(e.Err, ErrInvalid) {
		return e
	}
	e.File, e.Output = configFile, redactOutput(e.Output, j.text)
	text := j.push
	if c.opts.Strategy == Raw { // else the lines are nobody's
		text = j.desired.Main()
	}
	var again *dpapi.StatusError
	if _, err := c.api.Push(ctx, text, j.before.version, dpapi.Validate); errors.As(err, &again) && again.Status == http.StatusBadRequest {
		e.Output = redactOutput(again.Message, text)
		if c.opts.Strategy == Raw {
			e.Line = lineOf(again.Message, strings.Count(text, "\n"))
		}
	}
	return e
}

// ownLines is how many lines the API may have put in front of a text.
const ownLines = 3

// redactOutput hides in what HAProxy says of a text what is secret in the lines
// that it speaks of, since it quotes words of them.
func redactOutput(output, text string) string {
	lines := strings.Split(text, "\n")
	for _, m := range lineNumber.FindAllStringSubmatch(output, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			continue
		}
		for i := max(n-ownLines, 1); i <= min(n, len(lines)); i++ {
			output = redactQuoted(output, lines[i-1])
		}
	}
	return output
}

// The API shortens "parsing [/file:12] : ..." to "line 12: ..." or "line=12".
var lineNumber = regexp.MustCompile(`(?:\bline[ =]|\[[^\]\s]*:)(\d+)`)

func lineOf(output string, most int) int {
	for _, m := range lineNumber.FindAllStringSubmatch(output, -1) {
		if n, err := strconv.Atoi(m[1]); err == nil && n >= 1 && n <= most {
			return n
		}
	}
	return 0
}

// pause waits before another attempt: about 100 ms, then twice that, ..., each
// between half and all of it, so that two who collided do not do so again.
func (c *Client) pause(ctx context.Context, attempt int) bool {
	base := 100 * time.Millisecond << min(attempt-1, 6)
	return sleep(ctx, base/2+rand.N(base/2))
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
