package funcs

import (
	"context"
	"io"
	"regexp"
	"regexp/syntax"
	"sync"
	"unicode/utf8"

	"github.com/hapticsdk/haptic/templating/internal/place"
	"github.com/hapticsdk/haptic/templating/regex"
)

// regexps remembers compiled regular expressions up to a bound, because templates may make
// patterns from data.
type regexps struct {
	mu       sync.Mutex
	compiled map[string]*compiled
	steps    int // of all
}

type compiled struct {
	*regexp.Regexp
	steps int // of its program
}

const (
	maxProgram = 64 << 10 // steps in the program of one regular expression
	maxCompile = 1 << 20  // steps of all remembered programs, about 100 MB
	// quick bounds the steps of a search in one go. A longer search reads the text
	// character by character: it is slower, and ends with the context.
	quick = 4 << 20
)

func (r *regexps) get(pattern string) *compiled {
	checkLength("regex_search", "regular expression", len(pattern), maxFormat)
	r.mu.Lock()
	defer r.mu.Unlock()
	if re := r.compiled[pattern]; re != nil {
		return re
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		Failf("regex_search: %w", err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		Failf("regex_search: %w", err)
	}
	if n := len(program.Inst); n > maxProgram {
		Failf("%w: regex_search: a regular expression of %d steps, at most %d are allowed: write fewer repetitions", ErrTooLarge, n, maxProgram)
	}
	re := &compiled{regexp.MustCompile(pattern), len(program.Inst)}
	r.steps += re.steps
	if r.steps > maxCompile {
		clear(r.compiled)
		r.steps = re.steps
	}
	r.compiled[pattern] = re
	return re
}

func (r *regexps) search(ctx context.Context, s, pattern string) bool {
	re := r.get(pattern)
	if len(s) <= quick/re.steps {
		return re.MatchString(s)
	}
	return re.MatchReader(&runes{ctx, s})
}

// runes reads the characters of a text until a context ends.
type runes struct {
	ctx context.Context
	s   string
}

func (r *runes) ReadRune() (c rune, size int, err error) {
	going(r.ctx)
	if r.s == "" {
		return 0, 0, io.EOF
	}
	c, size = utf8.DecodeRuneInString(r.s)
	r.s = r.s[size:]
	return c, size, nil
}

// checkedRegex returns an expression as one of the template's own. Text beside it joins all of
// its alternatives.
func checkedRegex(s string) place.Regex {
	is, err := regex.Check(s)
	switch {
	case err != nil:
		Failf("regex: %w", err)
	case is.Longest < regex.Subject:
		Failf("regex: pattern %q can take HAProxy long on a text of more than %d bytes: use fewer repeats, or begin it with ^, as in regex(\"^\" + s)", s, is.Longest)
	case is.Alternates:
		s = "(?:" + s + ")"
	}
	return place.Regex(s)
}
