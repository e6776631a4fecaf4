package k8swatch

import (
	"encoding/binary"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// dense is an unstructured object in a form that takes a tenth of the memory of
// nested maps: those cost some 300 bytes for each map, however small. It is
// decoded when somebody reads it. What was decoded is shared by all readers for
// as long as one of them holds it; the garbage collector takes it after that.
type dense struct {
	text    string // see denseEncoder
	symbols *symbols
	decoded atomic.Pointer[weak.Pointer[unstructured.Unstructured]]
}

func (d *dense) object() *unstructured.Unstructured {
	last := d.decoded.Load()
	if last != nil {
		if u := last.Value(); u != nil {
			return u
		}
	}
	dec := denseDecoder{text: d.text, names: d.symbols.all()}
	u := &unstructured.Unstructured{}
	u.Object, _ = dec.value().(map[string]any)
	mine := weak.Make(u)
	for !d.decoded.CompareAndSwap(last, &mine) {
		last = d.decoded.Load() // somebody else was first
		if theirs := last.Value(); theirs != nil {
			return theirs
		}
	}
	return u
}

// symbols are the strings that many objects have in common: the keys of all
// maps, and values that came more than once. They are numbered in the order in
// which they came and stay for as long as the store, hence the bound.
type symbols struct {
	mu    sync.Mutex
	ids   map[string]int
	names []any // string, boxed once for all objects
	// seen are values that came in one object so far, and in which: an object
	// repeats its own name many times.
	seen   map[string]int
	object int // number of the object that is being encoded

	// Working memory of the encoder: the form of the object, and where in it its
	// strings are.
	buf []byte
	at  []span
}

const (
	maxSymbols   = 1 << 16
	maxSymbolLen = 128
	minSymbolLen = 3 // shorter ones take no more room than their number
	maxSeen      = 1 << 13
)

func newSymbols() *symbols {
	return &symbols{ids: map[string]int{}, seen: map[string]int{}}
}

// all returns the strings so far. The slice only grows, so that what it holds
// now stays as it is.
func (s *symbols) all() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names
}

// add returns the number of a string, a new one if there is room for it.
func (s *symbols) add(name string) (id int, ok bool) {
	if id, ok = s.ids[name]; ok {
		return id, true
	}
	if len(s.names) >= maxSymbols || len(name) > maxSymbolLen {
		return 0, false
	}
	name = strings.Clone(name)
	s.names = append(s.names, name)
	s.ids[name] = len(s.names) - 1
	return len(s.names) - 1, true
}

// value returns the number of a value that came in another object before.
func (s *symbols) value(text string) (id int, ok bool) {
	if id, ok = s.ids[text]; ok {
		return id, true
	}
	if len(text) < minSymbolLen || len(text) > maxSymbolLen {
		return 0, false
	}
	if in, ok := s.seen[text]; ok {
		if in == s.object {
			return 0, false
		}
		delete(s.seen, text)
		return s.add(text)
	}
	if len(s.seen) >= maxSeen {
		clear(s.seen)
	}
	s.seen[text] = s.object
	return 0, false
}

// The encoded form: a tag, and what belongs to it. Numbers are varints.
const (
	tagNil     = iota
	tagFalse   //
	tagTrue    //
	tagInt     // zigzag
	tagFloat   // 8 bytes
	tagString  // length, bytes
	tagSymbol  // number of the symbol
	tagAgain   // offset of the same string earlier on, at its length
	tagMap     // number of pairs; key, value each
	tagList    // number of values; the values
	tagNilMap  // a map that is nil, which is not the same as an empty one
	tagNilList //
)

// A key of a map is the number of its symbol plus 1, or 0 and then length and bytes.

type denseEncoder struct {
	symbols *symbols
	buf     []byte
	at      []span // where the strings of this object are
	failed  bool
}

// span is a string in the encoded form, with its length in front.
type span struct{ at, text, end int }

// maxSpans is how many strings of an object are compared with one that comes:
// for so few that is faster than a map.
const maxSpans = 64

// encode returns the dense form of an object, or false where it has a value that
// is not one of JSON as Kubernetes decodes it, such as an int.
func (s *symbols) encode(obj map[string]any) (*dense, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.object++
	e := denseEncoder{symbols: s, buf: s.buf[:0], at: s.at[:0]}
	defer func() { s.done(&e) }()
	e.value(obj)
	if e.failed {
		return nil, false
	}
	return &dense{text: string(e.buf), symbols: s}, true
}

