package validate

import "strings"

// secret stands for a value that never prints.
const secret = "(secret)"

// announces are words behind which, in a line, a secret may stand. Rather too
// many than too few: findings go to logs.
var announces = []string{
	"password", "passwd", "passphrase", "secret", "token", "credential",
	"authorization", "api-key", "apikey", "x-api", "x-auth", "private-key", "cookie-key", "mac-key", "anonkey",
	"sign-pass", "hmac(", "jwt_verify(", "aes_",
}

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
	for i, word := range words {
		lower := strings.ToLower(word)
		whole := lower == "auth" || lower == "key" || lower == "pass" || lower == "ca-sign-pass" || lower == "setenv" || lower == "presetenv" || strings.HasPrefix(lower, "set-cookie")
		if !whole && !contains(lower, announces) || i+1 == len(words) && !strings.ContainsAny(word, "=(:") {
			continue
		}
		keep := i + 1
		if strings.ContainsAny(word, "=(:") { // such as str(token=...)
			keep = i
		}
		return strings.Join(words[:keep], " ") + " " + secret
	}
	return line
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
