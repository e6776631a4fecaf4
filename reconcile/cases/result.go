package cases

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

// Result is what became of a [Case]. It holds no secret of the fixtures and
// nothing of a certificate.
type Result struct {
	Name       string            `json:"name"`
	File       string            `json:"file"`
	Line       int               `json:"line"`
	Error      string            `json:"error,omitempty"` // why the case could not be run
	Assertions []AssertionResult `json:"assertions"`
	Took       time.Duration     `json:"took"` // in nanoseconds
}

// AssertionResult is what became of an [Assertion].
type AssertionResult struct {
	Assertion   string `json:"assertion"`
	Description string `json:"description,omitempty"`
	Line        int    `json:"line"`
	Problem     string `json:"problem,omitempty"` // empty if it holds
}

// Passed reports whether all assertions hold.
func (r *Result) Passed() bool {
	return r.Error == "" && !slices.ContainsFunc(r.Assertions, func(a AssertionResult) bool { return a.Problem != "" })
}

// Problems tells everything that does not hold, each with file and line.
func (r *Result) Problems() string {
	var b strings.Builder
	write := func(line int, text string) {
		fmt.Fprintf(&b, "%s:%d: %s\n", r.File, line, strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    "))
	}
	if r.Error != "" {
		write(r.Line, r.Error)
	}
	for _, a := range r.Assertions {
		if a.Problem == "" {
			continue
		}
		what := a.Assertion
		if a.Description != "" {
			what = a.Description + " (" + what + ")"
		}
		write(a.Line, what+": "+a.Problem)
	}
	return b.String()
}

// String is one line for a case that passed, and more for others.
func (r *Result) String() string {
	if r.Passed() {
		return fmt.Sprintf("ok    %s\n", r.Name)
	}
	problems := strings.TrimRight(r.Problems(), "\n")
	return fmt.Sprintf("FAIL  %s\n    %s\n", r.Name, strings.ReplaceAll(problems, "\n", "\n    "))
}

// Results are those of several cases. As JSON they are for machines.
type Results []Result

// Passed reports whether all cases did.
func (r Results) Passed() bool { return r.failed() == 0 }

func (r Results) failed() (n int) {
	for i := range r {
		if !r[i].Passed() {
			n++
		}
	}
	return n
}

// String tells of every case and ends with a count.
func (r Results) String() string {
	var b strings.Builder
	for i := range r {
		b.WriteString(r[i].String())
	}
	b.WriteString(r.summary() + "\n")
	return b.String()
}

func (r Results) summary() string {
	failed := r.failed()
	return fmt.Sprintf("%d cases: %d passed, %d failed", len(r), len(r)-failed, failed)
}

// Failed says that cases failed.
type Failed struct {
	Results Results // of all cases
}

// Error tells of those that failed.
func (e *Failed) Error() string {
	var b strings.Builder
	b.WriteString(e.Results.summary())
	for i := range e.Results {
		if r := &e.Results[i]; !r.Passed() {
			b.WriteString("\n" + strings.TrimRight(r.String(), "\n"))
		}
	}
	return b.String()
}

// caseMask hides what must not be printed.
type caseMask struct{ known *strings.Replacer }

// newCaseMask knows the values in the Secrets of a case, as a whole and by line.
func newCaseMask(c *Case) *caseMask {
	values := map[string]bool{}
	add := func(value string) {
		if value = strings.TrimSpace(value); len(value) >= minSecret {
			values[value] = true
			values[base64.StdEncoding.EncodeToString([]byte(value))] = true
			quoted := strconv.Quote(value)
			values[quoted[1:len(quoted)-1]] = true
			if len(value) > quotedAtMost { // as an error of a template shortens it
				values[value[:quotedAtMost]] = true
			}
		}
	}
	for _, obj := range c.Fixtures {
		secret, ok := obj.(*corev1.Secret)
		if !ok {
			continue
		}
		for _, value := range secret.Data {
			add(string(value))
			for line := range strings.Lines(string(value)) {
				if !strings.HasPrefix(line, "-----") {
					add(line)
				}
			}
		}
	}
	longest := make([]string, 0, len(values))
	for value := range values {
		longest = append(longest, value)
	}
	slices.SortFunc(longest, func(a, b string) int { // the first that fits is taken
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	var pairs []string
	for _, value := range longest {
		pairs = append(pairs, value, "(secret)")
	}
	return &caseMask{strings.NewReplacer(pairs...)}
}

// quotedAtMost is how much of a value package templating quotes in an error.
const quotedAtMost = 40

// minSecret is how long a value must be to be looked for.
const minSecret = 4

var pemBlock = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]+-----.*?(-----END [A-Z0-9 ]+-----|$)`)

func (m *caseMask) text(s string) string {
	return m.known.Replace(pemBlock.ReplaceAllString(s, "(secret)"))
}

// announced is a word behind which a line of a configuration holds a secret. A
// header or an option may be named so without holding one: rather too many.
var announced = regexp.MustCompile(`(?i)((?:pass(?:word|wd|phrase)|insecure-password|secret|token|credential|authorization|api-?key|cookie-key|bearer|pwd|setenv|auth)[^\s]*\s+)\S.*`)

// maxShown is how much of a line is shown, in bytes.
const maxShown = 200

// shown is a line, fit for a terminal and a log.
func (m *caseMask) shown(line string) string {
	line = announced.ReplaceAllString(m.text(strings.TrimSpace(line)), "${1}(secret)")
	if len(line) > maxShown {
		cut := maxShown
		for cut > 0 && !utf8.RuneStart(line[cut]) {
			cut--
		}
		line = line[:cut] + "..."
	}
	if line == "" || !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(line)
	}
	return line
}

// differing shows where two texts part, and some lines of both.
func (m *caseMask) differing(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	first := 0
	for first < len(w) && first < len(g) && w[first] == g[first] {
		first++
	}
	end := 0
	for end < len(w)-first && end < len(g)-first && w[len(w)-1-end] == g[len(g)-1-end] {
		end++
	}
	s := fmt.Sprintf("line %d (- wanted, + is)", first+1)
	list := func(sign string, lines []string) {
		for i, line := range lines {
			if i == 5 {
				s += fmt.Sprintf("\n%s ... %d more", sign, len(lines)-i)
				return
			}
			s += "\n" + sign + " " + m.shown(line)
		}
	}
	list("-", w[first:len(w)-end])
	list("+", g[first:len(g)-end])
	return s
}

// maxNearest bounds in how many lines the nearest is looked for.
const maxNearest = 20_000

// nearestLine returns where the line begins that has most in common with a
// pattern: runs of three characters.
func nearestLine(text, pattern string) (at int, ok bool) {
	grams := map[string]bool{}
	for i := 0; i+3 <= len(pattern); i++ {
		grams[pattern[i:i+3]] = true
	}
	best, begin, n := 0, 0, 0
	for line := range strings.Lines(text) {
		score, seen := 0, map[string]bool{}
		for i := 0; i+3 <= min(len(line), 1000); i++ {
			if g := line[i : i+3]; grams[g] && !seen[g] {
				seen[g] = true
				score++
			}
		}
		if score > best {
			best, at = score, begin
		}
		begin += len(line)
		if n++; n == maxNearest {
			break
		}
	}
	return at, best*3 >= len(grams) && best > 0
}
