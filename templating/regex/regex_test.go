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
	for s, why := range map[string]string{"/(a+)+": "inside a repeat", "/((a{1,9})*)*": "inside a repeat", "/a.*b.*c.*d.*": "too many repeats", "/.*.*.*c$": "too many repeats", "/.*.{0,300}.{0,300}.{0,300}": "too many repeats", "/a{,3}": "only some read as a repeat", "/{1 }": "only some read as a repeat", "/a$+": "repeats a ^", "/(a|a)*b": "inside a repeat", "/(?:a?b?){9}": "inside a repeat", "/((a|b)c)+": "inside a repeat", "/x[a[=b=]]": "class in a class", "/(": "missing", `/\1`: `has \1`, "/(?=a)": "look-around", "/(?i)a": "flags",
		"/a\tb": `holds '\t'`, "/[[:alpha:]]": "class in a class", `/\`: "backslash", `/[\]|x]`: `has \]`, "/" + strings.Repeat("a", MaxLength): "513 bytes", "/(a{1,900}){1,900}": "repeat", "/(xyz){1,999}": "too large", "/ü": "holds"} {
		_, err := CheckStart(s)
		require.ErrorContains(t, err, why, s)
	}
}

// TestCheckPlaces: a "^" of all alternatives is worth a repeat.
func TestCheckPlaces(t *testing.T) {
	for s, ok := range map[string]bool{"^/(.*)/(.*)x": true, "/(.*)/(.*)x": false, "^.*a.*b.*": true, "^.*a.*b.*c": false, "a.*b": true, "a.*b.*c": false, "[a-z]{0,300}[a-z]{0,400}[a-z]{300}[0-9]": false, "a.*b.*c.*": false, "^a.*b|c.*d.*": true, "^a.*b|c.*d.*e": false, "^(a.*b|c.*d)": true, ".*a.*b": true, "(.*)a.*b": true} {
		_, err := Check(s)
		require.Equal(t, ok, err == nil, "%s: %v", s, err)
	}
}

// TestLongest: some are tried on shorter texts alone. Pieces at the end that may be missing cost
// nothing, nor do repeats that what follows ends.
func TestLongest(t *testing.T) {
	for s, want := range map[string]bool{"/a(/|$)(.*)": true, "/(.*)/x/(.*)": true, "/([^/]+)/([^/]+)/edit$": true, "/[a-z]+[0-9]+x": true, "/(a|b){0,1}x?.*": true, `/\d{300}x`: true,
		"/(.*)/(.*)x": false, "[a-z]{0,300}[a-z]{0,400}[a-z]{300}[0-9]": false, "/[a-z]+[a-z0-9]+x": false, "/[^/]*.*x": false, "/[^/]*[a-z]*": false, "/.*(a|b|c|d|e|f|g|h)(a|b|c|d|e|f|g|h)x": false} {
		is, err := CheckStart(s)
		require.NoError(t, err, s)
		require.Equal(t, want, is.Longest == Subject, "%s: %d bytes", s, is.Longest)
		require.GreaterOrEqual(t, is.Longest, least)
		require.LessOrEqual(t, is.Steps, MaxSteps)
	}
}

// TestWeight: an expression that can take HAProxy long counts for more.
func TestWeight(t *testing.T) {
	for s, want := range map[string]int{"/a": 1, "/a(/|$)(.*)": 1, "/[a-z]+/x": 1, "/(.*)/x/(.*)": 3, "/(.*)/(.*)x": 13} {
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
		require.GreaterOrEqual(t, is.Longest, least)
	})
}
