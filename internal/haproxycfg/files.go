package haproxycfg

import (
	"encoding/pem"
	"iter"
	"strings"
)

// ListEntry is an entry of a crt-list: its words, the certificate first
// (configuration manual, "crt-list").
type ListEntry []string

// ParseCRTList reads a crt-list, or one line of it.
func ParseCRTList(content []byte) []ListEntry {
	var entries []ListEntry
	for l := range strings.Lines(string(content)) {
		words := strings.Fields(l)
		if len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			entries = append(entries, words)
		}
	}
	return entries
}

// Certificate returns the path of the certificate.
func (e ListEntry) Certificate() string { return e[0] }

// Split returns the options, without their brackets, and the filters.
func (e ListEntry) Split() (options, filters []string) {
	inside := false
	for _, w := range e[1:] {
		opens := strings.HasPrefix(w, "[")
		inside = inside || opens
		if !inside {
			filters = append(filters, w)
			continue
		}
		closes := strings.HasSuffix(w, "]")
		w = strings.Trim(w, "[]")
		if w != "" {
			options = append(options, w)
		}
		inside = !closes
	}
	return options, filters
}

// Blocks yields the PEM blocks of a file.
func Blocks(content []byte) iter.Seq[*pem.Block] {
	return func(yield func(*pem.Block) bool) {
		for rest := content; ; {
			var block *pem.Block
			block, rest = pem.Decode(rest)
			if block == nil || !yield(block) {
				return
			}
		}
	}
}
