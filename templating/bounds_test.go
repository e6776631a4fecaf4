package templating_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open2b/scriggo/native"
	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// hostile is a template, or a value in one, that would take the memory or the time of
// the whole process.
type hostile struct {
	name, template string
	doc            any
	refused        string // in the error, "" where the context ends the render
}

const (
	grown = "{% var x = `aaaaaaaaaaaaaaaa` %}{% for i := 0; i < 21; i++ %}{% x = x + x %}{% end %}" // 32 MiB
	dag   = "{% var a = []any{1, 2, 3} %}{% for i := 0; i < 40; i++ %}{% a = []any{a, a} %}{% end %}"
	cycle = "{% var a = []any{1} %}{% a[0] = a %}"
)

func hostileCalls() []hostile {
	twice := strings.Repeat("%[1]s", 32)
	return []hostile{
		{"sprintf", grown + "{{ len(sprintf(`" + twice + "`, x)) }}", nil, "at most 67108864 are allowed"},
		{"sprintf of lists in lists", dag + "{{ len(sprintf(`%v`, a)) }}", nil, "sprintf: argument 1: a value of type []interface {} has no text"},
		{"sprintf of a list in itself", cycle + "{{ len(sprintf(`%v`, a)) }}", nil, "has no text"},
		{"sprintf of a list with a width", "{{ len(sprintf(`%1000d`, seq(100000))) }}", nil, "has no text"},
		{"to_json of lists in lists", dag + "{{ len(to_json(a)) }}", nil, "to_json: a value of more than 67108864 bytes"},
		{"to_json of a list in itself", cycle + "{{ len(to_json(a)) }}", nil, "more than 1000 deep"},
		{"to_yaml of lists in lists", dag + "{{ len(to_yaml(a)) }}", nil, "to_yaml: a value of more than 8388608 bytes"},
		{"to_json of aliases", "{{ len(to_json(from_yaml(x))) }}", "a: &a {}\nl: [" + strings.Repeat("*a,", 1<<20) + "]", "at most 524288 are allowed"},
		{"many keys", "{{ len(to_json(from_yaml(x))) }}", strings.Repeat("a", 20) + ":\n" + keysOfYAML(250_000), "a mapping of 250001 keys, at most 8192 are allowed"},
		{"many empty lists", "{{ len(to_json(from_yaml(x))) }}", strings.Repeat("-\n", 2<<20), "at most 524288 are allowed"},
		{"aliases with texts", "{{ len(to_json(from_yaml(x))) }}", "a: &a [" + strings.Repeat("b,", 1000) + "]\nl: [" + strings.Repeat("*a,", 10000) + "]", "excessive aliasing"},
		{"split", grown + "{{ len(split(x, ``)) }}", nil, "at most 1048576 are allowed"},
		{"regex_search", grown + "{{ regex_search(x, `(a|aa|a*b){1,300}c`) }}", nil, ""},
		{"large expressions", "{% for i := 0; true; i++ %}{% var _ = regex_search(`a`, sprintf(`(%sx%d){900}`, x, i)) %}{% end %}", strings.Repeat("abcdefgh", 100), "a regular expression of"},
		{"sort of long texts", grown + "{% var y = x + `a` %}{% var l = []string{} %}{% for i := 0; i < 20000; i++ %}{% l = append(l, x, y[:len(x)]) %}{% end %}{{ len(sort(l)) }}", nil, ""},
		{"selectattr in a list", "{% var l = []any{} %}{% for i := 0; i < 100000; i++ %}{% l = append(l, map[string]any{`a`: i + 1}) %}{% end %}{{ len(selectattr(l, `a`, `in`, seq(100000, 200000))) }}", nil, ""},
		{"glob_match", grown + "{{ len(glob_match(x, `*` + x[:1000000] + `b`)) }}", nil, "at most 4096 are allowed"},
		{"nested seq", "{% for _, i := range seq(1048576) %}{% for _, j := range seq(1048576) %}{% end %}{% end %}", nil, ""},
		{"make", "{% var a = make([]int, 1<<n) %}{{ len(a) }}", nil, "make: a length of 34359738368, 0 to 65536 is allowed"},
		{"make of a map", "{% var a = make(map[int]int, 1<<n) %}{{ len(a) }}", nil, "0 to 65536 is allowed"},
		{"make of a channel", "{% var a = make(chan int, 1<<n) %}{{ len(a) }}", nil, "0 to 65536 is allowed"},
		{"make with room", "{% var a = make([]int, 0, 1<<n) %}{{ len(a) }}", nil, "0 to 65536 is allowed"},
		{"make of empty elements", "{% var a = make([]struct{}, 1<<40) %}{{ len(reverse(a)) }}", nil, "0 to 65536 is allowed"},
		{"array", "{% var a [1<<34]int %}{{ len(a) }}", nil, "arrays are not available"},
		{"array of a function", "{% var f = func() (a [1<<34]int) { return } %}{{ len(f()) }}", nil, "arrays are not available"},
		{"key of a list", "{% var a = []int{1<<34: 1} %}{{ len(a) }}", nil, "a list cannot have keys"},
		{"key of a list in a list", "{% var a = map[string][][]int{`a`: {{}, {1<<34: 1}}} %}{{ len(a) }}", nil, "a list cannot have keys"},
		{"key of a list of a type", "{% type L []int %}{% var a = L{1<<34: 1} %}{{ len(a) }}", nil, "a type of lists cannot be declared"},
		{"x = x + x", "{% x = `xxxxxxxxxxxxxxxx` %}{% for true %}{% x = x + x %}{% end %}", nil, "a text would have 134217728 bytes, at most 67108864 are allowed"},
		{"x += x", "{% x = `xxxxxxxxxxxxxxxx` %}{% for true %}{% x += x %}{% end %}", nil, "a text would have 134217728 bytes, at most 67108864 are allowed"},
		{"a field", "{% type T struct{A string} %}{% var s = T{`xxxxxxxxxxxxxxxx`} %}{% for true %}{% s.A = s.A + s.A %}{% end %}", nil, "a text would have 134217728 bytes, at most 67108864 are allowed"},
		{"texts in a map", "{% var m = map[int]string{} %}{% for i := 0; true; i++ %}{% m[i] = sprintf(`%s%d`, x, i) %}{% end %}", strings.Repeat("x", 1<<20), "more than 536870912 bytes of memory"},
		{"a function that puts texts together", "{% var f func(s string) string %}{% f = func(s string) string { return f(s + s) } %}{{ f(`x`) }}", nil, "output too large"},
		{"append to itself", "{% var l = []int{1} %}{% for true %}{% l = append(l, l...) %}{% end %}", nil, "a list would have"},
		{"lists of lists", "{% var l = [][]int{} %}{% for true %}{% l = append(l, seq(100000)) %}{% end %}", nil, "more than 536870912 bytes of memory"},
		{"constants", constants(30), nil, "a constant text of"},
		{"fail", grown + "{{ fail(x) }}", nil, "aaaa"},
	}
}

