package haproxymodel

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Secret reports whether a field, named as in [Field], of a child of that kind
// ("" for the section's own fields) always holds what must not be shown.
// [Field].Secret says so of some values in other fields, too.
func Secret(section, child, field string) bool {
	last := field[strings.LastIndexByte(field, '.')+1:]
	switch last {
	case "password", "passwd", "dynamic_cookie_key", "cluster_secret", "account_key", "anonkey":
		return true
	case "value":
		return section == "global" && strings.Contains(field, "env")
	case "data", "data_list":
		return child == "tcp-check rule"
	}
	return false
}

// secret reports whether a field holds a secret by its name or by its words.
func (w *walker) secret(name, old, new string) bool {
	child := ""
	if w.child != nil {
		child = w.child.Kind
	}
	return Secret(w.kind.Name, child, name) || tells(old) || tells(new) || w.secretHeader && (strings.HasSuffix(name, "fmt") || strings.HasSuffix(name, "format") || strings.HasSuffix(name, "match"))
}

// secretHeader reports models that set a header of which the value is secret.
func secretHeader(model reflect.Value) bool {
	if !model.IsValid() {
		return false
	}
	name := model.FieldByName("HdrName")
	if !name.IsValid() && model.FieldByName("Fmt").IsValid() {
		name = follow(model.FieldByName("Name"))
	}
	return name.IsValid() && secretName(name.String())
}

// secretName reports names of headers that hold secrets.
func secretName(header string) bool {
	return tells(header) || strings.Contains(strings.ToLower(header), "cookie")
}

// secretWords go with a secret.
var secretWords = []string{
	"authorization", "password", "passwd", "passphrase", "pwd", "secret", "api-key", "apikey", "bearer", "basic ", "token",
	"credential", "x-auth", "private-key", "mac-key", "sign-pass", "hmac(", "jwt_verify(", "aes_",
}

// userinfo is the user and the password of a URL (RFC 3986, section 3.2.1).
var userinfo = regexp.MustCompile(`://[^/?#\s]+@`)

// tells reports words that go with a secret.
func tells(text string) bool {
	text = strings.ToLower(text)
	contained := func(word string) bool { return strings.Contains(text, word) }
	return slices.ContainsFunc(secretWords, contained) || contained("://") && userinfo.MatchString(text)
}

// redacted is what stands for a secret.
const redacted = "(secret)"

// Redacted returns the text of the line, without its secrets.
func (l Line) Redacted() string {
	return userinfo.ReplaceAllLiteralString(l.redacted(), "://"+redacted+"@")
}

func (l Line) redacted() string {
	words, _, err := cut(l.Text)
	if err != nil || len(words) == 0 {
		words = strings.Fields(l.Text)
	}
	if len(words) == 0 {
		return ""
	}
	for i, w := range words {
		if i == 0 || i+1 == len(words) {
			continue
		}
		if w == "password" || w == "insecure-password" || w == "auth" && words[0] == "stats" {
			return strings.Join(words[:i+1], " ") + " " + redacted
		}
	}
	keep := 1
	switch words[0] {
	case "setenv", "presetenv":
		keep = 2
	case "dynamic-cookie-key", "cluster-secret", "anonkey":
	case "tcp-check":
		if len(words) < 2 || !strings.HasPrefix(words[1], "send") {
			return l.Text
		}
		keep = 2
	default:
		switch {
		case len(words) > 3 && strings.HasSuffix(words[1], "-header") && secretName(words[2]):
			keep = 3
		case tells(l.Text):
			keep = 2
		default:
			return l.Text
		}
	}
	if len(words) <= keep {
		return l.Text
	}
	return strings.Join(words[:keep], " ") + " " + redacted
}
