package templating

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/open2b/scriggo/builtin"
	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// Bounds of what functions make.
const (
	maxText     = DefaultMaxOutput // bytes of a text
	maxElements = 1 << 22          // elements of a list
)

// checkText refuses a text that would be too large, before it is made.
func checkText(what string, size int) {
	if size > maxText || size < 0 {
		failf("%w: %s would have %d bytes, only %d can be", ErrTooLarge, what, size, maxText)
	}
}

// standard returns the functions that every template has; doc.go lists them.
// A new set for each engine, because the compiled regular expressions are
// remembered in it.
func standard() native.Declarations {
	all := native.Declarations{}
	for _, family := range []native.Declarations{
		textFunctions(), patternFunctions(), conversionFunctions(), encodingFunctions(),
		listFunctions(), objectFunctions(), controlFunctions(), snippetFunctions(),
	} {
		maps.Copy(all, family)
	}
	return all
}

func textFunctions() native.Declarations {
	return native.Declarations{
		"lower":      builtin.ToLower,
		"upper":      builtin.ToUpper,
		"title":      title,
		"trim":       strings.TrimSpace,
		"strip":      strings.TrimSpace,
		"trimPrefix": builtin.TrimPrefix,
		"trimSuffix": builtin.TrimSuffix,
		"split":      split,
		"join":       join,
		"replace":    replace,
		"hasPrefix":  builtin.HasPrefix,
		"hasSuffix":  builtin.HasSuffix,
		"includes":   strings.Contains,
		"indent":     indent,
		"sprintf":    sprintf,
		"abbreviate": builtin.Abbreviate,
		"basename":   basename,
	}
}

func patternFunctions() native.Declarations {
	patterns := &regexps{compiled: map[string]*regexp.Regexp{}}
	return native.Declarations{
		"regex_search":   patterns.search,
		"regex_replace":  patterns.replace,
		"sanitize_regex": regexp.QuoteMeta,
		"glob_match":     globMatch,
	}
}

func conversionFunctions() native.Declarations {
	return native.Declarations{
		"tostring": tostring,
		"toint":    toint,
		"tofloat":  tofloat,
		"ceil":     ceil,
		"floor":    floor,
		"abs":      builtin.Abs,
		"min":      builtin.Min,
		"max":      builtin.Max,
		"seq":      seq,
	}
}

func encodingFunctions() native.Declarations {
	return native.Declarations{
		"b64encode":   builtin.Base64,
		"b64decode":   b64decode,
		"to_json":     toJSON,
		"toJson":      toJSON,
		"from_json":   fromJSON,
		"to_yaml":     toYAML,
		"from_yaml":   fromYAML,
		"md5":         builtin.Md5,
		"sha1":        builtin.Sha1,
		"sha256":      builtin.Sha256,
		"hmac_sha256": hmacSHA256,
		"crc32":       crc32Hex,
	}
}

func listFunctions() native.Declarations {
	return native.Declarations{
		"sort":       sorted[string],
		"unique":     unique,
		"reverse":    reversed,
		"sort_by":    sortBy,
		"order_by":   orderBy,
		"unique_by":  uniqueBy,
		"selectattr": selectattr,
		"rejectattr": rejectattr,
		"map_by":     mapBy,
		"group_by":   groupBy,
		"index_by":   indexBy,
		"count_by":   countBy,
	}
}

func objectFunctions() native.Declarations {
	return native.Declarations{
		"dig":        dig,
		"digString":  digString,
		"digInt":     digInt,
		"digFloat":   digFloat,
		"digBool":    digBool,
		"digList":    digList,
		"digMap":     digMap,
		"has":        has,
		"keys":       keys,
		"sortedKeys": sortedKeys,
		"merge":      merge,
		"coalesce":   coalesce,
	}
}

func controlFunctions() native.Declarations {
	return native.Declarations{
		"first_seen": firstSeen,
		// The way out, which templates call raw (see allowRaw), and the way to stop.
		"Raw":   func(s string) Raw { return Raw(s) },
		"debug": debugNothing,
		"fail":  func(message string) string { failf("%s", message); return "" },
	}
}

// indent puts n spaces before each line that is not empty. What a macro wrote
// stays what a macro wrote.
func indent(text any, n int) any {
	if n < 0 || n > maxIndent {
		failf("indent: %d spaces wanted, only 0 to %d can be", n, maxIndent)
	}
	pad := strings.Repeat(" ", n)
	shift := func(s string) string {
		checkText("indent", len(s)+n*(strings.Count(s, "\n")+1))
		var b strings.Builder
		for line := range strings.Lines(s) {
			if strings.TrimRight(line, "\r\n") != "" {
				b.WriteString(pad)
			}
			b.WriteString(line)
		}
		return b.String()
	}
	switch text := text.(type) {
	case native.JSON:
		return native.JSON(shift(string(text)))
	case Raw:
		return Raw(shift(string(text)))
	case string:
		return shift(text)
	}
	failf("indent: text wanted, not a %T", text)
	return nil
}

const maxIndent = 1024

// title writes the first letter of each word as a capital. Words are parted by
// all that is neither letter, digit, apostrophe nor underscore.
func title(s string) string { return builtin.CapitalizeAll(s) }

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
	if list, ok := list.([]string); ok {
		return joinTexts(list, sep)
	}
	items := listOf("join", list)
	parts := make([]string, len(items))
	for i, item := range items {
		s, err := place.Text(item)
		if err != nil {
			failf("join: element %d: %w", i, err)
		}
		parts[i] = s
	}
	return joinTexts(parts, sep)
}

func joinTexts(parts []string, sep string) string {
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

// split cuts a text wherever the separator stands.
func split(s, sep string) []string {
	if n := strings.Count(s, sep); n >= maxElements {
		failf("%w: split: more than %d parts", ErrTooLarge, maxElements)
	}
	return strings.Split(s, sep)
}

// maxWidth bounds all widths and precisions of a format together.
const maxWidth = 1 << 20

// Constants in effect: what stands between the % and the letter of a verb, and
// the numbers in it. Those in brackets are of arguments.
var (
	verb   = regexp.MustCompile(`%([-+# 0-9.*\[\]]*)(?s:.)`)
	widths = regexp.MustCompile(`\[\d*\]|\d+|\*`)
)

// sprintf is fmt.Sprintf. A width can make a long text of a short format.
func sprintf(format string, a ...any) string {
	sum := 0
	for _, v := range verb.FindAllStringSubmatch(format, -1) {
		for _, w := range widths.FindAllString(v[1], -1) {
			if sum += width(w, a); sum > maxWidth {
				failf("sprintf: widths of more than %d characters", maxWidth)
			}
		}
	}
	return fmt.Sprintf(format, a...)
}

// width is what a width or a precision of a format may be. That of "*" is one
// of the arguments, of which fmt takes up to a million: eight of those fit.
func width(w string, a []any) (most int) {
	if w[0] == '[' {
		return 0
	}
	if w != "*" {
		n, err := strconv.Atoi(w)
		if err != nil || n > maxWidth { // or too large for an int
			return maxWidth + 1
		}
		return n
	}
	for _, v := range a {
		if rv := reflect.ValueOf(v); rv.CanInt() {
			most = max(most, int(min(rv.Int(), maxWidth)), -int(max(rv.Int(), -maxWidth)))
		} else if rv.CanUint() {
			most = max(most, int(min(rv.Uint(), maxWidth)))
		}
	}
	return min(most, maxWidth/8)
}
