package cases

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/internal/phrase"
	"github.com/hapticsdk/haptic/reconcile"
)

// Result is the outcome of a [Case]. It has no value of a Secret among the fixtures.
type Result struct {
	Name       string            `json:"name"`
	File       string            `json:"file"`
	Line       int               `json:"line"`
	Error      string            `json:"error,omitempty"` // why the case could not be run
	Assertions []AssertionResult `json:"assertions"`
	Took       time.Duration     `json:"took"` // in nanoseconds
}

// AssertionResult is the outcome of an [Assertion].
type AssertionResult struct {
	Assertion   string `json:"assertion"`
	Description string `json:"description,omitempty"`
	Line        int    `json:"line"`
	Problem     string `json:"problem,omitempty"` // empty if it holds

	// Template is the template line that wrote the line that HAProxy refuses, if that is the
	// Problem and the template line is known.
	Template reconcile.TemplateLine `json:"template,omitzero"`
}

// Passed reports whether all assertions hold.
func (r *Result) Passed() bool {
	return r.Error == "" && !slices.ContainsFunc(r.Assertions, func(a AssertionResult) bool { return a.Problem != "" })
}

// Problems lists everything that does not hold, each with file and line.
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

// String returns one line for a case that passed, and more for others.
func (r *Result) String() string {
	if r.Passed() {
		return fmt.Sprintf("ok    %s\n", r.Name)
	}
	problems := strings.TrimRight(r.Problems(), "\n")
	return fmt.Sprintf("FAIL  %s\n    %s\n", r.Name, strings.ReplaceAll(problems, "\n", "\n    "))
}

// Results are the results of several cases. Programs can read them as JSON.
type Results []Result

// Passed reports whether all cases passed.
func (r Results) Passed() bool { return r.failed() == 0 }

func (r Results) failed() (n int) {
	for i := range r {
		if !r[i].Passed() {
			n++
		}
	}
	return n
}

// String describes every case and ends with a count.
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
	return fmt.Sprintf("%s: %d passed, %d failed", phrase.Count(len(r), "case"), len(r)-failed, failed)
}

// Failed says that cases failed.
type Failed struct {
	Results Results // of all cases
}

// Error describes the cases that failed.
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

// hidden stands in place of a secret.
const hidden = "(secret)"

// mask hides secrets.
type mask func(string) string

// maskOf hides the values in the Secrets of a case: as a whole, in base64, by line, in
// quotes, and shortened as in an error of a template.
func maskOf(c *Case) mask {
	const least, shortened = 4, 40 // in bytes
	var values []string
	for _, obj := range c.Fixtures {
		secret, ok := obj.(*corev1.Secret)
		if !ok {
			continue
		}
		for _, data := range secret.Data {
			values = append(values, base64.StdEncoding.EncodeToString(data), string(data[:min(len(data), shortened)]))
			for line := range strings.Lines(string(data)) {
				line = strings.TrimSpace(line)
				values = append(values, line, line[:min(len(line), shortened)], strings.Trim(strconv.Quote(line), `"`))
			}
		}
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // the first that fits is taken
	var pairs []string
	for _, value := range values {
		if len(value) >= least {
			pairs = append(pairs, value, hidden)
		}
	}
	return strings.NewReplacer(pairs...).Replace
}

// shown returns a line that is fit for a terminal and a log.
func (m mask) shown(line string) string {
	line = strings.TrimSpace(m(line))
	if line == "" || !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(line)
	}
	return line
}

// differing shows where two texts begin to differ, and some lines of both.
func (m mask) differing(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	first := 0
	for first < len(w) && first < len(g) && w[first] == g[first] {
		first++
	}
	for len(w) > first && len(g) > first && w[len(w)-1] == g[len(g)-1] {
		w, g = w[:len(w)-1], g[:len(g)-1]
	}
	s := fmt.Sprintf("line %d (- wanted, + is)", first+1)
	for _, side := range []struct {
		sign  string
		lines []string
	}{{"-", w[first:]}, {"+", g[first:]}} {
		for _, line := range side.lines[:min(len(side.lines), 3)] {
			s += "\n" + side.sign + " " + m.shown(line)
		}
	}
	return s
}
