package templating

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/open2b/scriggo/builtin"
	"github.com/open2b/scriggo/native"
)

// standard returns the functions that every template has; doc.go lists them.
// A new set for each engine, because the compiled regular expressions are
// remembered in it.
func standard() native.Declarations {
	patterns := &regexps{compiled: map[string]*regexp.Regexp{}}
	return native.Declarations{
		// Text.
		"lower":     builtin.ToLower,
		"upper":     builtin.ToUpper,
		"trim":      strings.TrimSpace,
		"split":     builtin.Split,
		"join":      builtin.Join,
		"replace":   builtin.ReplaceAll,
		"hasPrefix": builtin.HasPrefix,
		"hasSuffix": builtin.HasSuffix,
		"includes":  strings.Contains,
		"indent":    indent,
		"sprintf":   builtin.Sprintf,
		"abbreviate": func(s string, n int) string {
			return builtin.Abbreviate(s, n)
		},
		// Regular expressions.
		"regex_search":   patterns.search,
		"regex_replace":  patterns.replace,
		"sanitize_regex": regexp.QuoteMeta,
		// Encodings and hashes.
		"b64encode": builtin.Base64,
		"b64decode": b64decode,
		"toJson":    toJSON,
		"sha256":    builtin.Sha256,
		// Collections and objects.
		"sort":       sorted[string],
		"unique":     unique,
		"coalesce":   coalesce,
		"dig":        dig,
		"digString":  digString,
		"digInt":     digInt,
		"digList":    digList,
		"digMap":     digMap,
		"has":        has,
		"sortedKeys": sortedKeys,
		// The way out, which templates call raw (see allowRaw), and the way to stop.
		"Raw":  func(s string) Raw { return Raw(s) },
		"fail": func(message string) string { failf("%s", message); return "" },
	}
}

// indent puts n spaces before each line that is not empty. What a macro wrote
// stays what a macro wrote.
func indent(text any, n int) any {
	pad := strings.Repeat(" ", max(n, 0))
	shift := func(s string) string {
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

// regexps remembers compiled regular expressions, up to a bound, since
// patterns may be made from data.
type regexps struct {
	mu       sync.Mutex
	compiled map[string]*regexp.Regexp
}

const maxRegexps = 1024

func (r *regexps) get(pattern string) *regexp.Regexp {
	r.mu.Lock()
	defer r.mu.Unlock()
	if re := r.compiled[pattern]; re != nil {
		return re
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		panic(failure{err})
	}
	if len(r.compiled) >= maxRegexps {
		clear(r.compiled)
	}
	r.compiled[pattern] = re
	return re
}

func (r *regexps) search(s, pattern string) bool { return r.get(pattern).MatchString(s) }

func (r *regexps) replace(s, pattern, replacement string) string {
	return r.get(pattern).ReplaceAllString(s, replacement)
}

func b64decode(s string) string {
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s))
	if err != nil {
		failf("b64decode: %w", err)
	}
	return string(b)
}

func toJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		failf("toJson: %w", err)
	}
	return string(b)
}

func sorted[T cmp.Ordered](list []T) []T { return slices.Sorted(slices.Values(list)) }

// unique keeps the first of equal strings.
func unique(list []string) []string {
	seen := make(map[string]bool, len(list))
	var out []string
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// coalesce returns the first argument that is neither nil nor the zero value
// of its type, with pointers followed; nil if there is none.
func coalesce(values ...any) any {
	for _, v := range values {
		rv := reflect.ValueOf(v)
		for rv.IsValid() && rv.Kind() == reflect.Pointer {
			rv = rv.Elem()
		}
		if rv.IsValid() && !rv.IsZero() && !(hasLen(rv) && rv.Len() == 0) {
			return v
		}
	}
	return nil
}

func hasLen(v reflect.Value) bool { return v.Kind() == reflect.Slice || v.Kind() == reflect.Map }

// sortedKeys returns the keys of a map with string keys in order.
func sortedKeys(m any) []string {
	rv := reflect.ValueOf(m)
	if !rv.IsValid() {
		return nil
	}
	if rv.Kind() != reflect.Map || rv.Type().Key().Kind() != reflect.String {
		failf("sortedKeys: a map with string keys wanted, not a %T", m)
	}
	keys := make([]string, 0, rv.Len())
	for _, k := range rv.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys
}
