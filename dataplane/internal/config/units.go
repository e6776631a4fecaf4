package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// durations are the keywords of a line that a duration follows, by its first
// word; "" stands for the second word of the line itself. HAProxy reads a number
// without a unit as milliseconds there (configuration manual, section 2.5).
var durations = map[string][]string{
	"timeout":         {""},
	"hold":            {""},
	"server":          serverDurations,
	"default-server":  serverDurations,
	"server-template": serverDurations,
	"stick-table":     {"expire"},
}

var serverDurations = []string{"inter", "fastinter", "downinter", "slowstart", "agent-inter", "pool-purge-delay"}

// equalUnits writes durations in milliseconds, so that "1s" equals "1000". The
// size of a stick-table, of which "k" are 1024, becomes a plain number.
func equalUnits(words []string) []string {
	keywords, ok := durations[words[0]]
	if !ok {
		return words
	}
	out := words
	set := func(i int, value string) {
		if value != words[i] {
			if &out[0] == &words[0] {
				out = slices.Clone(words)
			}
			out[i] = value
		}
	}
	for i := 1; i+1 < len(words); i++ {
		switch {
		case keywords[0] == "" && i == 1 && len(words) == 3, slices.Contains(keywords, words[i]):
			set(i+1, scaled(words[i+1], durationUnits))
		case words[0] == "stick-table" && words[i] == "size":
			set(i+1, scaled(words[i+1], sizeUnits))
		}
	}
	return out
}

var durationUnits = map[string]uint64{"": 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

var sizeUnits = map[string]uint64{"": 1, "k": 1 << 10, "K": 1 << 10, "m": 1 << 20, "M": 1 << 20, "g": 1 << 30, "G": 1 << 30}

// scaled returns the text itself where it is no number with one of the units.
func scaled(text string, units map[string]uint64) string {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	factor, ok := units[text[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 64)
	if !ok || err != nil || n > math.MaxInt64/factor {
		return text
	}
	return strconv.FormatUint(n*factor, 10)
}

// SameDuration reports whether two values of a keyword on a line are one duration.
func SameDuration(line, keyword, a, b string) bool {
	return slices.Contains(durations[line], keyword) && scaled(a, durationUnits) == scaled(b, durationUnits)
}
