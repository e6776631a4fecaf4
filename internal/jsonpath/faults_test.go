package jsonpath_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/internal/jsonpath"
)

// TestOneElementHidesNoOther: an element with an empty list, a shorter one, null or
// none at all takes nothing from those that come after it.
func TestOneElementHidesNoOther(t *testing.T) {
	data, err := jsonpath.Decode([]byte(`{"items":[
		{"subs":[{"n":1,"p":[1,2]},{"n":2,"p":[]},{"n":3},{"n":4,"p":null},{"n":5,"p":[3]}]},
		{"subs":[]}, {"subs":null}, {}, {"subs":[{"n":6,"p":[4,5]}]}]}`))
	require.NoError(t, err)
	for expr, want := range map[string]string{
		"items[*].subs[*].p[*]":         "[1 2 3 4 5]",
		"items[*].subs[*].p[-1]":        "[2 3 5]",
		"items[*].subs[?(@.n>4)].p[1]":  "[5]",
		"items[*].subs[*].p[?(@>3)]":    "[4 5]",
		"items[*].subs[?(@.p[1]==5)].n": "[6]",
		"items[*].subs[?(@.n)].n":       "[1 2 3 4 5 6]",
	} {
		p, err := jsonpath.Compile(expr)
		require.NoError(t, err)
		found, err := p.Find(data)
		if fmt.Sprint(found) != want || err != nil {
			t.Errorf("%s: %v, want %s: %v", expr, found, want, err)
		}
	}
}

// TestErrorsHoldNoValues: an error may be logged, and the object be a Secret.
func TestErrorsHoldNoValues(t *testing.T) {
	data, _ := jsonpath.Decode([]byte(`{"data":{"key":"hunter2"},"list":["hunter2",{"a":1}]}`))
	for _, expr := range []string{`data[?(@.x=="y")]`, `data.key[?(@.x)]`, `data.key[0]`, "data.key.x", "list[?(@<1)]", "data[0]", "data.*[?(@)]"} {
		p, err := jsonpath.Compile(expr)
		require.NoError(t, err)
		if found, err := p.Find(data); err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v %v", expr, found, err)
		}
	}
}

// TestHostileExpressions: no expression takes long on a document of 10 MB, of many
// values or of long texts.
func TestHostileExpressions(t *testing.T) {
	line := `{"name":"` + strings.Repeat("x", 100) + `","a":[{"b":{"c":[1,2,3]}}]},`
	for name, text := range map[string]string{
		"values": "[" + strings.TrimSuffix(strings.Repeat(line, 10<<20/len(line)), ",") + "]",
		"text":   `{"a":{"b":"` + strings.Repeat("x", 10<<20) + `"}}`,
		"deep":   strings.Repeat(`{"a":[`, 300) + `1` + strings.Repeat(`]}`, 300),
	} {
		data, err := jsonpath.Decode([]byte(text))
		require.NoError(t, err)
		for _, expr := range []string{"*.*", "*.*.*.*", "[*].a[*].b.c[?(@>1)]", "[?(@.*)]", `[?(@.a[*].b.c[0]=="x")]`, "[?(@.a[?(@.b.c[?(@>0)])])].name",
			"." + strings.Repeat("*.", 300) + "*", strings.Repeat("[*]", 300), "[?(@" + strings.Repeat("[*]", 300) + ")]", strings.Repeat("[?(@", 100) + strings.Repeat(")]", 100), strings.Repeat("[*].a", 150), strings.Repeat(".a[*]", 150)} {
			p, err := jsonpath.Compile(expr)
			if err != nil {
				continue
			}
			begun := time.Now()
			found, err := p.Find(data)
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("%s, %.30s: %d values after %s, %.150v", name, expr, len(found), took, err)
			}
		}
	}
}