func constants(n int) string {
	var b strings.Builder
	b.WriteString("{% const c0 = `aaaaaaaaaaaaaaaa` %}")
	for i := range n {
		fmt.Fprintf(&b, "{%% const c%d = c%d + c%[2]d %%}", i+1, i)
	}
	return b.String() + "{{ len(c" + strconv.Itoa(n) + ") }}"
}

func keysOfYAML(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat("k", 1+i%7) + time.Duration(i).String() + ":\n")
	}
	return b.String()
}

// TestHostileCalls renders what would not end, or not before the memory does.
func TestHostileCalls(t *testing.T) { checkHostile(t, hostileCalls()) }

func checkHostile(t *testing.T, tests []hostile) {
	const (
		end   = 500 * time.Millisecond
		after = 2500 * time.Millisecond // a second, on a machine that does other things as well
		most  = 1500 << 20              // twice the bound, and what is doubled before it is seen
	)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, _ := tt.doc.(string)
			e, err := templating.Compile(files("a.cfg", "\n"+tt.template+"{{ n }}"), &templating.Options{Vars: map[string]any{"x": "", "n": 0}})
			if err != nil {
				require.NotEmpty(t, tt.refused)
				require.ErrorContains(t, err, tt.refused)
				return
			}
			limit := end
			if tt.refused != "" {
				limit = 20 * time.Second // the bound is to end it
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			peak, start := peakOfHeap(), time.Now()
			_, err = e.Render(ctx, "a.cfg", map[string]any{"x": doc, "n": 35})
			require.LessOrEqual(t, time.Since(start), limit+after, "it took")
			require.LessOrEqual(t, peak(), uint64(most))
			var at *templating.Error
			switch {
			case tt.refused == "" && errors.Is(err, context.DeadlineExceeded):
			case tt.refused == "" && err == nil: // it is fast now
			case !errors.As(err, &at) || at.Line != 2 || tt.refused == "" || !strings.Contains(at.Message, tt.refused):
				t.Errorf("got %.300v, want %q at line 2", err, tt.refused)
			case len(at.Message) > 5000:
				t.Errorf("a message of %d bytes", len(at.Message))
			}
		})
	}
}

