package funcs

import (
	"context"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"
)

// regexps remembers compiled regular expressions, up to a bound, since
// patterns may be made from data.
type regexps struct {
	mu       sync.Mutex
	compiled map[string]*compiled
	steps    int // of all
}

type compiled struct {
	*regexp.Regexp
	source string // its canonical form, which closes what it opens
	steps  int    // of its program
}

const (
	maxProgram = 64 << 10 // steps of the program of one regular expression
	maxCompile = 1 << 20  // of all that are remembered, about 100 MB
	// quick is how many steps a search may take at once. Beyond, it reads the text
	// character by character, which is slower and ends with the context.
	quick = 4 << 20
)

func (r *regexps) get(name, pattern string) *compiled {
	checkLength(name, "regular expression", len(pattern), maxFormat)
	r.mu.Lock()
	defer r.mu.Unlock()
	if re := r.compiled[pattern]; re != nil {
		return re
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		Failf("%s: %w", name, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		Failf("%s: %w", name, err)
	}
	if n := len(program.Inst); n > maxProgram {
		Failf("%w: %s: a regular expression of %d steps, only %d can be: write fewer repetitions", ErrTooLarge, name, n, maxProgram)
	}
	re := &compiled{regexp.MustCompile(pattern), parsed.String(), len(program.Inst)}
	if r.steps += re.steps; r.steps > maxCompile {
		clear(r.compiled)
		r.steps = re.steps
	}
	r.compiled[pattern] = re
	return re
}

func (r *regexps) search(ctx context.Context, s, pattern string) bool {
	re := r.get("regex_search", pattern)
	if len(s) <= quick/re.steps {
		return re.MatchString(s)
	}
	return re.MatchReader(&runes{ctx, s})
}

// replace does what ReplaceAllString does, and counts the text as it grows.
func (r *regexps) replace(ctx context.Context, s, pattern, replacement string) string {
	re := r.get("regex_replace", pattern)
	checkText("what regex_replace reads", len(s))
	if n := len(s); n < maxPattern && n*n <= quick/re.steps { // each match may be looked for up to the end
		size := n
		for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
			size += len(replacement) + strings.Count(replacement, "$")*(m[1]-m[0])
		}
		checkText("regex_replace", size)
		return re.ReplaceAllString(s, replacement)
	}
	return re.replaceLong(ctx, s, replacement)
}

// replaceLong looks for one match after the other. One behind another sees the
// character before it: as the first one of its text.
func (re *compiled) replaceLong(ctx context.Context, s, replacement string) string {
	next, err := regexp.Compile(`\A(?s:.)(?s:.*?)(` + re.source + `)`)
	if err != nil {
		Failf("regex_replace: %w", err)
	}
	var out, made = strings.Builder{}, []byte(nil)
	for copied, at := 0, 0; ; {
		m := re.find(ctx, next, s, at)
		if m == nil {
			out.WriteString(s[copied:])
			return out.String()
		}
		out.WriteString(s[copied:m[0]])
		if m[1] > copied || m[0] == 0 { // else it is empty and follows another
			checkText("regex_replace", out.Len()+len(s)-m[1]+len(replacement)+strings.Count(replacement, "$")*(m[1]-m[0]))
			made = re.ExpandString(made[:0], replacement, s, m)
			out.Write(made)
		}
		copied = m[1]
		_, width := utf8.DecodeRuneInString(s[at:])
		if at = max(at+max(width, 1), m[1]); at > len(s) {
			out.WriteString(s[copied:])
			return out.String()
		}
	}
}

// find returns the groups of the first match from a byte on.
func (re *compiled) find(ctx context.Context, next *regexp.Regexp, s string, at int) []int {
	if at == 0 {
		return re.FindReaderSubmatchIndex(&runes{ctx, s})
	}
	_, width := utf8.DecodeLastRuneInString(s[:at])
	m := next.FindReaderSubmatchIndex(&runes{ctx, s[at-width:]})
	if m == nil {
		return nil
	}
	for i := range m {
		if m[i] >= 0 {
			m[i] += at - width
		}
	}
	return m[2:]
}

// runes are the characters of a text, up to the end of a context.
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
