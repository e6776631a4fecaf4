package funcs

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// failure of a function that is called outside a template; any other panic is a
// mistake.
func failureOf(f func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			failed, ok := v.(Failure)
			if !ok {
				panic(v)
			}
			err = failed.Err
		}
	}()
	f()
	return nil
}

// FuzzGlob checks a pattern against path.Match, of which all errors come before
// anything matches.
func FuzzGlob(f *testing.F) {
	f.Add("backend-*", "backend-1")
	f.Add("[a-", "")
	f.Add("zz[", "a")
	f.Add(`\`, "x")
	f.Add("**/*", "a/b")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		got, err := Glob([]string{name}, pattern, nil)
		want, wantErr := path.Match(pattern, name)
		if wantErr != nil && err == nil {
			t.Fatalf("%q: path.Match fails with %v", pattern, wantErr)
		}
		if err == nil && (len(got) == 1) != want {
			t.Fatalf("%q, %q: %v, path.Match says %v", pattern, name, got, want)
		}
		if len(name) > 0 && !strings.ContainsAny(name, `*?[]\-^/`) && utf8.ValidString(name) {
			if got, err := Glob([]string{name, name + "x"}, name+"*", nil); err != nil || len(got) != 2 {
				t.Fatalf("%q: %v, %v", name, got, err)
			}
		}
	})
}

// FuzzPath checks that a path is either refused or cut into steps, none of
// which has lost anything but what delimits steps.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"spec.rules[0].host", "a['b.c/d'].e", "[\"x\"]", "..", "a[", "a['b]", ".a", "$.b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		steps, err := parsePath(path)
		if err != nil {
			return
		}
		rest := strings.TrimPrefix(path, "$")
		for _, step := range steps {
			i := strings.Index(rest, step)
			if i < 0 || strings.Trim(rest[:i], ".[]'\"") != "" {
				t.Fatalf("%q became %q", path, steps)
			}
			rest = rest[i+len(step):]
		}
		if strings.Trim(rest, ".[]'\"") != "" {
			t.Fatalf("%q became %q", path, steps)
		}
	})
}

// FuzzDig follows any path through objects of all kinds: it ends in a value or
// in an error that is a failure.
func FuzzDig(f *testing.F) {
	for _, seed := range []string{"a.b[0].c", "a['x.y']", "S.T", "s.t", "a[-1]", "l[9]", "$.a", "a.b.c.d.e", "[0]", "m.k"} {
		f.Add(seed)
	}
	type inner struct {
		T string `json:"t"`
	}
	type outer struct {
		inner
		*strings.Reader
		S *inner         `json:"s,omitempty"`
		L []inner        `json:"l"`
		M map[string]int `json:"m"`
		A any            `json:"a"`
	}
	typed := objectFunctions()
	objects := []any{nil, 1, "s", &outer{L: []inner{{"x"}}, A: map[string]any{"b": []any{map[string]any{"c": nil}}}}, (*outer)(nil),
		map[string]any{"a": map[string]any{"b": []any{map[string]any{"c": 1.0}}, "x.y": true}}, map[int]string{1: "a"}, []any{[]string{"a"}}}
	f.Fuzz(func(t *testing.T, path string) {
		for _, obj := range objects {
			there := false
			err := failureOf(func() { there = has(obj, path) })
			v, digErr := any(nil), failureOf(func() { dig(obj, path) })
			if digErr == nil {
				v = dig(obj, path)
			}
			if err == nil && there != (digErr == nil && !isNil(reflect.ValueOf(v))) {
				t.Fatalf("%T, %q: has says %v, dig %v, %v", obj, path, there, v, digErr)
			}
			if digErr != nil && !strings.HasPrefix(digErr.Error(), "dig: ") {
				t.Fatalf("%T, %q: %v", obj, path, digErr)
			}
			for _, name := range []string{"digString", "digInt", "digList", "digMap", "digBool"} {
				args := []reflect.Value{reflect.ValueOf(&obj).Elem(), reflect.ValueOf(path)}
				_ = failureOf(func() { reflect.ValueOf(typed[name]).Call(args) })
			}
		}
	})
}

// FuzzSearch checks that a long text is searched as a short one is.
func FuzzSearch(f *testing.F) {
	for _, seed := range [][2]string{{"aaa b aab", "a*c"}, {"foo bar", `\bb|^f|o$`}, {"a\nb\n", "(?m)^b"}, {"\xffé\xe2\x82a", "^.é"}, {"a(b", `\Q(`}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, s, pattern string) {
		patterns := &regexps{compiled: map[string]*compiled{}}
		var re *compiled
		if failureOf(func() { re = patterns.get(pattern) }) != nil {
			return
		}
		if found := re.MatchString(s); found != re.MatchReader(&runes{t.Context(), s}) {
			t.Fatalf("%q, %q: %v", s, pattern, found)
		}
	})
}

// FuzzSortBy checks that a sort loses nothing, is stable, and that the two
// directions agree.
func FuzzSortBy(f *testing.F) {
	f.Add("n", int64(1), int64(2), 1.5)
	f.Add("n:desc", int64(math.MinInt64), int64(math.MaxInt64), math.Inf(1))
	f.Add("x:asc", int64(0), int64(0), math.NaN())
	f.Add("n:", int64(0), int64(0), 0.0)
	f.Add("a..b", int64(0), int64(0), 0.0)
	f.Fuzz(func(t *testing.T, by string, a, b int64, c float64) {
		list := []any{map[string]any{"n": a, "i": 0}, map[string]any{"n": b, "i": 1}, map[string]any{"n": c, "i": 2}, map[string]any{"i": 3}, map[string]any{"n": b, "i": 4}}
		var order []int
		if failureOf(func() { order = orderBy(t.Context(), list, by) }) != nil {
			return
		}
		if !slices.Equal(slices.Sorted(slices.Values(order)), []int{0, 1, 2, 3, 4}) {
			t.Fatalf("%q: %v", by, order)
		}
		if slices.Index(order, 1) > slices.Index(order, 4) {
			t.Fatalf("%q is not stable: %v", by, order)
		}
		if (by == "n" || by == "n:desc" || by == "n:asc") && order[4] != 3 {
			t.Fatalf("%q: what has nothing there is not last: %v", by, order)
		}
	})
}

// FuzzSeq checks that a sequence is bounded, ordered and stays before its end.
func FuzzSeq(f *testing.F) {
	f.Add(0, 10, 3)
	f.Add(math.MinInt, math.MaxInt, 1)
	f.Add(math.MaxInt, math.MinInt, math.MinInt)
	f.Add(5, 0, -1)
	f.Fuzz(func(t *testing.T, from, to, step int) {
		var list []int
		if failureOf(func() { list = seq(from, to, step) }) != nil {
			return
		}
		if len(list) > maxSeq {
			t.Fatalf("%d numbers", len(list))
		}
		for i, n := range list {
			if n != from+i*step || step > 0 && (n < from || n >= to) || step < 0 && (n > from || n <= to) {
				t.Fatalf("seq(%d, %d, %d) has %d", from, to, step, n)
			}
		}
	})
}

// FuzzJSON checks that what is read is written the same, and reads the same
// again.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5,null,true]}`, `"x"`, `1e400`, strings.Repeat("[", 200), `{"a":1}{`, `9223372036854775808`, `-0`, "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := decodeJSON(s)
		if err != nil {
			return
		}
		again, err := decodeJSON(toJSON(t.Context(), v))
		if err != nil || toJSON(t.Context(), again) != toJSON(t.Context(), v) { // 0e0 is written as 0
			t.Fatalf("%q: %v, then %v, %v", s, v, again, err)
		}
	})
}