// TestMemoryOfShortLines prints lines without end, with a render that knows where each
// comes from: what is remembered of a line counts.
func TestMemoryOfShortLines(t *testing.T) {
	const most = 16 << 20
	e := compile(t, files("a.cfg", "{% for true %}{{ x }}\n{% end %}"), &templating.Options{Vars: map[string]any{"x": 0}, MaxMemory: most, MaxOutput: 1 << 30})
	peak := peakOfHeap()
	_, err := e.Render(t.Context(), "a.cfg", map[string]any{"x": 1 << 60})
	var at *templating.Error
	if !errors.As(err, &at) || at.Line == 0 || !errors.Is(err, templating.ErrTooLarge) || !strings.Contains(err.Error(), "more than 16777216 bytes of memory") {
		t.Errorf("got %v", err)
	}
	require.LessOrEqual(t, peak(), uint64(5*most))
}

// TestLongLineOfValues has a million values, each of which may be the first word.
func TestLongLineOfValues(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	e := compile(t, files("a.cfg", "{% for _, i := range seq(300000) %}{{ x }}{% end %}\n{% for _, i := range seq(3) %}{{ x }}{% end %}"), &templating.Options{Vars: map[string]any{"x": ""}})
	if out, err := e.Render(ctx, "a.cfg", map[string]any{"x": "x"}); err != nil || len(out) != 300004 {
		t.Errorf("got %d bytes, %v", len(out), err)
	}
}

// TestItemsTogether renders items one by one, each of which fits.
func TestItemsTogether(t *testing.T) {
	e := compile(t, files("a.cfg", "{% n = 1 %}{{ x }}"), &templating.Options{Vars: map[string]any{"x": "", "n": 0}, MaxOutput: 1000})
	item := strings.Repeat("x", 400)
	require.ErrorIs(t, errOf(e.RenderEach(t.Context(), "a.cfg", "x", []any{item, item, item}, map[string]any{"n": 0})), templating.ErrTooLarge)
}

// TestDeepTemplates compiles what Scriggo would take minutes for, or the whole stack.
func TestDeepTemplates(t *testing.T) {
	nest := func(n int, open, shut string) string {
		return strings.Repeat(open, n) + strings.Repeat(shut, n)
	}
	for name, template := range map[string]string{
		"if":          nest(60_000, "{% if true %}", "{% end %}"),
		"else if":     "{% if true %}" + strings.Repeat("{% else if true %}", 60_000) + "{% end %}",
		"for":         nest(60_000, "{% for true %}", "{% end %}"),
		"in one code": "{%% " + nest(12_000, "if true {", "}") + " %%}",
		"not":         "{{ " + strings.Repeat("!", 100_000) + "true }}",
		"sum":         "{{ " + strings.Repeat("1+", 60_000) + "1 }}",
		"types":       "{% var a " + strings.Repeat("[]", 60_000) + "int %}",
		"functions":   "{{ " + nest(3_000, "func() int { return ", " }()") + " }}",
		"places":      nest(60, "{% for true %}a '{{ x }} b \"{{ x }}", "\" ' {% end %} x\n"),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := templating.Compile(files("a.cfg", template), &templating.Options{Vars: map[string]any{"x": ""}})
			var at *templating.Error
			if !errors.As(err, &at) || at.Line == 0 || !strings.Contains(at.Message, "only 1000") && !strings.Contains(at.Message, "more than 1000 deep") && !strings.Contains(at.Message, "more than 524288 steps") {
				t.Errorf("got %.300v", err)
			}
			require.LessOrEqual(t, time.Since(start), 20*time.Second, "it took")
		})
	}
}

// TestMakeIsMake has lengths that are right.
func TestMakeIsMake(t *testing.T) {
	got, err := render(t, 3, "a.cfg", "{% var n = x.(int) %}{% var i8 int8 = 2 %}{{ len(make([]string, n)) }} {{ cap(make([]int, 1, n)) }} {{ len(make([][]struct{}, i8)) }} "+
		"{{ len(make(map[string]struct{}, 10)) }} {{ cap(make(chan bool, 1e1)) }} {% type T struct{A int} %}{{ len(make([]*T, 1)) }}{{ len(make([]T, 1)) }} "+
		"{{ len([]map[int]string{{8080: `a`}}) }} {{ map[string]T{`a`: {A: 7}}[`a`].A }}")
	check(t, got, err, "3 3 2 0 10 11 1 7", "")
	_, err = render(t, 3, "a.cfg", "{% var n = -1 %}{{ len(make([]int, n)) }}")
	check(t, "", err, "", "make: a length of -1, 0 to")
}

