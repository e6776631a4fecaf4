package printable

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestSaid: what another program says is cut, cleaned and searched for the secrets that
// it was given, in whatever form it sends them back.
func TestSaid(t *testing.T) {
	const user, password, token = "admin", "s3cr/t \"pass\"\u00e9+word", "tok-8675309"
	hide := Hide(user, password, token)
	secrets := map[string]string{
		"plain": password, "token": token, "quoted": fmt.Sprintf("%q", password),
		"header": base64.StdEncoding.EncodeToString([]byte(user + ":" + password)), "base64": base64.StdEncoding.EncodeToString([]byte(password)),
		"query": url.QueryEscape(password), "path": url.PathEscape(password), "across the cut": strings.Repeat("x", MaxSaid-3) + password,
	}
	for name, text := range secrets {
		for what, got := range map[string]string{"Said": Said("it was "+text+".", hide), "SaidError": SaidError(errors.New("it was "+text+"."), hide).Error()} {
			for _, secret := range []string{"s3cr", "8675309", "word", secrets["header"][:16], secrets["base64"][:16]} {
				if strings.Contains(got, secret) {
					t.Errorf("%s of %s: %.200q", what, name, got)
				}
			}
		}
	}
	// A secret that is said so often that what is searched becomes short ends unseen.
	long := strings.Repeat("0123456789", 99) + "end"
	if got := Said(strings.Repeat(long, 100), Hide(user, long)); strings.Contains(strings.ReplaceAll(got, "(secret)", ""), "0123") {
		t.Errorf("%.200q", got)
	}
	for text, want := range map[string]string{
		"plain":                                   "plain",
		"a\x1b[2Jb\u009bc\u202ed\nline two":       `a\u001b[2Jb\u009bc\u202ed` + "\nline two",
		strings.Repeat("x", MaxSaid):              strings.Repeat("x", MaxSaid),
		strings.Repeat("x", MaxSaid+1):            strings.Repeat("x", MaxSaid) + " ...",
		strings.Repeat("x", MaxSaid-1) + "\u00e9": strings.Repeat("x", MaxSaid-1) + " ...",
	} {
		if got := Said(text, nil); got != want || !utf8.ValidString(got) {
			t.Errorf("%.80q: %.80q", text, got)
		}
	}
	cause := errors.New(`Get "http://x": malformed HTTP response "Authorization: Basic ..."`)
	err := SaidError(cause, nil)
	if !errors.Is(err, cause) || strings.Contains(err.Error(), "Basic") || !strings.HasSuffix(err.Error(), "malformed answer: something else answers here") {
		t.Error(err)
	}
	if same := errors.New("plain"); SaidError(same, hide) != same {
		t.Error("an error that may be shown is another one")
	}
}