// FuzzYAML checks that a document that is read is one of JSON too, and that
// writing and reading it makes no difference.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{"a: [1, 2.5, ~, yes]", "&a [*a]", bomb(10, 10), "? [a]\n: b", "a: 2001-12-14", "!!binary aGk=", "<<: {a: 1}", "- - - a", "a\n---\nb",
		"x: &x {y: 1}\nz: {<<: *x}", "!!float 1", "!!int a", "0o7", "1_000", "\t", "%YAML 9.9\n--- a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := decodeYAML(t.Context(), s)
		if err != nil {
			return
		}
		if _, err := json.Marshal(v); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		var text string
		if err := failureOf(func() { text = toYAML(t.Context(), v) }); err != nil {
			if strings.Contains(err.Error(), "deep") {
				return
			}
			t.Fatalf("%q: %v", s, err)
		}
		plain, err := decodeJSON(toJSON(t.Context(), v))
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		again, err := decodeYAML(t.Context(), text)
		if err != nil || !reflect.DeepEqual(plain, again) {
			t.Fatalf("%q: %#v\nthen %q\n%#v, %v", s, plain, text, again, err)
		}
	})
}

// bomb is a document of few bytes that stands for width to the power of levels
// values.
func bomb(levels, width int) string {
	var b strings.Builder
	b.WriteString("l0: &l0 x\n")
	for i := 1; i <= levels; i++ {
		n, before := string(rune('a'+i)), "l0"
		if i > 1 {
			before = string(rune('a' + i - 1))
		}
		b.WriteString(n + ": &" + n + " [" + strings.TrimSuffix(strings.Repeat("*"+before+", ", width), ", ") + "]\n")
	}
	return b.String()
}

