// Package funcs has the standard functions of templates, except those that depend on the
// render.
package funcs

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/open2b/scriggo/builtin"
	"github.com/open2b/scriggo/native"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// Standard returns the functions by name; docs/functions.md lists them. Each engine has its
// own set, which remembers compiled regular expressions.
func Standard() native.Declarations {
	patterns := &regexps{compiled: map[string]*compiled{}}
	all := native.Declarations{
		"lower": bounded("lower", builtin.ToLower), "upper": bounded("upper", builtin.ToUpper), "title": bounded("title", builtin.CapitalizeAll),
		"trim": strings.TrimSpace, "strip": strings.TrimSpace,
		"trimPrefix": builtin.TrimPrefix, "trimSuffix": builtin.TrimSuffix,
		"hasPrefix": builtin.HasPrefix, "hasSuffix": builtin.HasSuffix,
		"split": split, "replace": replace, "indent": indent, "basename": bounded("basename", basename),
		"join":    func(env native.Env, list any, sep string) string { return join(env.Context(), list, sep) },
		"sprintf": sprintf,

		"regex_search":   func(env native.Env, s, pattern string) bool { return patterns.search(env.Context(), s, pattern) },
		"sanitize_regex": bounded("sanitize_regex", regexp.QuoteMeta),
		"regex":          checkedRegex,
		"glob_match": func(env native.Env, list any, pattern string) []string {
			return globMatch(env.Context(), list, pattern)
		},

		"tostring": tostring, "toint": toint, "tofloat": tofloat, "seq": seq,
		"ceil": func(v any) int { return rounded("ceil", v, math.Ceil) },
		"min":  builtin.Min, "max": builtin.Max,

		"b64encode": bounded("b64encode", builtin.Base64), "b64decode": bounded("b64decode", b64decode),
		"to_json":   func(env native.Env, v any) string { return toJSON(env.Context(), v) },
		"toJson":    func(env native.Env, v any) string { return toJSON(env.Context(), v) },
		"to_yaml":   func(env native.Env, v any) string { return toYAML(env.Context(), v) },
		"from_yaml": func(env native.Env, s string) any { return fromYAML(env.Context(), s) },
		"from_json": fromJSON,
		"sha256":    bounded("sha256", builtin.Sha256),

		// Templates call Raw as raw: see prepare in package rewrite.
		"Raw":  func(s string) place.Raw { return place.Raw(s) },
		"fail": func(message string) string { Failf("%s", message[:min(len(message), maxMessage)]); return "" },
	}
	maps.Copy(all, listFunctions())
	maps.Copy(all, objectFunctions())
	return all
}

// bounded returns f with a bound on the length of its text.
func bounded(name string, f func(string) string) func(string) string {
	return func(s string) string {
		checkText("what "+name+" reads", len(s))
		return f(s)
	}
}

func split(s, sep string) []string {
	checkList("split", strings.Count(s, sep)+1)
	return strings.Split(s, sep)
}

// indent adds n spaces before each line that is not empty. It keeps the type, so the text
// of a macro is not escaped again.
func indent(text any, n int) any {
	const most = 1024
	if n < 0 || n > most {
		Failf("indent: %d spaces, 0 to %d is allowed", n, most)
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

// basename returns path.Base, but "" for "".
func basename(s string) string {
	if s == "" {
		return ""
	}
	return path.Base(s)
}

// join writes the elements of a list with a separator between them. It converts them like
// tostring.
func join(ctx context.Context, list any, sep string) string {
	parts, ok := list.([]string)
	if !ok {
		for i, item := range listOf(ctx, "join", list) {
			s, err := place.Text(item)
			if err != nil {
				Failf("join: element %d: %w", i, err)
			}
			parts = append(parts, s)
		}
	}
	checkList("join", len(parts))
	size := len(parts) * len(sep)
	for _, part := range parts {
		size += len(part)
	}
	checkText("join", size)
	return strings.Join(parts, sep)
}

// replace replaces all occurrences of old.
func replace(s, old, new string) string {
	checkText("replace", len(s))
	checkText("replace", len(s)+strings.Count(s, old)*max(len(new)-len(old), 0))
	return strings.ReplaceAll(s, old, new)
}

// Constants in effect: a verb of a format, and a width that makes a short text long.
var (
	verb = regexp.MustCompile(`%[-+# 0-9.*\[\]]*(?s:.)`)
	wide = regexp.MustCompile(`\*|[1-9]\d{4}`)
)

// sprintf is fmt.Sprintf with arguments like those of tostring, and widths of up to four
// digits.
func sprintf(format string, a ...any) string {
	checkLength("sprintf", "format", len(format), maxFormat)
	for _, v := range verb.FindAllString(format, -1) {
		if wide.MatchString(v) {
			Failf("sprintf: %s: a width of up to four digits must stand in the format", place.Shorten(v))
		}
	}
	most, args := 10_400, slices.Clone(a) // most of one verb: a number with a width
	for i, arg := range a {
		text, err := place.Text(arg)
		if err != nil {
			Failf("sprintf: argument %d: %w", i+1, err)
		}
		size := len(text)
		if strings.ContainsAny(format, "qxX#") { // they write up to five bytes for one
			size *= 5
		}
		most = max(most, size)
		args[i] = text
		if deref(reflect.ValueOf(arg)).Kind() <= reflect.Float64 {
			args[i] = deref(reflect.ValueOf(arg)).Interface()
		}
	}
	checkText("sprintf", len(format)+(strings.Count(format, "%")+len(a))*most)
	return fmt.Sprintf(format, args...)
}

// globMatch returns the strings of a list that match a pattern of path.Match: "*" and "?"
// do not match a slash. A single string counts as a list.
func globMatch(ctx context.Context, list any, pattern string) []string {
	checkLength("glob_match", "pattern", len(pattern), maxPattern)
	items, ok := list.([]string)
	if s, one := list.(string); one {
		items, ok = []string{s}, true
	}
	if !ok {
		for i, item := range listOf(ctx, "glob_match", list) {
			s, isString := item.(string)
			if !isString {
				Failf("glob_match: element %d is a %T, not a string", i, item)
			}
			items = append(items, s)
		}
	}
	checkList("glob_match", len(items))
	matched, err := Glob(items, pattern, func(item string) {
		checkLength("glob_match", "text", len(item), maxFormat)
		going(ctx)
	})
	if err != nil {
		Failf("glob_match: %w", err)
	}
	return matched
}

// Glob returns the items that match. It checks the whole pattern even without items:
// path.Match itself may miss an error behind the point where it stops. Glob calls before,
// unless nil, with each item.
func Glob(items []string, pattern string, before func(item string)) (matched []string, err error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("pattern %s: %w", place.Shorten(pattern), err)
	}
	return slices.DeleteFunc(slices.Clone(items), func(item string) bool {
		if before != nil {
			before(item)
		}
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
