package config

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// facts is what was worked out of the text of a section, or of the content of a file, once
// asked for. It is the same wherever that stands, and configurations share it.
type facts struct {
	once     sync.Once
	hash     [sha256.Size]byte
	mentions atomic.Pointer[Mentions]
	sums     atomic.Pointer[[]uint32] // of the words of a section
	words    atomic.Pointer[wordSet]  // of a file
	lines    atomic.Pointer[[]Line]   // of a section
	several  atomic.Pointer[[]string] // of a map
	names    atomic.Pointer[[]string] // of a certificate
}

// sum returns a hash of the content, which is computed once.
func sum[T string | []byte](f *facts, content T) *[sha256.Size]byte {
	f.once.Do(func() { f.hash = sha256.Sum256([]byte(content)) })
	return &f.hash
}

// factsOf returns the facts of files, which must be sorted. Those that stay have the
// facts and the memory that last has.
func factsOf(last *Config, files []File) []*facts {
	if last != nil && len(files) == len(last.Files) && (len(files) == 0 || &files[0] == &last.Files[0]) {
		return last.facts
	}
	all := make([]*facts, len(files))
	at := 0
	for i, f := range files {
		for last != nil && at < len(last.Files) && CompareFiles(last.Files[at], f) < 0 {
			at++
		}
		if last != nil && at < len(last.Files) && CompareFiles(last.Files[at], f) == 0 && bytes.Equal(last.Files[at].Content, f.Content) {
			files[i].Content, all[i] = last.Files[at].Content, last.facts[at]
		} else {
			all[i] = new(facts)
		}
	}
	return all
}

// CertificateNames returns the names that the first certificate of a file is for, in
// lower case. There are none where the file is missing or cannot be read. It parses each
// certificate once.
func (c *Config) CertificateNames(name string) []string {
	i, ok := slices.BinarySearchFunc(c.Files, File{Kind: Certificate, Name: name}, CompareFiles)
	if !ok {
		return nil
	}
	names := c.facts[i].names.Load()
	if names == nil {
		var found []string
		if leaf := Leaf(c.Files[i].Content); leaf != nil {
			for _, name := range append(slices.Clone(leaf.DNSNames), leaf.Subject.CommonName) {
				found = append(found, strings.ToLower(name))
			}
		}
		names = &found
		c.facts[i].names.Store(names)
	}
	return *names
}