// chain is a document in which each line lies in the next one.
func chain(n int) string {
	var b strings.Builder
	b.WriteString("k0: &k0 x\n")
	for i := range n {
		fmt.Fprintf(&b, "k%d: &k%[1]d [*k%d]\n", i+1, i)
	}
	return b.String()
}

func TestDocumentBounds(t *testing.T) {
	tests := []struct {
		name, doc string
		yaml      bool
		want      string
	}{
		{"aliases", bomb(10, 10), true, "excessive aliasing"},
		{"alias of itself", "&a [*a]", true, "contains itself"},
		{"deep by a chain of aliases", chain(120), true, "more than 100 deep"},
		{"many keys", strings.Repeat("a: b\n", maxKeys+1), true, "line 1: a mapping of 8193 keys, at most 8192 are allowed"},
		{"deep YAML", strings.Repeat("[", 102) + strings.Repeat("]", 102), true, "more than 100 deep"},
		{"deep JSON", strings.Repeat("[", 102) + strings.Repeat("]", 102), false, "more than 100 deep"},
		{"large YAML", strings.Repeat(" ", maxDocument+1), true, "a document of 4194305 bytes, at most 4194304 are allowed"},
		{"large JSON", strings.Repeat(" ", maxDocument+1), false, "a document of 4194305 bytes, at most 4194304 are allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			decode := decodeJSON
			if tt.yaml {
				decode = func(s string) (any, error) { return decodeYAML(t.Context(), s) }
			}
			if _, err := decode(tt.doc); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// FuzzText checks that what comes in as UTF-8 goes out as UTF-8.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"hello wörld", "ǆ", "ß", "\xff", "a/b/", "", "İ", "1.5", "0x1p-2", "Inf"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, out := range map[string]string{"basename": basename(s), "indent": indent(s, 3).(string)} {
			if utf8.ValidString(s) && !utf8.ValidString(out) {
				t.Fatalf("%s of %q is %q", name, s, out)
			}
		}
		if strings.ReplaceAll(indent(s, 3).(string), "   ", "") != strings.ReplaceAll(s, "   ", "") && !strings.Contains(s, " ") {
			t.Fatalf("indent changes %q", s)
		}
		_ = failureOf(func() { toint(s) })
		_ = failureOf(func() {
			if f := tofloat(s); math.IsNaN(f) || math.IsInf(f, 0) {
				panic(errors.New("not a number"))
			}
		})
	})
}
