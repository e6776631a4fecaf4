package store

import (
	"encoding/json"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// everyKindOfValue is an object of every kind of value that JSON has.
func everyKindOfValue() map[string]any {
	return map[string]any{
		"nil": nil, "true": true, "false": false, "": "empty key",
		"ints":   []any{int64(0), int64(-1), int64(math.MaxInt64), int64(math.MinInt64)},
		"floats": []any{0.5, -1e300, math.SmallestNonzeroFloat64},
		"texts":  []any{"", "a", "<&>", strings.Repeat("x", 1000), "\x00", "ä\U0001f600"},
		"maps":   []any{map[string]any{}, map[string]any{"a": map[string]any{"a": "abc"}}},
		"lists":  []any{[]any{}, []any{[]any{"abc"}}},
	}
}

func TestCompactIsTheSameObject(t *testing.T) {
	for name, obj := range map[string]map[string]any{"every kind": everyKindOfValue(), "empty": {}, "nil": nil} {
		u := &unstructured.Unstructured{Object: obj}
		want := u.DeepCopy().Object
		c := newCompact(u)
		require.NotNil(t, c, "%s: not encoded", name)
		require.Empty(t, cmp.Diff(want, c.object().Object), "%s (-want +got)\n", name)
	}
}

// TestCompactKeepsWhatIsNotJSON: such an object is stored as it is.
func TestCompactKeepsWhatIsNotJSON(t *testing.T) {
	for _, v := range []any{math.Inf(1), math.NaN(), func() {}} {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "spec": v}}
		if NewEntry(u, nil).Object() != Object(u) {
			t.Errorf("%T was encoded", v)
		}
	}
}

// TestCompactIsDecodedOnce: who reads an object that somebody holds gets that
// one; later it is decoded again, to the same.
func TestCompactIsDecodedOnce(t *testing.T) {
	c := newCompact(&unstructured.Unstructured{Object: everyKindOfValue()})
	first := c.object()
	runtime.GC()
	require.Same(t, first, c.object(), "decoded again while somebody holds it")
	runtime.KeepAlive(first)
	first = nil
	runtime.GC()
	require.Nil(t, c.decoded.Load().Value(), "nobody holds it, but it is kept")
	require.Empty(t, cmp.Diff(everyKindOfValue(), c.object().Object), "decoded again (-want +got)\n")
	_ = first
}

// FuzzCompact: what is stored of any JSON object is that object.
func FuzzCompact(f *testing.F) {
	f.Add(`{"a":1,"b":[1.5,"a","abc",null,true],"c":{"abc":"a"}}`)
	f.Add(`{"":"","x":-1,"y":[[],{}]}`)
	f.Add(`{"big":9223372036854775808,"e":1e21}`)
	f.Fuzz(func(t *testing.T, text string) {
		u := &unstructured.Unstructured{}
		if u.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"K","spec":`+text+`}`)) != nil {
			return
		}
		want, err := json.Marshal(u.Object)
		require.NoError(t, err)
		got, err := json.Marshal(newCompact(u).object().Object)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	})
}
