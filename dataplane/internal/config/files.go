package config

import (
	"crypto/sha1" //nolint:gosec // the fingerprint that HAProxy shows, nothing rests on it
	"crypto/x509"
	"fmt"
	"iter"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// MapEntry is a line of a map file.
type MapEntry struct{ Key, Value string }

// ParseMap reads a map file as HAProxy does: a key, blanks, and a value up to the end of the
// line, without trailing blanks.
func ParseMap(content []byte) []MapEntry {
	var entries []MapEntry
	for l := range entryLines(content) {
		key, value := l, ""
		if end := strings.IndexAny(l, " \t"); end >= 0 {
			key, value = l[:end], strings.Trim(l[end:], " \t")
		}
		entries = append(entries, MapEntry{key, value})
	}
	return entries
}

// ParsePatterns reads a file of ACL patterns as HAProxy does: one per line. A repeated
// pattern counts once. The values are empty.
func ParsePatterns(content []byte) []MapEntry {
	var patterns []MapEntry
	seen := make(map[string]bool)
	for l := range entryLines(content) {
		if !seen[l] {
			seen[l] = true
			patterns = append(patterns, MapEntry{Key: l})
		}
	}
	return patterns
}

// entryLines yields the lines without leading blanks. It skips empty lines and lines that
// start with "#".
func entryLines(content []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for l := range strings.Lines(string(content)) {
			if strings.HasPrefix(l, "#") {
				continue
			}
			l = strings.TrimLeft(l, " \t")
			if end := strings.IndexAny(l, "\r\n"); end >= 0 {
				l = l[:end]
			}
			if l != "" && !yield(l) {
				return
			}
		}
	}
}

// Leaf returns the first certificate of a PEM file, or nil if none can be read.
func Leaf(content []byte) *x509.Certificate {
	cert, err := x509.ParseCertificate(firstCertificate(content))
	if err != nil {
		return nil
	}
	return cert
}

// Fingerprint returns the SHA-1 of the first certificate of a PEM file as HAProxy shows it,
// or "" if there is none.
func Fingerprint(content []byte) string {
	der := firstCertificate(content)
	if der == nil {
		return ""
	}
	return fmt.Sprintf("%X", sha1.Sum(der)) //nolint:gosec // see the import
}

func firstCertificate(content []byte) []byte {
	for block := range haproxycfg.Blocks(content) {
		if block.Type == "CERTIFICATE" {
			return block.Bytes
		}
	}
	return nil
}
