package templating

import (
	"fmt"
	"math"
	"path"
	"reflect"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/templating/internal/place"
)

// checkGlob refuses a malformed pattern: path.Match reports one only as far as
// it reads it, which for a name that does not match is not to the end.
func checkGlob(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("pattern %s: %w", place.Shorten(pattern), err)
	}
	return nil
}

func tostring(v any) string {
	s, err := place.Text(v)
	if err != nil {
		failf("tostring: %w", err)
	}
	return s
}

// number returns what toint and tofloat read a number from: a number or a text
// of one.
func number(name string, v any) reflect.Value {
	if rv := deref(reflect.ValueOf(v)); isNumber(rv) {
		return rv
	}
	s, err := place.Text(v)
	if err != nil {
		failf("%s: %w", name, err)
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.ContainsAny(s, "xXpP_") {
		failf("%s: %s is not a number", name, place.Shorten(s))
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64); err == nil { // exact
		return reflect.ValueOf(n)
	}
	return reflect.ValueOf(f)
}

func toint(v any) int {
	n, err := wholeNumber(number("toint", v))
	if err != nil {
		failf("toint: %w", err)
	}
	return n
}

func tofloat(v any) float64 {
	f, err := floatNumber(number("tofloat", v))
	if err != nil {
		failf("tofloat: %w", err)
	}
	return f
}

func ceil(v any) int { return rounded("ceil", v, math.Ceil) }

func floor(v any) int { return rounded("floor", v, math.Floor) }

func rounded(name string, v any, round func(float64) float64) int {
	rv := number(name, v)
	if rv.CanFloat() {
		rv = reflect.ValueOf(round(rv.Float()))
	}
	n, err := wholeNumber(rv)
	if err != nil {
		failf("%s: %w", name, err)
	}
	return n
}

// maxSeq bounds a sequence: 1 Mi numbers.
const maxSeq = 1 << 20

// seq returns the numbers from 0 to n-1, or those from the first argument up
// to but without the second one, in steps of the third.
func seq(n int, more ...int) []int {
	from, to, step := 0, n, 1
	switch len(more) {
	case 0:
	case 1, 2:
		from, to = n, more[0]
		if len(more) == 2 {
			step = more[1]
		}
	default:
		failf("seq: at most three numbers wanted, not %d", 1+len(more))
	}
	if step == 0 {
		failf("seq: a step of 0 has no end")
	}
	// As unsigned numbers, differences cannot overflow.
	var count uint64
	switch {
	case step > 0 && from < to:
		count = (uint64(to)-uint64(from)-1)/uint64(step) + 1
	case step < 0 && from > to:
		count = (uint64(from)-uint64(to)-1)/-uint64(step) + 1
	}
	if count > maxSeq {
		failf("seq: %d numbers wanted, only %d can be", count, maxSeq)
	}
	out := make([]int, count)
	for i := range out {
		out[i] = from + i*step
	}
	return out
}
