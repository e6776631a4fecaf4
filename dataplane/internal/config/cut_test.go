package config

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pieces are what texts are made of; some are refused.
var pieces = []string{
	"global\n", "  maxconn 5\n", "defaults\n", "defaults from x\n", "defaults x\n", "defaults from\n", "  mode http\n", "backend a\n", "backend b\n",
	"frontend f\n", "# comment\n", "  # comment\n", "\n", "  server s 192.0.2.1:80\n", "\"backend\" c\n", "listen l", "\n", "# ", "x\r\n", "\t.if x\n",
	"crt-store\n", "traces\n", "unnamed_defaults_1\n", "defaults unnamed_defaults_1\n", "back", "end d\n",
}

func randomText(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.Intn(30) {
		b.WriteString(pieces[rng.Intn(len(pieces))])
	}
	if rng.Intn(20) == 0 {
		b.WriteString("bad \x00 \n")
	}
	if rng.Intn(20) > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// change changes a text at a few lines.
func randomChange(rng *rand.Rand, text string) string {
	lines := strings.SplitAfter(text, "\n")
	for range rng.Intn(3) {
		i := rng.Intn(len(lines))
		switch rng.Intn(3) {
		case 0:
			lines = slices.Delete(lines, i, i+1)
		case 1:
			lines = slices.Insert(lines, i, pieces[rng.Intn(len(pieces))])
		default:
			lines[i] = pieces[rng.Intn(len(pieces))]
		}
		if len(lines) == 0 {
			return ""
		}
	}
	return strings.Join(lines, "")
}

// randomCut cuts a text at random places, or at the borders of its sections.
func randomCut(rng *rand.Rand, text string) (parts []string) {
	at := 0
	for at < len(text) {
		next := at + 1 + rng.Intn(20)
		if rng.Intn(3) > 0 {
			next = at + strings.IndexByte(text[at:]+"\n", '\n') + 1
		}
		next = min(next, len(text))
		parts = append(parts, text[at:next])
		at = next
		if rng.Intn(10) == 0 {
			parts = append(parts, "")
		}
	}
	return parts
}

func sectionTexts(x *Index) (parts []string) {
	for _, s := range x.List {
		parts = append(parts, s.Text)
	}
	return parts
}

func requireSame(t *testing.T, want, got *Config) {
	t.Helper()
	require.Equal(t, want.Main(), got.Main())
	require.Equal(t, want.Hash(), got.Hash())
	require.Equal(t, want.Size(), len(got.Main()))
	require.Equal(t, want.Index().LineCount(), strings.Count(got.Main(), "\n"))
	require.True(t, want.SameMain(got))
	x, y := want.Index(), got.Index()
	require.Equal(t, len(x.List), len(y.List))
	require.Equal(t, x.defaults, y.defaults)
	require.Equal(t, x.Conditional(), y.Conditional())
	for i, s := range x.List {
		o := y.List[i]
		require.True(t, s.same(o) && s.Kind == o.Kind && s.comments == o.comments && s.lines == o.lines && s.ends == o.ends, "%+v\n%+v", s, o)
		require.Equal(t, x.Line(i), y.Line(i))
		require.Equal(t, s.Header(), o.Header())
		require.Equal(t, s.Lines(), o.Lines())
		require.Equal(t, s.Mentions(), o.Mentions())
	}
	require.Equal(t, want.Files, got.Files)
	for _, s := range x.Numbered() {
		require.Equal(t, s.Text, y.Find(s.Key()).Text)
	}
}

// checkCut makes a configuration in all ways, which give the same.
func checkCut(t *testing.T, last *Config, text string, parts []string, files []File) *Config {
	t.Helper()
	want, wantErr := New(text, files...)
	for _, from := range []*Config{last, Empty()} {
		got, err := NewFrom(from, parts, files...)
		require.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(err))
		if err == nil {
			requireSame(t, want, got)
		}
		requireSame(t, New0(text, files), from.With(text).WithFiles(files))
	}
	if wantErr != nil {
		return last
	}
	got, err := NewFrom(last, sectionTexts(want.Index()), files...)
	require.NoError(t, err)
	requireSame(t, want, got)
	return got
}

// New0 makes a configuration that need not be right.
func New0(text string, files []File) *Config {
	c := build(nil, newIndex(cut(nil, []string{text})), slices.Clone(files))
	return c
}

func TestNewFromIsNew(t *testing.T) {
	t.Parallel()
	for seed := range int64(1000) {
		rng := rand.New(rand.NewSource(seed))
		last, text := Empty(), randomText(rng)
		for range 5 {
			var files []File
			for _, name := range []string{"a.map", "b.map", "c.map"} {
				if rng.Intn(3) > 0 {
					files = append(files, File{Map, name, fmt.Appendf(nil, "k %d\n", rng.Intn(3))})
				}
			}
			last = checkCut(t, last, text, randomCut(rng, text), files)
			if t.Failed() {
				t.Fatalf("seed %d: %q", seed, text)
			}
			text = randomChange(rng, text)
		}
	}
}

func FuzzNewFrom(f *testing.F) {
	f.Add("global\n# c\nbackend a\n", "global\nbackend a\n", 7)
	f.Add("# x\n\ndefaults\nbackend a\n  # end\n", "defaults x\n", 12)
	f.Add("globalobal\n# cken.8$\n", "000000\nbackend", 7)
	f.Fuzz(func(t *testing.T, before, text string, at int) {
		at = max(0, min(len(text), at))
		last := checkCut(t, Empty(), before, []string{before}, nil)
		checkCut(t, last, text, []string{text[:at], text[at:]}, nil)
		checkCut(t, last, before+text, []string{before, text}, nil)
		checkCut(t, last, text+before, []string{text[:at], text[at:], before}, nil)
	})
}

// Sections that stay are shared, wherever the others come and go.
func TestNewFromShares(t *testing.T) {
	t.Parallel()
	part := func(i, n int) string { return fmt.Sprintf("backend b%d\n  server s 192.0.2.%d:80\n", i, n) }
	var parts []string
	for i := range 500 {
		parts = append(parts, part(i, 1))
	}
	first, err := NewFrom(Empty(), append([]string{"defaults\n  mode http\n"}, parts...))
	require.NoError(t, err)
	shared := func(want int, parts ...string) {
		t.Helper()
		next, err := NewFrom(first, append([]string{"defaults\n  mode http\n"}, parts...))
		require.NoError(t, err)
		known := make(map[*Section]bool)
		for _, s := range first.Index().List {
			known[s] = true
		}
		n := 0
		for _, s := range next.Index().List {
			if known[s] {
				n++
			}
		}
		require.Equal(t, want, n)
	}
	shared(501, parts...)
	shared(501, strings.Join(parts, ""))
	with := func(i int, text string) []string { p := slices.Clone(parts); p[i] = text; return p }
	shared(500, with(0, part(0, 2))...)
	shared(500, with(250, part(250, 2))...)
	shared(500, strings.Join(with(499, part(499, 2)), ""))
	shared(501, slices.Insert(slices.Clone(parts), 0, part(999, 1))...)
	shared(501, slices.Insert(slices.Clone(parts), 300, part(997, 1), part(998, 1), part(999, 1))...)
	shared(500, slices.Delete(slices.Clone(parts), 7, 8)...)
	shared(398, slices.Delete(slices.Clone(parts), 100, 201)...) // 2 are lost until it looks further
}
