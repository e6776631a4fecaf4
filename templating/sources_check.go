package templating

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the code in one file. Scriggo has none: it goes down expressions
// and blocks by recursion, in time and memory that grow with the square of the
// depth and more, and a Go stack that overflows ends the whole process.
const (
	maxCodeDepth = 200  // brackets in each other, and blocks; an else counts as one more
	maxCodeChain = 2000 // words, literals and operators without a comma, a semicolon or the end of a line
)

// codeProblem is why Scriggo must not see a text, and at which byte.
type codeProblem struct {
	at      int
	message string
}

// checkCode looks for what ends the process, or takes it for minutes, when
// Scriggo 0.60 compiles it: its lexer runs in a goroutine of its own, where
// nothing recovers a panic. It reads code as that lexer does and stops where
// that one stops: errors of syntax are Scriggo's to tell.
func checkCode(text string) *codeProblem {
	c := &codeChecker{text: text}
	for c.problem == nil && c.at < len(text) {
		next := strings.IndexByte(text[c.at:], '{')
		if next < 0 || c.at+next+1 == len(text) {
			break
		}
		c.at += next
		switch text[c.at+1] {
		case '#':
			c.comment()
		case '{':
			c.at += 2
			c.code("}}")
		case '%':
			c.at += 2
			if strings.HasPrefix(text[c.at:], "%") {
				c.at++
				c.code("%%}")
			} else if c.code("%}") {
				c.statement()
			}
		default:
			c.at++
		}
	}
	return c.problem
}

type codeChecker struct {
	text    string
	at      int
	problem *codeProblem

	blocks []int // open blocks, each with what it adds to the depth
	depth  int   // of blocks

	// Of the code that was read last.
	chains []int // tokens since the last separator, by open bracket
	words  []codeWord
	closes bool // the last token may end a statement
}

// codeWord is an identifier or a keyword.
type codeWord struct {
	text   string
	at     int
	token  int  // its number in the code, from 0
	follow bool // something stands behind it
}

// stop ends the check, with a problem or, where the message is empty, because
// Scriggo stops there too.
func (c *codeChecker) stop(at int, message string) bool {
	if message != "" && c.problem == nil {
		c.problem = &codeProblem{at, message}
	}
	c.at = len(c.text)
	return false
}

