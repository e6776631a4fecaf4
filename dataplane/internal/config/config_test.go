package config

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
	"github.com/hapticsdk/haptic/internal/haproxytest"
)

func TestMain(m *testing.M) { haproxytest.Main(m) }

func TestParseMap(t *testing.T) {
	got := ParseMap([]byte("# c\na b\r\n\n \t x \t y z \nonly\n#\n #no comment\n"))
	want := []MapEntry{{"a", "b"}, {"x", "y z"}, {"only", ""}, {"#no", "comment"}}
	require.Equal(t, want, got)
}

// Others read the sections while one looks for a key: that numbers copies of them.
func TestIndexNumbersCopies(t *testing.T) {
	x := Empty().With("backend b\n  mode http\nbackend b\n  mode tcp\n").Index()
	second := x.Find(Key{Kind: "backend", Name: "b", Nth: 1})
	require.NotNil(t, second)
	require.Contains(t, second.Text, "tcp")
	require.Equal(t, "backend b (2)", x.Numbered()[1].Key().String())
	for i := range x.List {
		require.Zero(t, x.List[i].Nth)
	}
	require.Nil(t, x.Find(Key{Kind: "backend", Name: "b", Nth: 2}))
}

func FuzzParseMap(f *testing.F) {
	f.Add("# c\na b\n\n x  y z\n")
	f.Fuzz(func(t *testing.T, text string) {
		entries := ParseMap([]byte(text))
		var b strings.Builder
		for _, e := range entries {
			if e.Key == "" || strings.ContainsAny(e.Key, " \t\n") || strings.Contains(e.Value, "\n") || strings.HasPrefix(e.Value, " ") {
				t.Fatalf("entry %q", e)
			}
			if strings.HasPrefix(e.Key, "#") {
				return // it is one only because blanks stand before it
			}
			b.WriteString(e.Key + " " + e.Value + "\n")
		}
		require.Equal(t, entries, ParseMap([]byte(b.String())))
	})
}

func FuzzParseServer(f *testing.F) {
	f.Add("server a 1.2.3.4:80 check inter 2s disabled")
	f.Add("server a [::1]:80 ssl verify")
	f.Fuzz(func(t *testing.T, text string) {
		words, err := haproxycfg.Fields(text)
		if err != nil {
			return
		}
		s, ok := ParseServer(words)
		if !ok {
			return
		}
		for name := range s.Options {
			_ = s.Value(name)
		}
		_ = s.Value("address")
		if addr, ok := s.Literal(); ok {
			require.NotZero(t, addr.Port())
		}
	})
}

func TestParsePatterns(t *testing.T) {
	got := ParsePatterns([]byte("# c\na\r\n\n \tb c \n #no comment\na\nlast"))
	require.Equal(t, []MapEntry{{Key: "a"}, {Key: "b c "}, {Key: "#no comment"}, {Key: "last"}}, got)
}

func FuzzParsePatterns(f *testing.F) {
	f.Add("# c\na\n b\n")
	f.Fuzz(func(t *testing.T, text string) {
		seen := make(map[string]bool)
		for _, e := range ParsePatterns([]byte(text)) {
			p := e.Key
			if p == "" || seen[p] || strings.ContainsAny(p, "\r\n") || p[0] == ' ' || p[0] == '\t' {
				t.Fatalf("pattern %q", p)
			}
			seen[p] = true
		}
	})
}

// Equal durations and sizes are equal lines.
func TestLineEqual(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		equal bool
	}{
		{"timeout client 1s", "timeout  client 1s # one", true},
		{"timeout client 1s", "timeout client 1000", false}, // the words decide
		{"bind :80", `bind ":80"`, true},
		{"http-request set-header A $B", `http-request set-header A "$B"`, false},
	} {
		require.Equal(t, c.equal, NewLine(c.a).Equal(NewLine(c.b)), "%s / %s", c.a, c.b)
	}
}

func FuzzNewLine(f *testing.F) {
	f.Add("timeout client 1s", "hold 9d")
	f.Add("server a :80 inter", "stick-table size 1m expire")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := NewLine(a), NewLine(b)
		if !x.Equal(NewLine(a)) || x.Equal(y) != y.Equal(x) {
			t.Fatal("not an equality")
		}
		_ = x.Show()
	})
}

// Sections that share a name, or have none, are counted once each.
func TestIndexOfManyAlike(t *testing.T) {
	t.Parallel()
	for _, section := range []string{"defaults\n", "backend a\n", "global\n", "frontend a\n"} {
		const n = 100_000
		c, err := New(strings.Repeat(section, n))
		require.NoError(t, err)
		start := time.Now()
		last := c.Index().Numbered()[n-1]
		require.NotNil(t, c.Index().Find(last.Key()))
		require.Less(t, time.Since(start), 10*time.Second)
		if strings.HasPrefix(section, "defaults") {
			require.Equal(t, "unnamed_defaults_100000", last.Name)
		} else {
			require.Equal(t, n-1, last.Nth)
		}
	}
}
