package dataplanetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/haproxytech/client-native/v6/configuration"
	clienterrors "github.com/haproxytech/client-native/v6/errors"
)

// asJSON encodes without escaping what only HTML needs escaped.
func asJSON(body any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(body); err != nil {
		return []byte(strconv.Quote(err.Error()))
	}
	return b.Bytes()
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(asJSON(body))
}

func fail(w http.ResponseWriter, status int, message string) {
	failCode(w, status, status, message)
}

func failf(w http.ResponseWriter, status int, format string, args ...any) {
	fail(w, status, fmt.Sprintf(format, args...))
}

// failCode answers with a code in the body that is not the status.
func failCode(w http.ResponseWriter, status, code int, message string) {
	reply(w, status, map[string]any{"code": code, "message": message})
}

// What the framework of the API calls values that it refuses: of a wrong type,
// not there, not like a pattern, not in a list.
const (
	codeType     = 601
	codeRequired = 602
	codePattern  = 605
	codeOneOf    = 606
)

// failRequired answers that something is missing in the request.
func failRequired(w http.ResponseWriter, what string) {
	failCode(w, http.StatusUnprocessableEntity, codeRequired, what+" is required")
}

// failError answers with an error of the engine.
func failError(w http.ResponseWriter, err error) { fail(w, statusOf(err), err.Error()) }

// statusOf is the status for an error of client-native, as the API has it.
func statusOf(err error) int {
	var conf *configuration.ConfError
	if !errors.As(err, &conf) {
		if errors.Is(err, clienterrors.ErrNotFound) {
			return http.StatusNotFound
		}
		return http.StatusInternalServerError
	}
	switch conf.Err() {
	case configuration.ErrObjectDoesNotExist:
		return http.StatusNotFound
	case configuration.ErrObjectAlreadyExists, configuration.ErrVersionMismatch, configuration.ErrTransactionAlreadyExists:
		return http.StatusConflict
	case configuration.ErrObjectIndexOutOfRange, configuration.ErrValidationError, configuration.ErrBothVersionTransaction,
		configuration.ErrNoVersionTransaction, configuration.ErrNoParentSpecified, configuration.ErrParentDoesNotExist,
		configuration.ErrTransactionDoesNotExist, configuration.ErrGeneralError:
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

func flag(r *http.Request, name string) bool { return r.URL.Query().Get(name) == "true" }

// number reads a parameter of the query, 0 if it is absent. On a wrong one it
// answers itself.
func number(w http.ResponseWriter, r *http.Request, name string) (n int64, ok bool) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		failCode(w, http.StatusUnprocessableEntity, codeType, fmt.Sprintf("%s in query must be of type int64: %q", name, text))
		return 0, false
	}
	return n, true
}
