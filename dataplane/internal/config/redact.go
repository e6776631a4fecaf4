package config

import (
	"regexp"
	"slices"
	"strings"
)

// Secret stands for a value that never prints.
const Secret = "(secret)"

// secretWords mark what follows them in a line as secret, wherever one of them
// is part of a word. Rather too many than too few: a plan must be fit for a log.
var secretWords = []string{
	"password", "passwd", "passphrase", "secret", "token", "credential",
	"authorization", "api-key", "apikey", "x-api", "x-auth", "private-key", "cookie-key", "mac-key", "anonkey",
	"sign-pass", "hmac(", "jwt_verify(", "aes_", "bearer", "pwd", "auth=",
}

// secretDirectives are the directives whose arguments are secret.
var secretDirectives = []string{"cookie-key", "cluster-secret", "anonkey", "mac-key", "passphrase-cmd"}

// secretExact are such words only as a whole.
var secretExact = []string{"auth", "AUTH", "key", "pass", "Cookie", "Set-Cookie", "Basic", "setenv", "presetenv"}

// secretHeaders are parts of names of headers that hold secrets. Elsewhere in a
// line these words say nothing.
var secretHeaders = []string{"auth", "cookie", "key", "pass", "session", "signature"}

// RedactWords returns the words of a line for people to see: everything after
// a word that announces a secret becomes one "(secret)", and so does what stands
// before the host of a URL.
func RedactWords(words []string) []string {
	words = redactURLs(words)
	for i, w := range words {
		if !announcesSecret(words, i) {
			continue
		}
		keep := i + 1
		if !isKeyword(w) {
			keep = i // such as str(token=...), which holds the secret itself
		}
		if keep == len(words) {
			return words
		}
		return append(slices.Clone(words[:keep]), Secret)
	}
	return words
}

func announcesSecret(words []string, i int) bool {
	isDirective := func(s string) bool { return strings.Contains(words[0], s) }
	if i == 0 {
		return slices.Contains(secretExact, words[0]) || namesSecret(words[0]) || slices.ContainsFunc(secretDirectives, isDirective)
	}
	exact := func(word string) bool { return slices.Contains(secretExact, word) }
	if exact(words[i]) || namesSecret(words[i]) || followsHeaderKeyword(words, i) && namesSecretHeader(words[i]) {
		return true
	}
	inner := strings.Fields(words[i]) // of a quoted word, such as "AUTH secret"
	return len(inner) > 1 && slices.ContainsFunc(inner, exact)
}

// followsHeaderKeyword reports whether a word is the name of a header.
func followsHeaderKeyword(words []string, i int) bool {
	switch before := words[i-1]; before {
	case "hdr", "replace-value":
		return true
	default:
		return strings.HasSuffix(before, "-header")
	}
}

func namesSecretHeader(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc(secretHeaders, func(s string) bool { return strings.Contains(lower, s) })
}

// userinfo is the user and the password of a URL (RFC 3986, section 3.2.1).
var userinfo = regexp.MustCompile(`://[^/?#\s]+@`)

func redactURLs(words []string) []string {
	shown := slices.Clone(words)
	for i, w := range words {
		if strings.Contains(w, "://") {
			shown[i] = userinfo.ReplaceAllLiteralString(w, "://"+Secret+"@")
		}
	}
	return shown
}

// namesSecret reports whether a word speaks of secrets.
func namesSecret(word string) bool {
	lower := strings.ToLower(word)
	return slices.ContainsFunc(secretWords, func(s string) bool { return strings.Contains(lower, s) })
}

func isKeyword(word string) bool {
	return strings.IndexFunc(word, func(r rune) bool { return !IsNameRune(r) }) < 0
}

// RedactQuoted hides in a message what is secret in the line that it quotes.
func RedactQuoted(message, line string) string {
	words := strings.Fields(line)
	shown := RedactWords(words)
	for _, w := range words {
		if w = strings.Trim(w, `"'`); len(w) >= 3 && !slices.ContainsFunc(shown, func(s string) bool { return strings.Trim(s, `"'`) == w }) {
			message = strings.ReplaceAll(message, w, Secret)
		}
	}
	return message
}

// RedactRaw is RedactWords for a line that cannot be cut into words.
func RedactRaw(raw string) string {
	return strings.Join(RedactWords(strings.Fields(raw)), " ")
}

// RedactValue hides a value whose field or place speaks of secrets.
func RedactValue(value string, names ...string) string {
	if value != "" && slices.ContainsFunc(names, SpeaksOfSecrets) {
		return Secret
	}
	return value
}

// SpeaksOfSecrets is namesSecret for names of files and fields, which say less:
// the entries of "auth.map" are no less secret than those of "tokens.map".
func SpeaksOfSecrets(name string) bool {
	return namesSecret(name) || strings.Contains(strings.ToLower(name), "auth")
}