// comment skips a comment, which may have others in it.
func (c *codeChecker) comment() {
	start, nested := c.at, 0
	for c.at += 2; nested >= 0; c.at++ {
		i := strings.IndexByte(c.text[c.at:], '#')
		if i < 0 {
			c.stop(start, "")
			return
		}
		before := c.at + i - 1
		c.at += i
		switch {
		case i > 0 && c.text[before] == '{':
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

// code reads code to its end and reports whether there is one.
func (c *codeChecker) code(end string) bool {
	c.chains, c.words, c.closes = []int{0}, nil, false
	braces := 0
	for tokens := 0; c.at < len(c.text); {
		start, ch := c.at, c.text[c.at]
		switch {
		case ch == '\n':
			if c.closes {
				c.separate()
			}
			c.at++
			continue
		case ch == ' ' || ch == '\t' || ch == '\r':
			c.at++
			continue
		case strings.HasPrefix(c.text[c.at:], "//"):
			if !c.skip("\n") {
				return false
			}
			c.at-- // the line feed counts
			continue
		case strings.HasPrefix(c.text[c.at:], "/*"):
			c.at += 2
			if !c.skip("*/") {
				return false
			}
			continue
		case ch == '%' && end == "%%}" && strings.HasPrefix(c.text[c.at:], "%%"):
			if !strings.HasPrefix(c.text[c.at:], end) { // Scriggo takes it for the end, and may read beyond the file
				return c.stop(start, "unexpected %%, expecting %%}")
			}
			c.at += len(end)
			return true
		case ch == '%' && strings.HasPrefix(c.text[c.at:], "%}"):
			c.at += 2
			return end == "%}" || c.stop(start, "")
		case ch == '}' && end == "}}" && strings.HasPrefix(c.text[c.at:], "}}") &&
			(braces == 0 || braces == 1 && !strings.HasPrefix(c.text[c.at:], "}}}")):
			c.at += 2
			return true
		case ch == '{':
			braces++
		case ch == '}' && braces > 0:
			braces--
		}
		if n := len(c.words); n > 0 {
			c.words[n-1].follow = true
		}
		if !c.token(tokens) {
			return false
		}
		tokens++
	}
	return false
}

// token reads one token. It counts it, and how deep it lies.
func (c *codeChecker) token(number int) bool {
	start, ch := c.at, c.text[c.at]
	last := len(c.chains) - 1
	if c.chains[last]++; c.chains[last] > maxCodeChain {
		return c.stop(start, "the statement is too long: use variables for its parts")
	}
	c.closes = false
	switch {
	case ch == '"' || ch == '`' || ch == '\'':
		c.closes = true
		return c.literal(ch)
	case strings.IndexByte("([{", ch) >= 0:
		c.chains = append(c.chains, 0)
		if c.depth+len(c.chains) > maxCodeDepth {
			return c.stop(start, "brackets and blocks lie too deep in each other")
		}
	case strings.IndexByte(")]}", ch) >= 0:
		c.closes = true
		c.chains = c.chains[:max(last, 1)]
	case ch == ',' || ch == ';':
		c.separate()
	default:
		n := 0
		for n = wordSize(c.text[c.at:]); n > 0; n = wordSize(c.text[c.at:]) {
			c.at += n
		}
		if c.at > start {
			c.closes = true
			c.words = append(c.words, codeWord{text: c.text[start:c.at], at: start, token: number})
			return true
		}
	}
	c.at++
	return true
}

// separate begins a new statement or element in the same brackets.
func (c *codeChecker) separate() {
	c.chains[len(c.chains)-1] = 0
	c.closes = false
}

// wordSize is the size of a character of an identifier or a number, or 0.
func wordSize(s string) int {
	r, size := utf8.DecodeRuneInString(s)
	if r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
		return size
	}
	return 0
}

// literal skips a string or a character.
func (c *codeChecker) literal(quote byte) bool {
	for c.at++; c.at < len(c.text); c.at++ {
		switch ch := c.text[c.at]; {
		case ch == quote:
			c.at++
			return true
		case ch == '\\' && quote != '`':
			c.at++
		case ch == '\n' && quote != '`':
			return c.stop(c.at, "")
		}
	}
	return c.stop(c.at, "")
}

// skip goes behind the next end.
func (c *codeChecker) skip(end string) bool {
	i := strings.Index(c.text[c.at:], end)
	if i < 0 {
		return c.stop(c.at, "")
	}
	c.at += i + len(end)
	return true
}

// statement follows the blocks that statements open and close, and skips the
// content of raw ones.
func (c *codeChecker) statement() {
	if len(c.words) == 0 {
		return
	}
	first := c.words[0]
	opens := false
	for _, w := range c.words {
		opens = opens || w.text == "using" && w.token > 0
	}
	if first.token == 0 {
		switch first.text {
		case "if", "for", "switch", "select", "macro":
			opens = true
		case "else":
			if n := len(c.blocks); n > 0 {
				c.blocks[n-1]++
				c.depth++
			}
		case "end":
			if n := len(c.blocks); n > 0 {
				c.depth -= c.blocks[n-1]
				c.blocks = c.blocks[:n-1]
			}
		case "raw":
			c.raw()
		}
	}
	if opens {
		c.format(first)
		c.blocks = append(c.blocks, 1)
		c.depth++
	}
	if c.depth > maxCodeDepth {
		c.stop(first.at, "brackets and blocks lie too deep in each other")
	}
}

// format refuses a macro or a using block with a format of its own: where the
// lexer reads tags of HTML, it panics on some. The transformer would refuse it
// anyway.
func (c *codeChecker) format(first codeWord) {
	w := c.words[len(c.words)-1]
	if w.follow || w.token < 2 && first.text == "macro" || w.text == "json" {
		return
	}
	if formatTypes[w.text] {
		c.stop(w.at, leaveOutType(w.text))
	}
}

// raw skips the content of a raw block.
func (c *codeChecker) raw() {
	marker := ""
	for _, w := range c.words[1:] {
		if w.text == "end" {
			return
		}
		if w.token == 1 {
			marker = w.text
		}
	}
	for i := c.at; ; i += 2 {
		next := strings.Index(c.text[i:], "{%")
		if next < 0 {
			c.at = len(c.text)
			return
		}
		if i += next; endsRaw(c.text[i+2:], marker) {
			c.at = i
			return
		}
	}
}

// endsRaw reports whether a statement ends a raw block: "end", perhaps "raw",
// and the marker.
func endsRaw(statement, marker string) bool {
	rest, ok := strings.CutPrefix(trimRawSpace(statement), "end")
	if !ok {
		return false
	}
	if after := trimRawSpace(rest); after != rest {
		if rest = after; strings.HasPrefix(rest, "raw") {
			rest = trimRawSpace(rest[len("raw"):])
		}
	}
	rest, ok = strings.CutPrefix(rest, marker)
	return ok && strings.HasPrefix(trimRawSpace(rest), "%}")
}

// trimRawSpace takes away what Scriggo takes for space there: also what cannot
// be printed.
func trimRawSpace(s string) string {
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		if r != ' ' && unicode.IsGraphic(r) && (r != utf8.RuneError || size != 1) {
			break
		}
		s = s[size:]
	}
	return s
}

func leaveOutType(name string) string {
	return "leave out the type " + name + ": the text of a macro has the one that is not escaped twice"
}
