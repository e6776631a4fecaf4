package haproxycfg

import (
	"regexp"
	"slices"
	"strings"
)

// Secret stands for a value that never prints.
const Secret = "(secret)"

var (
	// secretExact matches words that announce a secret only as a whole, or within quotes.
	secretExact = regexp.MustCompile(`(^|\s)(auth|AUTH|key|pass|Cookie|Set-Cookie|[Bb]asic|setenv|presetenv)(\s|$)`)

	// secretHeaders matches parts of the names of headers that hold secrets.
	secretHeaders = regexp.MustCompile(`(?i)auth|cookie|key|pass|private|session|signature`)

	keywordOnly = regexp.MustCompile(`^["']?[\w-]+["']?$`)

	// userInfo matches the user and the password of a URL or an address.
	userInfo = regexp.MustCompile(`(://)[^/?#\s]+@|[^\s/@:"'=,(]+:[^\s/@"']+@`)
)

// NamesSecret reports whether a word announces a secret. It errs on the side of yes, because
// plans and findings go to logs.
func NamesSecret(word string) bool {
	word = strings.ToLower(word)
	for _, part := range [...]string{
		"password", "passwd", "passphrase", "pwd", "secret", "token", "credential", "authorization", "apikey", "api-key", "api_key", "x-api", "x-auth",
		"private-key", "private_key", "cookie-key", "mac-key", "anonkey", "sign-pass", "hmac(", "jwt_verify(", "aes_", "bearer", "auth=", "agent-send",
	} {
		if strings.Contains(word, part) {
			return true
		}
	}
	return false
}

// RedactWords returns the words of a line for people. Everything after a word that announces
// a secret becomes one "(secret)". So does the user of a URL.
func RedactWords(words []string) []string {
	keep := secretFrom(words)
	shown := slices.Clone(words[:min(keep, len(words))])
	for i, w := range shown {
		shown[i] = userInfo.ReplaceAllString(w, "${1}"+Secret+"@")
	}
	if keep < len(words) {
		shown = append(shown, Secret)
	}
	return shown
}

// secretFrom returns the number of words of a line that may be shown.
func secretFrom(words []string) int {
	if len(words) > 2 { // even if the keyword is misspelt
		switch first, second := words[0], words[1]; {
		case first == "user" && !NamesSecret(words[2]) && words[2] != "groups",
			first == "stats" && strings.HasPrefix(second, "au"),
			first == "tcp-check" && strings.HasPrefix(second, "send"): // for example AUTH of Redis
			return 2
		}
	}
	for i, w := range words {
		switch {
		case !announcesSecret(words, i):
		case !keywordOnly.MatchString(w): // for example str(token=...), which holds the secret itself
			return i
		default:
			return i + 1
		}
	}
	return len(words)
}

func announcesSecret(words []string, i int) bool {
	w := strings.Trim(words[i], `"'`)
	if strings.HasPrefix(w, "/") && !strings.Contains(w, "=") {
		return false // a path
	}
	return NamesSecret(w) || secretExact.MatchString(w) || i > 0 && namesHeader(words[i-1]) && secretHeaders.MatchString(w)
}

// namesHeader reports whether the name of a header follows a word.
func namesHeader(word string) bool {
	return word == "hdr" || word == "replace-value" || strings.HasSuffix(word, "-header")
}

// Redact is [RedactWords] for any line, also one that HAProxy cannot cut into words. A line
// without a secret stays as it is.
func Redact(line string) string {
	words := strings.Fields(line)
	if shown := RedactWords(words); !slices.Equal(shown, words) {
		return strings.Join(shown, " ")
	}
	return line
}

// RedactQuoted hides in a message the words of a line that are secret there. The message may
// quote the line.
func RedactQuoted(message, line string) string {
	words := strings.Fields(line)
	shown := RedactWords(words)
	for _, w := range words {
		w = strings.Trim(w, `"'`)
		if len(w) >= 3 && !slices.ContainsFunc(shown, func(s string) bool { return strings.Trim(s, `"'`) == w }) {
			message = strings.ReplaceAll(message, w, Secret)
		}
	}
	return message
}
