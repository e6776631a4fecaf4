package config

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// facts hold what was derived from the text of a section, or from the content of a file. They
// are derived when first needed. They do not depend on the place of the section or file, so
// configurations share them.
type facts struct {
	once     sync.Once
	hash     [sha256.Size]byte
	mentions atomic.Pointer[Mentions]
	sums     atomic.Pointer[[]uint32] // of the words of a section
	words    atomic.Pointer[wordSet]  // of a file
	lines    atomic.Pointer[[]Line]   // of a section
	outline  atomic.Pointer[Outline]  // of a section
	several  atomic.Pointer[[]string] // of a map
	names    atomic.Pointer[[]string] // of a certificate
}

// sum returns a hash of the content, which is computed once.
func sum[T string | []byte](f *facts, content T) *[sha256.Size]byte {
	f.once.Do(func() { f.hash = sha256.Sum256([]byte(content)) })
	return &f.hash
}

// factsOf returns the facts of sorted files. Unchanged files share facts and memory with
// last.
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

// CertificateNames returns the names in the first certificate of a file, in lower case. It
// returns none if the file is missing or cannot be read. It parses each certificate once.
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
