package regex

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCheckStart(t *testing.T) {
	for s, groups := range map[string]int{"/a(/|$)(.*)": 2, "/[a-z]+/x": 0, `/\d{1,3}`: 0, "/(?:a|b)": 0, "/a?b": 0, `/a\.b`: 0, "/[]|(]+(x)?": 1, `/(\(|[^])|]*)(.*)`: 2, "/]": 0, "/(foo|bar|baz)/(.*)/(edit|view)(/.*)?": 4, "/a b'\"#": 0} {
		is, err := CheckStart(s)
		require.NoError(t, err, s)
		require.Equal(t, groups, is.Groups, s)
	}
	for s, why := range map[string]string{"/(a+)+": "inside a repeat", "/((a{1,9})*)*": "inside a repeat", "/a.*b.*c.*d.*": "too many repeats", "/.*.*.*c$": "too many repeats", "/.*.{0,300}.{0,300}.{0,300}": "too many repeats", "/(a|a)*b": "inside a repeat", "/(?:a?b?){9}": "inside a repeat", "/((a|b)c)+": "inside a repeat", "/x[a[=b=]]": "class in a class", "/(": "missing", `/\1`: `has \1`, "/(?=a)": "look-around", "/(?i)a": "flags",
		"/a\tb": `holds '\t'`, "/[[:alpha:]]": "class in a class", `/\`: "backslash", `/[\]|x]`: `has \]`, "/" + strings.Repeat("a", MaxLength): "513 bytes", "/(a{1,900}){1,900}": "repeat", "/(xyz){1,999}": "too large", "/ü": "holds"} {
		_, err := CheckStart(s)
		require.ErrorContains(t, err, why, s)
	}
}

// TestCheckPlaces: a "^" of all alternatives is worth a repeat.
func TestCheckPlaces(t *testing.T) {
	for s, ok := range map[string]bool{"^/(.*)/(.*)x": true, "/(.*)/(.*)x": false, "^.*a.*b.*": false, "a.*b": true, "a.*b.*c": false, "a.*b.*c.*": false, "^a.*b|c.*d.*": false, "^(a.*b|c.*d)": true} {
		_, err := Check(s)
		require.Equal(t, ok, err == nil, "%s: %v", s, err)
	}
}

// TestWeight: what can take HAProxy long counts for more.
func TestWeight(t *testing.T) {
	for s, want := range map[string]int{"/a": 1, "/a(/|$)(.*)": 1, "/(.*)/x/(.*)": 17, "/(.*)(a|b|c)(.*)": 49, "/.*a?b?c?d?.*": 257} {
		is, err := CheckStart(s)
		require.NoError(t, err)
		require.Equal(t, want, is.Weight(), s)
		require.False(t, is.Alternates, s)
	}
	for _, s := range []string{"/a|/b", "/(a|b)|c", `/\(|x`, "/[(]|x"} {
		is, err := CheckStart(s)
		require.NoError(t, err)
		require.True(t, is.Alternates, s)
	}
}

// FuzzCheck: Go compiles what is taken, and its groups are those that are told.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"/a(/|$)(.*)", `/[]|(]+(x)?`, `^a{1,3}\.b`, "(?:a|b)", "a[^]]*", "{", "a{,3}", "(|)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		is, err := Check(s)
		if err != nil {
			return
		}
		re, err := regexp.Compile(s)
		require.NoError(t, err)
		require.Equal(t, re.NumSubexp(), is.Groups)
		require.LessOrEqual(t, is.Steps, MaxSteps)
		require.GreaterOrEqual(t, is.Weight(), 1)
	})
}
