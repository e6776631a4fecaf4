package validate

import (
	"regexp"
	"slices"
	"strings"
)

// secret stands for a value that never prints.
const secret = "(secret)"

// announces are words behind which, in a line, a secret may stand. Rather too
// many than too few: findings go to logs.
var announces = []string{
	"password", "passwd", "passphrase", "secret", "token", "credential",
	"authorization", "api-key", "apikey", "x-api", "x-auth", "-key", "anonkey",
	"sign-pass", "hmac(", "jwt_verify(", "aes_", "agent-send",
}

// announceAll are words that do so when they are the whole word.
var announceAll = []string{"auth", "key", "pass", "ca-sign-pass", "setenv", "presetenv"}

// headerSetters are words behind which a header named Cookie has a value.
var headerSetters = []string{"set-header", "add-header", "replace-header", "replace-value", "hdr"}

// userInfo is "user:password@" of a URL or an address.
var userInfo = regexp.MustCompile(`[^\s/@:"'=,(]+:[^\s/@"']+@`)

// mask hides what follows a word that announces a secret.
func mask(line string) string {
	words := strings.Fields(line)
	if len(words) > 2 && words[0] == "user" { // of a userlist, however it is misspelt
		keep := 2
		if words[2] == "password" || words[2] == "insecure-password" {
			keep = 3
		}
		return strings.Join(words[:keep], " ") + " " + secret
	}
	if len(words) > 2 && words[0] == "stats" && strings.HasPrefix(words[1], "au") && words[1] != "auth" { // misspelt
		return strings.Join(words[:2], " ") + " " + secret
	}
	if len(words) > 2 && words[0] == "tcp-check" && strings.HasPrefix(words[1], "send") { // such as AUTH of Redis
		return strings.Join(words[:2], " ") + " " + secret
	}
	for i, word := range words {
		if !announcesSecret(words, i) || i+1 == len(words) && !strings.ContainsAny(word, "=(:") {
			continue
		}
		keep := i + 1
		if strings.ContainsAny(word, "=(:") { // such as str(token=...)
			keep = i
		}
		return strings.Join(words[:keep], " ") + " " + secret
	}
	return userInfo.ReplaceAllString(line, secret+"@")
}

// announcesSecret reports whether a secret may stand in or behind a word.
func announcesSecret(words []string, i int) bool {
	lower := strings.ToLower(strings.Trim(words[i], `"'`))
	if strings.HasPrefix(lower, "/") || i == 1 && lower == "auth" && words[0] == "http-request" {
		return false // a path of a file, or the action "auth"
	}
	return slices.Contains(announceAll, lower) || strings.HasPrefix(lower, "set-cookie") || contains(lower, announces) ||
		i > 0 && lower == "cookie" && slices.Contains(headerSetters, words[i-1])
}

func contains(word string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(word, p) {
			return true
		}
	}
	return false
}

// maskMessage hides in a message of HAProxy what is secret in the line that it
// is about, since messages quote words of it.
func maskMessage(message, line string) string {
	masked := mask(line)
	if masked == line {
		return message
	}
	shown := map[string]bool{}
	for _, w := range strings.Fields(masked) {
		shown[w] = true
	}
	for _, w := range strings.Fields(line) {
		w = strings.Trim(w, `"'`)
		if len(w) >= 3 && !shown[w] {
			message = strings.ReplaceAll(message, w, secret)
		}
	}
	return message
}
