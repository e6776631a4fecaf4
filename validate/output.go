package validate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// message is one message of haproxy, with the lines that go on after it.
type message struct {
	level string // "ALERT", "WARNING", "NOTICE", ...; "" for a line without
	text  string
}

// leveled is "[ALERT]    (12) : config : parsing [/etc/haproxy/haproxy.cfg:3] : ...".
var leveled = regexp.MustCompile(`^\[([A-Z]+)\]\s*(?:\(\d*\))?\s*(?:: )?(?:config : )?(.*)$`)

// readMessages cuts the output of haproxy into messages.
func readMessages(output string) []message {
	var messages []message
	last := &message{}
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		text := strings.TrimSpace(line)
		goesOn := strings.HasPrefix(line, " ") && last.text != "" && last.level != "NOTICE"
		m := leveled.FindStringSubmatch(line)
		switch {
		case text == "":
			continue
		case m != nil:
			messages = append(messages, message{m[1], m[2]})
		case goesOn && !strings.HasPrefix(text, "parsing ["):
			last.text += " " + text
			continue
		case goesOn && strings.HasPrefix(last.text, "multiple ") && strings.HasSuffix(last.text, ":"):
			last.text = text // each line below "multiple argument resolution errors:" is a message
			continue
		case goesOn:
			messages = append(messages, message{last.level, text})
		default:
			messages = append(messages, message{"", line})
		}
		last = &messages[len(messages)-1]
	}
	return messages
}

// hasAlert reports whether haproxy said that something is wrong.
func hasAlert(output string) bool {
	return slices.ContainsFunc(readMessages(output), func(m message) bool { return m.level == "ALERT" })
}

// summaries are parts of messages that haproxy adds to those of what is wrong.
var summaries = []string{"rror(s) found in configuration file", "atal errors found in configuration", "Failed to initialize server(s) addr"}

// readOutput makes the verdict from the output of haproxy -c.
func readOutput(output string, code int, layout dataplane.Layout, cfg *dataplane.Config, box *sandbox) *verdict {
	l := &locator{layout: layout, cfg: cfg, sections: haproxycfg.Split(cfg.Main())}
	said := &verdict{}
	var summary []Finding
	var other []string
	for _, m := range readMessages(output) {
		text := box.back.Replace(m.text)
		switch {
		case m.level == "":
			other = append(other, text)
		case m.level == "WARNING":
			said.warnings = append(said.warnings, l.finding(text))
		case m.level == "NOTICE", m.level == "INFO", m.level == "DIAG":
		case containsAny(text, summaries):
			summary = append(summary, Finding{File: layout.ConfigPath(), Message: printable(text)})
		default:
			said.findings = append(said.findings, l.finding(text))
		}
	}
	switch {
	case code == 0: // alerts that did not keep haproxy from saying yes are warnings
		said.warnings, said.findings = append(said.findings, said.warnings...), nil
		return said
	case len(said.findings) > 0:
	case len(summary) > 0: // haproxy only warns of some things that it refuses
		said.findings = append(said.warnings, summary...)
	default: // no listener, for example
		text := cmp.Or(printable(strings.Join(other, " ")), fmt.Sprintf("haproxy -c ended with code %d", code))
		said.findings = []Finding{{File: layout.ConfigPath(), Message: text}}
	}
	slices.SortStableFunc(said.findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(uint(a.Line)-1, uint(b.Line)-1)) // without a line: last
	})
	return said
}

// printable replaces what is no text. HAProxy cuts characters in two. Where an
// argument is missing, it may quote bytes of its memory.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return unicode.ReplacementChar
		}
		return r // U+FFFD for what is no UTF-8
	}, text)
}

// secret stands for a value that never prints.
const secret = "(secret)"

var (
	// announces finds a word behind which a secret may stand, rather too often
	// than too seldom: findings go to logs.
	announces = regexp.MustCompile(`password|passwd|passphrase|secret|token|credential|authorization|api-?key|x-api|x-auth|-key|anonkey|` +
		`sign-pass|hmac\(|jwt_verify\(|aes_|agent-send|^set-cookie|^(auth|key|pass|setenv|presetenv)$`)

	// userInfo is "user:password@" of a URL or an address.
	userInfo = regexp.MustCompile(`[^\s/@:"'=,(]+:[^\s/@"']+@`)
)

// mask hides what follows a word of a line that announces a secret.
func mask(line string) string {
	words := strings.Fields(line)
	keep := -1
	switch { // however the keyword is misspelt
	case len(words) < 3:
	case words[0] == "user" && (words[2] == "password" || words[2] == "insecure-password"):
		keep = 3
	case words[0] == "user", words[0] == "stats" && strings.HasPrefix(words[1], "au"),
		words[0] == "tcp-check" && strings.HasPrefix(words[1], "send"): // such as AUTH of Redis
		keep = 2
	}
	for i := 0; i < len(words) && keep < 0; i++ {
		switch {
		case !announcesSecret(words, i):
		case strings.ContainsAny(words[i], "=(:"): // such as str(token=...)
			keep = i
		case i+1 < len(words):
			keep = i + 1
		}
	}
	if keep < 0 {
		return userInfo.ReplaceAllString(line, secret+"@")
	}
	return strings.Join(append(words[:keep:keep], secret), " ")
}

// announcesSecret reports whether a secret may stand in or behind a word.
func announcesSecret(words []string, i int) bool {
	word := strings.ToLower(strings.Trim(words[i], `"'`))
	if strings.HasPrefix(word, "/") || i == 1 && word == "auth" && words[0] == "http-request" {
		return false // a path of a file, or the action "auth"
	}
	return announces.MatchString(word) || i > 0 && word == "cookie" && headerKeywords[words[i-1]]
}

// maskMessage hides in a message the words that are secret in the line that the
// message is about.
func maskMessage(message, line string) string {
	masked := mask(line)
	if masked == line {
		return message
	}
	shown := setOf(masked)
	for word := range strings.FieldsSeq(line) {
		word = strings.Trim(word, `"'`)
		if len(word) >= 3 && !shown[word] {
			message = strings.ReplaceAll(message, word, secret)
		}
	}
	return message
}
