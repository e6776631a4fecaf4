package dataplane

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDifferingLines(t *testing.T) {
	for _, test := range []struct{ old, now, before, after string }{
		{"", "", "", ""},
		{"a 1\nb 2\nc 3\n", "a 1\nb 2\nc 3\n", "", ""},
		{"a 1\nb 2\nc 3\n", "a 1\nb 9\nc 3\n", "b 2\n", "b 9\n"},
		{"a 1\nb 2\nc 3\n", "a 1\nc 3\n", "b 2\n", ""},
		{"b 2\nc 3\n", "a 1\nb 2\nc 3\n", "", "a 1\n"},
		{"a 1\n", "a 1\nb 2\n", "", "b 2\n"},
		{"a 1\nb 2", "a 1\nb 2\n", "b 2", "b 2\n"},
		{"a 1\nb 21\nc 3\n", "a 1\nb 11\nc 3\n", "b 21\n", "b 11\n"},
		{"ab 1\n", "b 1\n", "ab 1\n", "b 1\n"},
		// a key that repeats keeps everything
		{"b 1\nb 2\n", "b 1\nb 3\n", "b 1\nb 2\n", "b 1\nb 3\n"},
		{"a 1\nb 2\nb 3\n", "a 1\nb 3\n", "a 1\nb 2\nb 3\n", "a 1\nb 3\n"},
	} {
		before, after := differingLines([]byte(test.old), []byte(test.now))
		require.Equal(t, [2]string{test.before, test.after}, [2]string{string(before), string(after)}, "%q -> %q", test.old, test.now)
	}
}

// FuzzMapChanges holds that a map that is compared by its differing lines alone
// gives the changes of the whole comparison.
func FuzzMapChanges(f *testing.F) {
	f.Add("a 1\nb 2\nc 3\n", "a 1\nb 9\nc 3\n")
	f.Add("a 1\na 2\n", "a 2\n")
	f.Add("a 1\n#c\n b\t2 \r\n", "a 1\nb 2\nd")
	f.Fuzz(func(t *testing.T, old, now string) {
		read := func(content []byte) map[string]string {
			keys, values := valuesByKey(parseMap(content))
			m := make(map[string]string)
			for _, k := range keys {
				m[k] = fmt.Sprintf("%q", values[k])
			}
			return m
		}
		changes := func(before, after map[string]string) []string {
			var out []string
			for k, v := range after {
				if before[k] != v {
					out = append(out, k+" "+before[k]+" "+v)
				}
			}
			for k, v := range before {
				if _, ok := after[k]; !ok {
					out = append(out, k+" "+v+" gone")
				}
			}
			slices.Sort(out)
			return out
		}
		whole := changes(read([]byte(old)), read([]byte(now)))
		before, after := differingLines([]byte(old), []byte(now))
		part := changes(read(before), read(after))
		if strings.Join(whole, "\n") != strings.Join(part, "\n") {
			t.Fatalf("%q -> %q:\n%q\n%q", old, now, whole, part)
		}
	})
}

// The commands know a map by the path that the configuration gives: one that is
// relative is not that of the layout.
func TestDiffRelativePath(t *testing.T) {
	for path, impact := range map[string]Impact{"/etc/haproxy/maps/hosts.map": ImpactRuntime, "maps/hosts.map": ImpactReload, "hosts.map": ImpactReload} {
		text := "frontend www\n    bind :80\n    use_backend %[hdr(host),map(" + path + ")]\n"
		old, err := NewConfig(text, File{Map, "hosts.map", []byte("a b\n")})
		require.NoError(t, err)
		now, err := NewConfig(text, File{Map, "hosts.map", []byte("a c\n")})
		require.NoError(t, err)
		plan, err := Diff(old, now)
		require.NoError(t, err)
		require.Equal(t, impact, plan.Impact(), "%s: %s", path, plan)
	}
}
