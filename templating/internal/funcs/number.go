package funcs

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

func tostring(v any) string {
	s, err := place.Text(v)
	if err != nil {
		Failf("tostring: %w", err)
	}
	return s
}

// number is a number as a float64 and, if it is whole, as an int.
type number struct {
	f     float64
	n     int
	whole bool
}

func whole[T int64 | uint64](n T) number {
	return number{f: float64(n), n: int(n), whole: T(int(n)) == n && (int(n) < 0) == (n < 0)}
}

func fraction(f float64) number {
	// 2^63 is the first float64 that an int64 cannot hold.
	if f == math.Trunc(f) && f >= math.MinInt && f < -math.MinInt {
		return number{f: f, n: int(f), whole: true}
	}
	return number{f: f}
}

// numberOf reads a numeric value.
func numberOf(v reflect.Value) (x number, ok bool) {
	switch {
	case v.CanInt():
		return whole(v.Int()), true
	case v.CanUint():
		return whole(v.Uint()), true
	case v.CanFloat():
		return fraction(v.Float()), true
	case v.IsValid() && v.Type() == reflect.TypeFor[json.Number]():
		return parseNumber(v.String())
	}
	return number{}, false
}

// parseNumber reads a decimal number.
func parseNumber(s string) (x number, ok bool) {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil { // exact
		return whole(n), true
	}
	f, err := strconv.ParseFloat(s, 64)
	return fraction(f), err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) && !strings.ContainsAny(s, "xXpP_")
}

func (x number) int() (int, error) {
	switch {
	case x.whole, x == number{}:
		return x.n, nil
	case x.f != math.Trunc(x.f):
		return 0, fmt.Errorf("%v, not a whole number", x.f)
	}
	return 0, fmt.Errorf("%v, too large", x.f)
}

// read reads a number, or the text of a number, for a function.
func read(name string, v any) number {
	if x, ok := numberOf(deref(reflect.ValueOf(v))); ok {
		return x
	}
	s, err := place.Text(v)
	if err != nil {
		Failf("%s: %w", name, err)
	}
	x, ok := parseNumber(s)
	if !ok {
		Failf("%s: %s is not a number", name, place.Shorten(s))
	}
	return x
}

func toint(v any) int { return rounded("toint", v, func(f float64) float64 { return f }) }

func tofloat(v any) float64 { return read("tofloat", v).f }

func rounded(name string, v any, round func(float64) float64) int {
	x := read(name, v)
	if !x.whole {
		x = fraction(round(x.f))
	}
	n, err := x.int()
	if err != nil {
		Failf("%s: %w", name, err)
	}
	return n
}

const maxSeq = 1 << 20 // numbers of a sequence

// seq returns the numbers from 0 to n-1. With more arguments it counts from the first to
// the second, without the second, in steps of the third.
func seq(n int, more ...int) []int {
	from, to, step := 0, n, 1
	if len(more) > 0 {
		from, to = n, more[0]
	}
	if len(more) > 1 {
		step = more[1]
	}
	switch {
	case len(more) > 2:
		Failf("seq: at most three numbers wanted, not %d", 1+len(more))
	case step == 0:
		Failf("seq: a step of 0 has no end")
	}
	var count uint64 // as unsigned numbers, differences cannot overflow
	switch {
	case step > 0 && from < to:
		count = (uint64(to)-uint64(from)-1)/uint64(step) + 1
	case step < 0 && from > to:
		count = (uint64(from)-uint64(to)-1)/-uint64(step) + 1
	}
	if count > maxSeq {
		Failf("seq: %d numbers, at most %d are allowed", count, maxSeq)
	}
	out := make([]int, count)
	for i := range out {
		out[i] = from + i*step
	}
	return out
}
