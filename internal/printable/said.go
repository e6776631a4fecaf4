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

// MaxSaid is how much of what another program says fits into logs and events, in bytes.
const MaxSaid = 4 << 10

// maxSearched is how much of it is searched for secrets: more than is shown, as one may
// begin within and end without.
const maxSearched = 64 << 10

// Said is what another program said, such as an instance or a server, as it may be
// shown: without secrets, cut, and as [Text] has it. If hide is nil, there are no
// secrets.
func Said(text string, hide func(string) string) string {
	whole := len(text) <= maxSearched
	if text = text[:min(len(text), maxSearched)]; hide != nil {
		text = hide(text)
	}
	if !whole { // it may end with the begin of a secret
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

// SaidError is an error that quotes another program, as it may be shown. It unwraps to
// err.
func SaidError(err error, hide func(string) string) error {
	text := err.Error()
	if before, _, malformed := strings.Cut(text, "malformed "); malformed { // then net/http quotes it
		text = before + "malformed answer: something else answers here"
	}
	if text = Said(text, hide); text == err.Error() {
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

// shortest is the length of what is hidden as a secret. Texts have shorter words anyway.
const shortest = 4

// Hide hides secrets such as a password or a token, in the forms in which a program
// that got them may send them back: plain, escaped, in base64 alone or behind the user
// as in a header. It is a function, so that it does not print.
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