// peakOfHeap begins to watch the heap. The function that it returns ends that, and
// returns by how many bytes the heap grew at most.
func peakOfHeap() func() uint64 {
	heap := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	runtime.GC()
	before, stop, peak := heap(), make(chan struct{}), make(chan uint64)
	go func() {
		most := before
		for tick := time.NewTicker(2 * time.Millisecond); ; {
			most = max(most, heap())
			select {
			case <-tick.C:
			case <-stop:
				tick.Stop()
				peak <- most - before
				return
			}
		}
	}()
	return func() uint64 { close(stop); return <-peak }
}

// TestMemoryOfOthers is no fault of a render: what else the process takes meanwhile is
// not taken again when it is rendered once more.
func TestMemoryOfOthers(t *testing.T) {
	var others [][]byte
	calls := 0
	globals := map[string]any{"slow": func(env native.Env) string {
		if calls++; calls == 1 {
			for env.Context().Err() == nil && len(others) < 512 {
				others = append(others, make([]byte, 1<<20))
				<-time.After(time.Millisecond)
			}
		}
		return "done"
	}}
	e := compile(t, files("haproxy.cfg", "# {{ slow() }}\n"), &templating.Options{Globals: globals, MaxMemory: 32 << 20})
	got, err := e.Render(t.Context(), "haproxy.cfg", nil)
	require.NoError(t, err)
	require.Equal(t, "# done\n", got)
	runtime.KeepAlive(others)
}

// TestPrintsWithoutEnd: the bounds of the output end a render, with the line where it is,
// and before it took much of the memory. With the default bounds that takes 3 to 8
// seconds of a processor, and 270 MiB.
func TestPrintsWithoutEnd(t *testing.T) {
	const most = 1 << 20
	for name, template := range map[string]string{
		"values":   "{% for true %}{{ x }}\n{% end %}",
		"one line": "{% for true %}abc {{ x }} def {% end %}",
		"text":     "{% for true %}\n0123456789{% end %}",
		"in macro": "{% macro A() %}{% for true %}{{ 123456789 }}{% end %}{% end macro %}\n{{ A() }}",
		"macro":    "{% macro m(x int) %}{{ x }}\n{% end %}{% for true %}{{ m(x) }}{% end %}",
	} {
		t.Run(name, func(t *testing.T) {
			e := compile(t, files("a.cfg", template), &templating.Options{Vars: map[string]any{"x": 0}, MaxOutput: most})
			peak := peakOfHeap()
			_, err := e.Render(t.Context(), "a.cfg", map[string]any{"x": 1})
			var at *templating.Error
			if !errors.Is(err, templating.ErrTooLarge) || !errors.As(err, &at) || at.Line == 0 || strings.Contains(err.Error(), "memory") {
				t.Errorf("got %v", err)
			}
			require.LessOrEqual(t, peak(), uint64(64*most))
		})
	}
}

func TestContextStopsALoop(t *testing.T) {
	e := compile(t, files("a.cfg", "{% for true %}{% end %}", "b.cfg", "{% macro A() %}{% for true %}{% end %}{% end macro %}{% var a = A() %}{{ a }}",
		"c.cfg", "{% macro A() %}0123456789{% end macro %}\n{% for true %}{% var _ = A() %}{% end %}"), nil)
	for _, name := range e.Entries() {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		require.ErrorIs(t, errOf(e.Render(ctx, name, nil)), context.DeadlineExceeded, name)
		cancel()
		require.Error(t, errOf(e.Render(ctx, name, nil)), "%s: rendered with a context that is done", name)
	}
}

func TestConcurrentRenders(t *testing.T) {
	e := compile(t, files("a.cfg", "{% list[0] = x %}{% for _, s := range list %}{{ s }} {% end %}{% if x == `7` %}{{ fail(x) }}{% end %}"), &templating.Options{
		Globals: map[string]any{"list": [2]string{"a", "b"}}, Vars: map[string]any{"x": ""}})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			x := fmt.Sprint(i)
			out, err := e.Render(t.Context(), "a.cfg", map[string]any{"x": x})
			if (i == 7) != (err != nil) || err == nil && out != x+" b " {
				t.Errorf("%s: got %q, %v", x, out, err)
			}
		})
	}
	wg.Wait()
}
