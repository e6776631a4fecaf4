package diff

import (
	"bytes"
	"encoding/binary"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// between cuts off the common lines at the beginning and the end of two files with entries.
// It returns the rest of both, and the common end. It cuts nothing if a common line has a key
// that also stands between.
func between(old, now []byte, parse func([]byte) []config.MapEntry) (from, to, end []byte) {
	from, to, head, end := changedLines(old, now)
	keys := make(map[string]bool)
	for _, e := range append(parse(from), parse(to)...) {
		keys[e.Key] = true
	}
	if hasKey(head, keys, parse) || hasKey(end, keys, parse) {
		return old, now, nil
	}
	return from, to, end
}

// changedLines cuts off the common lines at the beginning and the end of two texts. It returns
// the rest of both, and what it cut off.
func changedLines(old, now []byte) (from, to, head, end []byte) {
	n := bytes.LastIndexByte(old[:commonHead(old, now)], '\n') + 1
	from, to, head = old[n:], now[n:], old[:n]
	tail := commonTail(from, to)
	end = from[len(from)-tail:]
	end = end[bytes.IndexByte(end, '\n')+1:] // its first line may be incomplete
	if tail > 0 && !bytes.HasSuffix(end, []byte("\n")) {
		end = nil
	}
	return from[:len(from)-len(end)], to[:len(to)-len(end)], head, end
}

const block = 4096

// commonHead returns the length of the common beginning in bytes.
func commonHead(a, b []byte) int {
	n, most := 0, min(len(a), len(b))
	for n+block <= most && bytes.Equal(a[n:n+block], b[n:n+block]) {
		n += block
	}
	for n < most && a[n] == b[n] {
		n++
	}
	return n
}

// commonTail returns the length of the common end in bytes.
func commonTail(a, b []byte) int {
	n, most := 0, min(len(a), len(b))
	for n+block <= most && bytes.Equal(a[len(a)-n-block:len(a)-n], b[len(b)-n-block:len(b)-n]) {
		n += block
	}
	for n < most && a[len(a)-n-1] == b[len(b)-n-1] {
		n++
	}
	return n
}

// hasKey reports whether lines have an entry with one of the keys. It parses only lines that
// begin like one of the keys.
func hasKey(lines []byte, keys map[string]bool, parse func([]byte) []config.MapEntry) bool {
	var begins [1024]bool
	read := false // parse all lines
	for key := range keys {
		read = read || len(key) < 8
		if !read {
			begins[beginning([]byte(key))] = true
		}
	}
	for len(lines) > 0 {
		line := lines
		if end := bytes.IndexByte(lines, '\n'); end >= 0 {
			line = lines[:end+1]
		}
		lines = lines[len(line):]
		plain := len(line) >= 8 && line[0] != ' ' && line[0] != '\t'
		if plain && !read && !begins[beginning(line)] {
			continue
		}
		for _, e := range parse(line) {
			if keys[e.Key] {
				return true
			}
		}
	}
	return false
}

// beginning returns a number that stands for the first 8 bytes.
func beginning(line []byte) int {
	return int(binary.LittleEndian.Uint64(line) * 0x9e3779b97f4a7c15 >> 54)
}
