package dpapi

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/hapticsdk/haptic/internal/printable"
)

// maxSaid is how much of what the API says fits into logs and events.
const maxSaid = 4 << 10

// said returns what the API says as it may be shown: cut, without characters that
// control a terminal, and without our password.
func (c *Client) said(text string) string {
	text = c.secrets.Replace(text[:min(len(text), maxError)])
	rest := ""
	if len(text) > maxSaid {
		text, rest = strings.ToValidUTF8(text[:maxSaid], ""), " ..."
	}
	return printable.Text(text) + rest
}

// shown makes an error that quotes the API one that may be shown.
func (c *Client) shown(err error) error {
	text := err.Error()
	if before, _, malformed := strings.Cut(text, "malformed "); malformed { // then net/http quotes it
		text = before + "malformed answer: something else than a Dataplane API answers"
	}
	if text = c.said(text); text != err.Error() {
		return &shownError{text, err}
	}
	return err
}

type shownError struct {
	text string
	err  error
}

func (e *shownError) Error() string { return e.text }
func (e *shownError) Unwrap() error { return e.err }

// shortest is the length of what is hidden as a secret. Texts have shorter words anyway.
const shortest = 4

// secretsOf replaces a password, in the forms in which an API that got it may send it
// back: plain, escaped, in base64 alone or as part of our header.
func secretsOf(username, password string) *strings.Replacer {
	quoted, _ := json.Marshal(password) // strings never fail
	forms := []string{password, string(bytes.Trim(quoted, `"`)), strings.Trim(fmt.Sprintf("%q", password), `"`), url.QueryEscape(password), url.PathEscape(password)}
	for _, secret := range []string{username + ":" + password, password} {
		forms = append(forms, base64.RawStdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)))
	}
	var pairs []string
	for _, form := range forms {
		if len(form) >= shortest && password != "" {
			pairs = append(pairs, form, "(secret)")
		}
	}
	return strings.NewReplacer(pairs...)
}

var (
	errTooMany = fmt.Errorf("a list has more than %d elements", maxValues)
	errKind    = errors.New("a value is of another kind than those of a Dataplane API")
)

// unreadable says why an answer is no JSON, or not that of the API. It quotes no value.
func unreadable(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) || errors.Is(err, errTooMany) {
		return err
	}
	return errKind
}

// list is a list in an answer. It has at most maxValues elements: a hundred times as
// much memory as text would go to lists of nothing.
type list[T any] []T

// UnmarshalJSON takes one element after the other, and ends with the first that is wrong.
func (l *list[T]) UnmarshalJSON(data []byte) error {
	if bytes.Count(data, []byte(",")) < maxValues { // most are
		return json.Unmarshal(data, (*[]T)(l))
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return cmp.Or(err, errKind)
	}
	for d.More() {
		if len(*l) == maxValues {
			return errTooMany
		}
		var element T
		if err := d.Decode(&element); err != nil {
			return err
		}
		*l = append(*l, element)
	}
	return nil
}
