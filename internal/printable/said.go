package printable

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// MaxSaid bounds the text of another program in logs and events, in bytes.
const MaxSaid = 4 << 10

// maxSearched bounds the text that Said searches for secrets. It is above MaxSaid, because
// a secret may begin before MaxSaid and end behind it.
const maxSearched = 64 << 10

// Said returns the text of another program, such as an instance or a server, ready to show:
// without secrets, cut, and escaped by [Text]. If hide is nil, there are no secrets.
func Said(text string, hide func(string) string) string {
	whole := len(text) <= maxSearched
	text = text[:min(len(text), maxSearched)]
	if hide != nil {
		text = hide(text)
	}
	if !whole { // it may end with the start of a secret
		text = text[:max(0, len(text)-maxSearched/4)]
	}
	if whole && len(text) <= MaxSaid {
		return Text(text)
	}
	cut := min(MaxSaid, len(text))
	for cut < len(text) && cut > MaxSaid-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return Text(text[:cut]) + " ..."
}

// SaidError returns an error that quotes another program, ready to show. It unwraps to err.
func SaidError(err error, hide func(string) string) error {
	text := err.Error()
	if before, _, malformed := strings.Cut(text, "malformed "); malformed { // net/http quotes the answer
		text = before + "malformed answer: something else answers here"
	}
	text = Said(text, hide)
	if text == err.Error() {
		return err
	}
	return &shownError{text, err}
}

type shownError struct {
	text string
	err  error
}

func (e *shownError) Error() string { return e.text }
func (e *shownError) Unwrap() error { return e.err }

// shortest is the least length of a text that Hide replaces: shorter words occur in any
// text.
const shortest = 4

// Hide returns a function that replaces secrets such as a password or a token. A program
// may send a secret back in several forms: plain, escaped, in base64 alone, or behind the
// user as in a header. The result is a function, because printing a function does not show
// the secrets.
func Hide(username string, secrets ...string) func(string) string {
	var pairs []string
	for _, secret := range secrets {
		quoted, _ := json.Marshal(secret) // strings never fail
		forms := []string{secret, string(bytes.Trim(quoted, `"`)), strings.Trim(fmt.Sprintf("%q", secret), `"`), url.QueryEscape(secret), url.PathEscape(secret)}
		for _, packed := range []string{username + ":" + secret, secret} {
			forms = append(forms, base64.RawStdEncoding.EncodeToString([]byte(packed)), base64.RawURLEncoding.EncodeToString([]byte(packed)))
		}
		for _, form := range forms {
			if len(form) >= shortest && secret != "" {
				pairs = append(pairs, form, "(secret)")
			}
		}
	}
	return strings.NewReplacer(pairs...).Replace
}
