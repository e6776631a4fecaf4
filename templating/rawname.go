package templating

import "strings"

// To Scriggo raw is a keyword ("{% raw %}"), so a function cannot have that
// name. allowRaw writes calls of raw in a template's code as calls of Raw: a
// change of one byte for one byte, so that no position moves.
func allowRaw(src string) string {
	if !strings.Contains(src, "raw") {
		return src
	}
	out := []byte(src)
	for i := 0; i+1 < len(src); {
		if src[i] != '{' {
			i++
			continue
		}
		switch end := ""; {
		case strings.HasPrefix(src[i:], "{#"):
			i = skipTo(src, i+2, "#}")
		case strings.HasPrefix(src[i:], "{%%"):
			i = renameRaw(out, src, i+3, "%%}")
		case strings.HasPrefix(src[i:], "{%"):
			end = rawBlockEnd(src[i:])
			if end != "" {
				i = skipTo(src, skipTo(src, i, "%}"), end)
				continue
			}
			i = renameRaw(out, src, i+2, "%}")
		case strings.HasPrefix(src[i:], "{{"):
			i = renameRaw(out, src, i+2, "}}")
		default:
			i++
		}
	}
	return string(out)
}

func skipTo(src string, i int, end string) int {
	if j := strings.Index(src[i:], end); j >= 0 {
		return i + j + len(end)
	}
	return len(src)
}

// rawBlockEnd returns what ends the raw block that a statement opens: its end
// statement as far as it is certain. It is empty for other statements.
func rawBlockEnd(statement string) string {
	head, _, ok := strings.Cut(statement, "%}")
	if words := strings.Fields(strings.TrimPrefix(head, "{%")); ok && len(words) > 0 && words[0] == "raw" {
		if len(words) > 1 {
			return "raw " + words[1] + " %}"
		}
		return "{% end"
	}
	return ""
}

// renameRaw goes over code up to end, and over its string literals.
func renameRaw(out []byte, src string, i int, end string) int {
	for i < len(src) {
		switch c := src[i]; {
		case c == '"' || c == '`' || c == '\'':
			for i++; i < len(src) && src[i] != c; i++ {
				if src[i] == '\\' && c != '`' {
					i++
				}
			}
			i++
		case strings.HasPrefix(src[i:], end):
			return i + len(end)
		case isWord(c):
			start := i
			for i < len(src) && isWord(src[i]) {
				i++
			}
			afterDot := start > 0 && src[start-1] == '.'
			if src[start:i] == "raw" && !afterDot && strings.HasPrefix(src[i:], "(") {
				out[start] = 'R'
			}
		default:
			i++
		}
	}
	return i
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}
