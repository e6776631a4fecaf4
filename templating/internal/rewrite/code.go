package rewrite

import (
	"iter"
	"regexp"
	"strings"
)

// Code iterates over the code of a template: the text between its delimiters, without
// comments, quoted texts and raw blocks. It yields the start and the end of each piece, in
// bytes.
func Code(text string) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		c := codeReader{text: text}
		for c.next() {
			for _, p := range c.pieces {
				if !yield(p[0], p[1]) {
					return
				}
			}
		}
	}
}

// Bounds of Scriggo's input. Scriggo reads nested code by recursion, and a Go stack that
// overflows ends the whole process.
const (
	maxCode = 128 << 10 // bytes between two delimiters, without quoted texts
	maxFile = 4 << 20   // bytes of a file
)

// codeProblem says why Scriggo must not read a text, and at which byte.
type codeProblem struct {
	at      int
	message string
}

// prepare returns the text of a template for Scriggo. Scriggo has a keyword raw
// ("{% raw %}"), so no function can have this name: prepare turns calls of raw into calls
// of Raw. That keeps all positions. prepare refuses text that would end the process:
// Scriggo 0.60 reads templates in a goroutine of its own, where nothing recovers a panic.
func prepare(text string) (string, *codeProblem) {
	if len(text) > maxFile {
		return "", &codeProblem{0, "the file is too long"}
	}
	out := []byte(text)
	c := codeReader{text: text}
	for c.next() {
		for _, p := range c.pieces {
			for _, at := range callOfRaw.FindAllStringIndex(text[p[0]:p[1]], -1) {
				if start := p[0] + at[0]; start == 0 || text[start-1] != '.' && !isWord(text[start-1]) {
					out[start] = 'R'
				}
			}
		}
	}
	return string(out), c.problem
}

// Constants in effect. The reader refuses a macro or a block with a format of its own:
// Scriggo's lexer panics on some HTML tags in it.
var (
	callOfRaw = regexp.MustCompile(`\braw\(`)
	rawBlock  = regexp.MustCompile(`^\s*raw(?:\s+(\S+))?\s*$`)
	named     = regexp.MustCompile(`^\s*macro\s+\w+\s*$`)
	formatted = regexp.MustCompile(`(?s)(?:^\s*macro|\busing)\b(?:.*\W)?(html|css|js|markdown)\s*$`)
)

func leaveOutType(name string) string {
	return "leave out the type " + name + ": the text of a macro has the one that is not escaped twice"
}

// codeReader reads a template as Scriggo's lexer does, and stops where the lexer stops:
// Scriggo reports errors of syntax.
type codeReader struct {
	text    string
	at      int
	pieces  [][2]int // of the last code
	problem *codeProblem
}

// next reads to the end of the next code, and reports whether there is any.
func (c *codeReader) next() bool {
	for c.problem == nil {
		i := strings.IndexByte(c.text[c.at:], '{')
		if i < 0 || c.at+i+1 >= len(c.text) {
			return false
		}
		c.at += i
		rest := c.text[c.at:]
		switch {
		case rest[1] == '#':
			c.comment()
		case rest[1] == '{':
			c.code(2, "}}")
			return c.problem == nil
		case strings.HasPrefix(rest, "{%%"):
			c.code(3, "%%}")
			return c.problem == nil
		case rest[1] == '%':
			c.code(2, "%}")
			c.statement()
			return c.problem == nil
		default:
			c.at++
		}
	}
	return false
}

func (c *codeReader) stop(at int, message string) {
	c.at = len(c.text)
	if message != "" {
		c.problem = &codeProblem{at, message}
	}
}

// comment skips a comment and the comments nested in it.
func (c *codeReader) comment() {
	start, nested := c.at, 0
	for c.at += 2; nested >= 0; c.at++ {
		i := strings.IndexByte(c.text[c.at:], '#')
		if i < 0 {
			c.stop(start, "")
			return
		}
		c.at += i
		switch {
		case i > 0 && c.text[c.at-1] == '{':
			nested++
		case c.at+1 == len(c.text): // Scriggo reads on and panics
			c.stop(start, "comment not terminated")
			return
		case c.text[c.at+1] == '}':
			nested--
			c.at++
		}
	}
}

// code reads code up to a delimiter, and skips the delimiter.
func (c *codeReader) code(opening int, end string) {
	begin := c.at + opening
	start, braces, most := begin, 0, begin+maxCode
	c.at, c.pieces = begin, nil
	cut := func(next int) {
		c.pieces = append(c.pieces, [2]int{start, min(c.at, len(c.text))})
		start, c.at = next, next
	}
	for c.at < len(c.text) {
		rest := c.text[c.at:]
		switch ch := rest[0]; {
		case c.at > most:
			c.stop(begin, "the code is too long: use variables for its parts")
			return
		case strings.HasPrefix(rest, "//"):
			cut(c.skip("\n"))
		case strings.HasPrefix(rest, "/*"):
			cut(c.skip("*/"))
		case ch == '"' || ch == '`' || ch == '\'':
			next := c.quoted(ch)
			most += next - c.at
			cut(next)
		case end == "%%}" && strings.HasPrefix(rest, "%%") && !strings.HasPrefix(rest, end):
			c.stop(c.at, "unexpected %%, expecting %%}") // Scriggo may read beyond the file
			return
		case strings.HasPrefix(rest, end) && (ch == '%' || braces == 0 || braces == 1 && !strings.HasPrefix(rest, "}}}")):
			cut(c.at + len(end))
			return
		case ch == '%' && strings.HasPrefix(rest, "%}"): // Scriggo stops
			cut(len(c.text))
			return
		case ch == '{':
			braces++
			c.at++
		case ch == '}' && braces > 0:
			braces--
			c.at++
		default:
			c.at++
		}
	}
	cut(len(c.text))
}

// skip returns the position behind the next end.
func (c *codeReader) skip(end string) int {
	i := strings.Index(c.text[c.at:], end)
	if i < 0 {
		return len(c.text)
	}
	return c.at + i + len(end)
}

// quoted returns the position behind a string or a character.
func (c *codeReader) quoted(quote byte) int {
	for i := c.at + 1; i < len(c.text); i++ {
		switch ch := c.text[i]; {
		case ch == quote:
			return i + 1
		case ch == '\\' && quote != '`':
			i++
		case ch == '\n' && quote != '`': // Scriggo stops
			return len(c.text)
		}
	}
	return len(c.text)
}

// statement checks the last statement. If it opens a raw block, statement skips the content
// of the block.
func (c *codeReader) statement() {
	var code strings.Builder
	for _, p := range c.pieces {
		code.WriteString(c.text[p[0]:p[1]])
		code.WriteByte(' ')
	}
	if m := formatted.FindStringSubmatch(code.String()); m != nil && !named.MatchString(code.String()) {
		c.stop(c.pieces[0][0]-len("{%"), leaveOutType(m[1]))
	}
	if m := rawBlock.FindStringSubmatch(code.String()); m != nil {
		end, err := regexp.Compile(`\{%[\s\pC]*end(?:[\s\pC]+raw)?[\s\pC]*` + regexp.QuoteMeta(m[1]) + `[\s\pC]*%\}`)
		var at []int
		if err == nil { // otherwise the marker is not UTF-8; Scriggo refuses it
			at = end.FindStringIndex(c.text[c.at:])
		}
		if at != nil {
			c.at += at[0]
		} else {
			c.at = len(c.text)
		}
	}
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}
