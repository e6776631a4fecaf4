package k8swatch

import (
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// value is an object of every kind of value that JSON has, and of nil and empty
// containers, which DeepCopy keeps apart.
func everyKindOfValue() map[string]any {
	return map[string]any{
		"nil": nil, "true": true, "false": false, "": "empty key",
		"ints":   []any{int64(0), int64(-1), int64(1), int64(math.MaxInt64), int64(math.MinInt64), int64(63), int64(64), int64(-65)},
		"floats": []any{0.5, -1e300, math.Inf(1), math.SmallestNonzeroFloat64},
		"texts": []any{"", "a", "ab", "abc", "abc", strings.Repeat("x", maxSymbolLen), strings.Repeat("x", maxSymbolLen+1),
			strings.Repeat("x", maxSymbolLen+1), "\x00\xff", "ä\U0001f600"},
		"maps":                              []any{map[string]any{}, map[string]any(nil), map[string]any{"a": map[string]any{"a": "abc"}}},
		"lists":                             []any{[]any{}, []any(nil), []any{[]any{"abc"}}},
		strings.Repeat("k", maxSymbolLen+1): "a key that is no symbol",
	}
}

func TestDenseIsTheSameObject(t *testing.T) {
	s := newSymbols()
	for i := range 3 { // the second time values become symbols
		for name, obj := range map[string]map[string]any{
			"every kind": everyKindOfValue(), "route": bigRoute(i).Object, "empty": {}, "nil": nil,
		} {
			want := (&unstructured.Unstructured{Object: obj}).DeepCopy().Object
			d, ok := s.encode(obj)
			if !ok {
				t.Fatalf("%s: not encoded", name)
			}
			if diff := cmp.Diff(want, d.object().Object); diff != "" {
				t.Errorf("%s, round %d (-want +got)\n%s", name, i, diff)
			}
		}
	}
}

func TestDenseRefusesWhatIsNotJSON(t *testing.T) {
	for _, v := range []any{1, int32(1), float32(1), []string{"a"}, map[string]string{}, struct{}{}, []byte("a")} {
		if _, ok := newSymbols().encode(map[string]any{"a": []any{v}}); ok {
			t.Errorf("%T was encoded", v)
		}
	}
}

// TestDenseIsDecodedOnce: whoever reads an object that somebody holds gets that
// one; later it is decoded again, to the same.
func TestDenseIsDecodedOnce(t *testing.T) {
	d, ok := newSymbols().encode(bigRoute(1).Object)
	if !ok {
		t.Fatal("not encoded")
	}
	got := make([]*unstructured.Unstructured, 8)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i] = d.object() })
	}
	all.Wait()
	for _, u := range got {
		if u != got[0] {
			t.Fatal("there are two objects at one time")
		}
	}
	runtime.GC()
	if d.object() != got[0] {
		t.Error("decoded again while somebody holds it")
	}
	runtime.KeepAlive(got)
	clear(got)
	runtime.GC()
	if w := d.decoded.Load(); w.Value() != nil {
		t.Error("nobody holds it, but it is kept")
	}
	if diff := cmp.Diff(bigRoute(1).Object, d.object().Object); diff != "" {
		t.Errorf("decoded again (-want +got)\n%s", diff)
	}
}

// TestSymbolsAreBounded: neither many values nor many keys make the table grow
// without end, and what does not fit is stored nevertheless.
func TestSymbolsAreBounded(t *testing.T) {
	s := newSymbols()
	var first, last *dense
	for i := range maxSymbols + 100 {
		d, ok := s.encode(map[string]any{fmt.Sprint("key", i): fmt.Sprint("value", i), "name": fmt.Sprint("value", i)})
		if !ok {
			t.Fatal("not encoded")
		}
		if first == nil {
			first = d
		}
		last = d
	}
	if len(s.names) != maxSymbols || len(s.ids) != maxSymbols || len(s.seen) > maxSeen {
		t.Errorf("%d symbols, %d numbers, %d values seen", len(s.names), len(s.ids), len(s.seen))
	}
	if got := first.object().Object; got["key0"] != "value0" || got["name"] != "value0" {
		t.Errorf("the first is %v", got)
	}
	i := maxSymbols + 99
	if got := last.object().Object; got[fmt.Sprint("key", i)] != fmt.Sprint("value", i) || len(got) != 2 {
		t.Errorf("the last is %v", got)
	}
}

// FuzzDense: what is stored of any JSON object is that object.
func FuzzDense(f *testing.F) {
	f.Add(`{"a":1,"b":[1.5,"a","abc","abc",null,true],"c":{"abc":"a"}}`, `{"abc":"abc","d":{}}`)
	f.Add(`{"":"","x":-1,"y":[[],{}]}`, `{"apiVersion":"v1"}`)
	text, err := json.Marshal(bigRoute(1).Object)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text), `{"kind":"Route"}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		s := newSymbols()
		var kept []*dense
		var want []map[string]any
		for _, text := range []string{a, b, a} {
			u := &unstructured.Unstructured{}
			if u.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"K","spec":`+text+`}`)) != nil {
				return
			}
			d, ok := s.encode(u.Object)
			if !ok {
				t.Fatalf("%s was not encoded", text)
			}
			kept, want = append(kept, d), append(want, u.Object)
		}
		for i, d := range kept {
			if diff := cmp.Diff(want[i], d.object().Object); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
		}
	})
}

// BenchmarkDense is what a custom resource costs: once when it comes, and when
// it is read first after the garbage collector took what was decoded.
func BenchmarkDense(b *testing.B) {
	s := newSymbols()
	obj := bigRoute(1)
	(&intake{paths: &compiled{}}).trim(obj)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.encode(obj.Object)
		}
	})
	d, _ := s.encode(obj.Object)
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d.decoded.Store(nil)
			d.object()
		}
	})
	kept := d.object()
	b.Run("held", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d.object()
		}
	})
	runtime.KeepAlive(kept)
}