// maxWorking is the most working memory that is kept for the next object.
const maxWorking = 1 << 16

func (s *symbols) done(e *denseEncoder) {
	s.buf, s.at = e.buf, e.at
	if cap(s.buf) > maxWorking {
		s.buf = nil
	}
}

func (e *denseEncoder) number(n int) { e.buf = binary.AppendUvarint(e.buf, uint64(n)) }

func (e *denseEncoder) tag(tag byte, n int) {
	e.buf = append(e.buf, tag)
	e.number(n)
}

func (e *denseEncoder) value(v any) {
	switch v := v.(type) {
	case nil:
		e.buf = append(e.buf, tagNil)
	case bool:
		tag := byte(tagFalse)
		if v {
			tag = tagTrue
		}
		e.buf = append(e.buf, tag)
	case int64:
		e.buf = binary.AppendVarint(append(e.buf, tagInt), v)
	case float64:
		e.buf = binary.LittleEndian.AppendUint64(append(e.buf, tagFloat), math.Float64bits(v))
	case string:
		e.text(v)
	case map[string]any:
		e.pairs(v)
	case []any:
		if v == nil {
			e.buf = append(e.buf, tagNilList)
			return
		}
		e.tag(tagList, len(v))
		for _, inner := range v {
			e.value(inner)
		}
	default:
		e.failed = true
	}
}

func (e *denseEncoder) text(v string) {
	for i := range e.at {
		if s := &e.at[i]; s.end-s.text == len(v) && string(e.buf[s.text:s.end]) == v {
			e.tag(tagAgain, s.at)
			return
		}
	}
	if id, ok := e.symbols.value(v); ok {
		e.tag(tagSymbol, id)
		return
	}
	e.buf = append(e.buf, tagString)
	at := len(e.buf)
	e.number(len(v))
	text := len(e.buf)
	e.buf = append(e.buf, v...)
	if len(e.at) < maxSpans {
		e.at = append(e.at, span{at, text, len(e.buf)})
	}
}

func (e *denseEncoder) pairs(v map[string]any) {
	if v == nil {
		e.buf = append(e.buf, tagNilMap)
		return
	}
	e.tag(tagMap, len(v))
	for k, inner := range v {
		if id, ok := e.symbols.add(k); ok {
			e.number(id + 1)
		} else {
			e.number(0)
			e.number(len(k))
			e.buf = append(e.buf, k...)
		}
		e.value(inner)
	}
}

// denseDecoder reads what a denseEncoder wrote. The strings of the result are parts of
// the text.
type denseDecoder struct {
	text  string
	names []any
	at    int
}

func (d *denseDecoder) number() int { return int(d.varint()) }

func (d *denseDecoder) varint() (n uint64) {
	for shift := 0; ; shift += 7 {
		b := d.text[d.at]
		d.at++
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
}

func (d *denseDecoder) string() string {
	n := d.number()
	d.at += n
	return d.text[d.at-n : d.at]
}

func (d *denseDecoder) value() any {
	tag := d.text[d.at]
	d.at++
	switch tag {
	case tagFalse, tagTrue:
		return tag == tagTrue
	case tagInt:
		n := d.varint()
		return int64(n>>1) ^ -int64(n&1)
	case tagFloat:
		d.at += 8
		return math.Float64frombits(binary.LittleEndian.Uint64([]byte(d.text[d.at-8 : d.at])))
	case tagString:
		return d.string()
	case tagSymbol:
		return d.names[d.number()]
	case tagAgain:
		again := denseDecoder{text: d.text, at: d.number()}
		return again.string()
	case tagMap:
		return d.pairs()
	case tagList:
		list := make([]any, d.number())
		for i := range list {
			list[i] = d.value()
		}
		return list
	case tagNilMap:
		return map[string]any(nil)
	case tagNilList:
		return []any(nil)
	}
	return nil
}

func (d *denseDecoder) pairs() map[string]any {
	n := d.number()
	pairs := make(map[string]any, n)
	for range n {
		var key string
		if id := d.number(); id > 0 {
			key = d.names[id-1].(string)
		} else {
			key = d.string()
		}
		pairs[key] = d.value()
	}
	return pairs
}
