// Package funcs has the functions that every template has, but for those that know
// of the render.
package funcs

import (
	"fmt"
	"maps"
	"math"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/open2b/scriggo/builtin"
	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

const maxText = 64 << 20 // bytes of a text that a function makes

// checkText refuses a text that would be too large, before it is made.
func checkText(what string, size int) {
	if size > maxText || size < 0 {
		Failf("%w: %s would have %d bytes, only %d can be", ErrTooLarge, what, size, maxText)
	}
}

// Standard returns the functions by name; docs/functions.md lists
// them. A new set for each engine, because the compiled regular expressions are
// remembered in it.
func Standard() native.Declarations {
	patterns := &regexps{compiled: map[string]*regexp.Regexp{}}
	all := native.Declarations{
		"lower": builtin.ToLower, "upper": builtin.ToUpper, "title": builtin.CapitalizeAll,
		"trim": strings.TrimSpace, "strip": strings.TrimSpace,
		"trimPrefix": builtin.TrimPrefix, "trimSuffix": builtin.TrimSuffix,
		"hasPrefix": builtin.HasPrefix, "hasSuffix": builtin.HasSuffix, "includes": strings.Contains,
		"split": strings.Split, "join": join, "replace": replace, "indent": indent, "sprintf": sprintf, "basename": basename,

		"regex_search": patterns.search, "regex_replace": patterns.replace, "sanitize_regex": regexp.QuoteMeta, "glob_match": globMatch,

		"tostring": tostring, "toint": toint, "tofloat": tofloat, "seq": seq,
		"ceil":  func(v any) int { return rounded("ceil", v, math.Ceil) },
		"floor": func(v any) int { return rounded("floor", v, math.Floor) },
		"abs":   builtin.Abs, "min": builtin.Min, "max": builtin.Max,

		"b64encode": builtin.Base64, "b64decode": b64decode, "to_json": toJSON, "toJson": toJSON, "from_json": fromJSON,
		"to_yaml": toYAML, "from_yaml": fromYAML, "md5": builtin.Md5, "sha1": builtin.Sha1, "sha256": builtin.Sha256,

		// The way out, which templates call raw, and the way to stop.
		"Raw":  func(s string) place.Raw { return place.Raw(s) },
		"fail": func(message string) string { Failf("%s", message); return "" },
	}
	maps.Copy(all, listFunctions())
	maps.Copy(all, objectFunctions())
	return all
}

// indent puts n spaces before each line that is not empty. What a macro wrote
// stays what a macro wrote.
func indent(text any, n int) any {
	const most = 1024
	if n < 0 || n > most {
		Failf("indent: %d spaces wanted, only 0 to %d can be", n, most)
	}
	shift := func(s string) string {
		checkText("indent", len(s)+n*(strings.Count(s, "\n")+1))
		var b strings.Builder
		for line := range strings.Lines(s) {
			if strings.TrimRight(line, "\r\n") != "" {
				b.WriteString(strings.Repeat(" ", n))
			}
			b.WriteString(line)
		}
		return b.String()
	}
	switch text := text.(type) {
	case native.JSON:
		return native.JSON(shift(string(text)))
	case place.Raw:
		return place.Raw(shift(string(text)))
	case string:
		return shift(text)
	}
	Failf("indent: text wanted, not a %T", text)
	return nil
}

// basename returns what is behind the last slash, "" for "".
func basename(s string) string {
	if s == "" {
		return ""
	}
	return path.Base(s)
}

// join writes the elements of a list, which may be all that tostring takes,
// with a separator between them.
func join(list any, sep string) string {
	parts, ok := list.([]string)
	if !ok {
		for i, item := range listOf("join", list) {
			s, err := place.Text(item)
			if err != nil {
				Failf("join: element %d: %w", i, err)
			}
			parts = append(parts, s)
		}
	}
	size := len(parts) * len(sep)
	for _, part := range parts {
		size += len(part)
	}
	checkText("join", size)
	return strings.Join(parts, sep)
}

// replace writes another text for each that is found.
func replace(s, old, new string) string {
	checkText("replace", len(s)+strings.Count(s, old)*max(len(new)-len(old), 0))
	return strings.ReplaceAll(s, old, new)
}

const maxWidth = 1 << 20 // of all widths and precisions of a format together

// Constants in effect: what stands between the % and the letter of a verb, and the
// numbers in it. Those in brackets are of arguments.
var (
	verb   = regexp.MustCompile(`%([-+# 0-9.*\[\]]*)(?s:.)`)
	widths = regexp.MustCompile(`\[\d*\]|\d+|\*`)
)

// sprintf is fmt.Sprintf, without "*". A width can make a long text of a short
// format.
func sprintf(format string, a ...any) string {
	sum := 0
	for _, v := range verb.FindAllStringSubmatch(format, -1) {
		for _, w := range widths.FindAllString(v[1], -1) {
			if w[0] == '[' {
				continue
			}
			n, err := strconv.Atoi(w) // or too large for an int
			if w == "*" {
				Failf("sprintf: %s: a width must stand in the format", v[0])
			}
			if sum += n; err != nil || sum > maxWidth {
				Failf("sprintf: widths of more than %d characters", maxWidth)
			}
		}
	}
	return fmt.Sprintf(format, a...)
}

// regexps remembers compiled regular expressions, up to a bound, since
// patterns may be made from data.
type regexps struct {
	mu       sync.Mutex
	compiled map[string]*regexp.Regexp
}

func (r *regexps) get(name, pattern string) *regexp.Regexp {
	const most = 1024
	r.mu.Lock()
	defer r.mu.Unlock()
	if re := r.compiled[pattern]; re != nil {
		return re
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		Failf("%s: %w", name, err)
	}
	if len(r.compiled) >= most {
		clear(r.compiled)
	}
	r.compiled[pattern] = re
	return re
}

func (r *regexps) search(s, pattern string) bool {
	return r.get("regex_search", pattern).MatchString(s)
}

func (r *regexps) replace(s, pattern, replacement string) string {
	re, size := r.get("regex_replace", pattern), len(s)
	for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
		size += len(replacement) + strings.Count(replacement, "$")*(m[1]-m[0])
	}
	checkText("regex_replace", size)
	return re.ReplaceAllString(s, replacement)
}

// globMatch returns those strings of a list that match a pattern of path.Match:
// "*" and "?" do not match a slash. One string stands for a list of one.
func globMatch(list any, pattern string) []string {
	items, ok := list.([]string)
	if s, one := list.(string); one {
		items, ok = []string{s}, true
	}
	if !ok {
		for i, item := range listOf("glob_match", list) {
			s, isString := item.(string)
			if !isString {
				Failf("glob_match: element %d is a %T, not a string", i, item)
			}
			items = append(items, s)
		}
	}
	matched, err := Glob(items, pattern)
	if err != nil {
		Failf("glob_match: %w", err)
	}
	return matched
}

// Glob returns the items that match. It checks the whole pattern even if there is
// nothing to match: path.Match reports a malformed one only as far as it reads it.
func Glob(items []string, pattern string) (matched []string, err error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("pattern %s: %w", place.Shorten(pattern), err)
	}
	return slices.DeleteFunc(slices.Clone(items), func(item string) bool {
		ok, _ := path.Match(pattern, item)
		return !ok
	}), nil
}

// deref follows pointers and interfaces; the zero Value is for nil.
func deref(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}
