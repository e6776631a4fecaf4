package annotation

import (
	"fmt"
	"strconv"
	"time"
)

// UsualTimeout is the longest timeout that annotations set if the operator does not say another.
const UsualTimeout = time.Hour

// Reader reads annotations, with what the operator allows. The zero value is usable.
type Reader struct {
	// LongestTimeout bounds the timeouts that annotations set; zero: [UsualTimeout]. HAProxy keeps
	// a connection for that long whose other side says nothing, and an old worker waits for it.
	LongestTimeout time.Duration
}

// setTimeout sets a timeout, and says so where it is cut.
func (r *reader) setTimeout(to *string, v value) string {
	text, problem := toDuration(v)
	if problem != "" {
		return problem
	}
	if length(text) > r.longest {
		longest := inHAProxy(r.longest)
		r.warn(r.row, r.name, fmt.Sprintf("%q is longer than the %s that -longest-timeout allows: %[2]s is in use", short(v.text), longest))
		text = longest
	}
	*to = text
	return ""
}

// inHAProxy writes a time with the largest unit that fits.
func inHAProxy(t time.Duration) string {
	for _, unit := range []string{"h", "m", "s"} {
		if t%units[unit] == 0 {
			return strconv.Itoa(int(t/units[unit])) + unit
		}
	}
	return strconv.Itoa(int(t/time.Millisecond)) + "ms"
}
