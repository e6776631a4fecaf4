package api

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/dpapi"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// errorAt converts the error of a call of the API.
func errorAt(stage string, err error) *config.Error {
	e := config.At(stage, err)
	var s *dpapi.StatusError
	if e.Status != 0 || !errors.As(e.Err, &s) {
		return e
	}
	e.Status, e.Output = s.Status, s.Message
	switch s.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Err = config.ErrUnauthorized
	case http.StatusConflict:
		e.Err = config.ErrConflict
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge, http.StatusNotAcceptable:
		e.Err = config.ErrInvalid
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		e.Err = config.ErrUnsupported
	default:
		e.Err = errors.New(s.Method + " " + s.Path + " failed")
	}
	return e
}

// isStatus reports whether the API answered with one of these statuses.
func isStatus(err error, statuses ...int) bool { return slices.Contains(statuses, dpapi.Status(err)) }

// except turns an answer with one of these statuses into success: the wanted state exists
// already.
func except(err error, statuses ...int) error {
	if isStatus(err, statuses...) {
		return nil
	}
	return err
}

// answered reports whether the API answered a question about the process. An error status means
// that the API does not know the answer. A lack of rights and a failed connection are errors.
func answered(stage string, err error) (bool, error) {
	if dpapi.Status(err) == 0 && err != nil || isStatus(err, http.StatusUnauthorized, http.StatusForbidden) {
		return false, errorAt(stage, err)
	}
	return err == nil, nil
}

// probeError is errorAt for the first request to an endpoint.
func probeError(err error) *config.Error {
	e := errorAt("probe", err)
	if errors.Is(e.Err, config.ErrUnsupported) {
		e.Output = strings.TrimSpace("no Dataplane API of version 3 answers here: " + e.Output)
	}
	return e
}

func fileError(err error, kind config.FileKind, name string) *config.Error {
	e := errorAt("files", err)
	e.File = string(kind) + " " + name
	return e
}

// readError is fileError for a file that was there a moment ago.
func readError(err error, f config.File) *config.Error {
	e := fileError(err, f.Kind, f.Name)
	if e.Status == http.StatusNotFound {
		e.Err = config.ErrConflict
	}
	return e
}

// refused converts the error for a text that must not be sent.
func refused(err error) *config.Error {
	e := &config.Error{Stage: "check", Err: config.ErrUnsupported, Output: err.Error()}
	var r *haproxycfg.Refusal
	if errors.As(err, &r) {
		e.File, e.Line, e.Output = config.MainFile, r.Line, haproxycfg.Redact(r.Text)+": "+r.Why
	}
	return e
}

// pushError says why the API refused a text. HAProxy counts the lines of the text that the
// API has written. So pushError takes the line from a second push, which only validates the
// desired text.
func (c *Client) pushError(ctx context.Context, j *job, err error) *config.Error {
	e := errorAt("configuration", err)
	if !errors.Is(e.Err, config.ErrInvalid) {
		return e
	}
	text := j.wanted.Main()
	if !c.opts.Shared { // otherwise the lines are not those of the desired text
		text = j.desired.Main()
	}
	e.File, e.Output = config.MainFile, redactOutput(e.Output, j.wanted.Main())
	var again *dpapi.StatusError
	if _, err := c.api.Push(ctx, text, j.before.version, dpapi.Validate); errors.As(err, &again) && again.Status == http.StatusBadRequest {
		e.Output = redactOutput(again.Message, text)
		if !c.opts.Shared {
			e.Line = lineOf(again.Message, strings.Count(text, "\n"))
		}
	}
	return e
}

// ownLines is the number of lines that the API may have put in front of a text.
const ownLines = 3

// redactOutput hides secrets in the output of HAProxy. The output quotes words of the lines
// that it names, so redactOutput hides the secrets of those lines.
func redactOutput(output, text string) string {
	lines := strings.Split(text, "\n")
	for _, m := range lineNumber.FindAllStringSubmatch(output, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			continue
		}
		for i := max(n-ownLines, 1); i <= min(n, len(lines)); i++ {
			output = haproxycfg.RedactQuoted(output, lines[i-1])
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
