package templating

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/open2b/scriggo/native"
	"github.com/stretchr/testify/require"
)

// TestDocumentation compares the reference of functions in docs/functions.md with the
// functions, names, parameters and results.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../docs/functions.md")
	require.NoError(t, err)
	listed := map[string]string{}
	inside := false
	entry := regexp.MustCompile(`^(\w+)(\(.*)$`)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "```") {
			inside = !inside
			continue
		}
		if !inside {
			continue
		}
		m := entry.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("not a function: %q", line)
			continue
		}
		signature, _, _ := strings.Cut(m[2], "  ")
		listed[m[1]] = signature
	}
	have := standard()
	have["raw"] = have["Raw"]
	delete(have, "Raw")
	for _, name := range slices.Sorted(maps.Keys(have)) {
		signature, ok := listed[name]
		if !ok {
			t.Errorf("functions.md does not have %s", name)
			continue
		}
		delete(listed, name)
		checkSignature(t, name, signature, reflect.TypeOf(have[name]))
	}
	for name := range listed {
		t.Errorf("functions.md has %s, and there is no such function", name)
	}
}

// checkSignature compares the types that it shows with those of a function.
// Results of texts that are not escaped again have no type there.
func checkSignature(t *testing.T, name, signature string, typ reflect.Type) {
	t.Helper()
	params, result, _ := strings.Cut(strings.TrimPrefix(signature, "("), ")")
	var want []string
	if params != "" {
		kind := ""
		for _, p := range slices.Backward(strings.Split(params, ", ")) { // "a, b int"
			if _, k, ok := strings.Cut(p, " "); ok {
				kind = strings.Replace(k, "...", "[]", 1)
			}
			want = slices.Insert(want, 0, kind)
		}
	}
	var got []string
	for i := range typ.NumIn() {
		if typ.In(i) != reflect.TypeFor[native.Env]() {
			got = append(got, typeName(typ.In(i)))
		}
	}
	if name == "seq" {
		got = got[:1] // its forms are told in words
	}
	require.True(t, slices.Equal(got, want), "%s: functions.md has the parameters %q, the function %q", name, want, got)
	if result = strings.TrimSpace(result); result != "" && result != typeName(typ.Out(0)) {
		t.Errorf("%s: functions.md has the result %q, the function %q", name, result, typeName(typ.Out(0)))
	}
}

func typeName(typ reflect.Type) string {
	return strings.NewReplacer("interface {}", "any", "place.", "", "funcs.", "").Replace(typ.String())
}
