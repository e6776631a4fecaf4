package observe

import (
	"regexp"
	"slices"
	"strings"
)

// masked stands for what is secret.
const masked = "(secret)"

// Words that announce a secret in a line of a configuration: everything after
// one of them is masked. Rather too many than too few.
var (
	// secretParts anywhere in a word.
	secretParts = [...]string{"password", "passwd", "passphrase", "pwd", "secret", "token", "credential", "authorization",
		"apikey", "api-key", "api_key", "x-api", "x-auth", "private", "cookie-key", "mac-key", "anonkey", "sign-pass",
		"hmac(", "jwt_verify(", "aes_", "bearer", "auth="}
	// secretWhole as a whole word.
	secretWhole = [...]string{"auth", "key", "pass", "cookie", "set-cookie", "basic", "setenv", "presetenv", "default-setenv"}
	// secretHeaders as a part of the name of a header.
	secretHeaders = [...]string{"auth", "cookie", "key", "pass", "session", "signature"}
	// userinfo is the user and the password of a URL (RFC 3986, section 3.2.1).
	userinfo = regexp.MustCompile(`://[^/?#\s"']+@`)
	wordAt   = regexp.MustCompile(`\S+`)
)

// mask returns the text of a configuration for people to see: everything after
// a word that announces a secret is "(secret)", to the end of the line, in
// comments too. Lines keep their numbers and their indent. What no word announces
// cannot be told from anything else: the text of a variable that a template
// named x, or a value that an ACL compares with.
func mask(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = userinfo.ReplaceAllLiteralString(maskLine(line), "://"+masked+"@")
	}
	return strings.Join(lines, "\n")
}

func maskLine(line string) string {
	words := wordAt.FindAllStringIndex(line, -1)
	for i, at := range words {
		word := line[at[0]:at[1]]
		if !announces(word, before(line, words, i)) {
			continue
		}
		end := at[1]
		if !plain(word) {
			end = at[0] // such as str(token=...), which holds the secret itself
		} else if i == len(words)-1 {
			return line // with nothing behind it: the name of a section, or of a header
		}
		if end > at[0] {
			return line[:end] + " " + masked
		}
		return line[:end] + masked
	}
	return line
}

// before is the word before the one at i.
func before(line string, words [][]int, i int) string {
	if i == 0 {
		return ""
	}
	return line[words[i-1][0]:words[i-1][1]]
}

func announces(word, before string) bool {
	lower := strings.ToLower(strings.Trim(word, `"'\`))
	if speaksOfSecrets(lower) || slices.Contains(secretWhole[:], lower) {
		return true
	}
	isHeader := before == "hdr" || before == "replace-value" || strings.HasSuffix(before, "-header")
	return isHeader && slices.ContainsFunc(secretHeaders[:], func(s string) bool { return strings.Contains(lower, s) })
}

// speaksOfSecrets reports a word in lower case that has one of secretParts.
func speaksOfSecrets(lower string) bool {
	return slices.ContainsFunc(secretParts[:], func(s string) bool { return strings.Contains(lower, s) })
}

// plain reports a word that can only be a keyword or a name.
func plain(word string) bool {
	return strings.IndexFunc(word, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

// secretFile reports whether the name of a file speaks of secrets, which says
// less than a word of a configuration: the entries of auth.map are no less
// secret than those of tokens.map.
func secretFile(name string) bool {
	lower := strings.ToLower(name)
	return speaksOfSecrets(lower) || slices.ContainsFunc(secretHeaders[:], func(s string) bool { return strings.Contains(lower, s) })
}
