// Package config holds one configuration: the text of haproxy.cfg, cut into sections and
// lines, and the files that the text names.
//
// It is the vocabulary of the packages beside it. Package dataplane converts its public types
// to and from these.
package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// FileKind says what HAProxy uses a file for.
type FileKind string

// The kinds of files.
const (
	Map         FileKind = "map"
	Certificate FileKind = "certificate"
	CA          FileKind = "ca"
	CRTList     FileKind = "crt-list"
	General     FileKind = "general"
)

// File is a file that the configuration names. Its content never prints.
type File struct {
	Kind    FileKind
	Name    string
	Content []byte
}

// String describes the file without its content.
func (f File) String() string {
	if f.Kind == Certificate {
		return fmt.Sprintf("%s %s (%d bytes)", f.Kind, f.Name, len(f.Content))
	}
	return fmt.Sprintf("%s %s (%d bytes, %s)", f.Kind, f.Name, len(f.Content), HashOf(f.Content)[:8])
}

func (f File) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(f.String())) }

// HashOf returns the SHA-256 of b in hexadecimal digits.
func HashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ErrInvalidConfig is wrapped by the errors of [New].
var ErrInvalidConfig = errors.New("invalid configuration")

// Config is a whole configuration. It is immutable and safe for concurrent use.
type Config struct {
	Files []File // by kind, then name

	facts []*facts // of each file
	index *Index
	main  func() string
	hash  func() string
	sums  atomic.Pointer[groupSums] // set once the hash is computed
}

// New makes a Config. It refuses anything that could not arrive at a HAProxy unchanged.
func New(main string, files ...File) (*Config, error) {
	return NewFrom(Empty(), []string{main}, files...)
}

// NewFrom is [New] for a text in parts. The result shares equal parts and files with last.
func NewFrom(last *Config, parts []string, files ...File) (*Config, error) {
	sorted := slices.Clone(files)
	if !slices.IsSortedFunc(sorted, CompareFiles) {
		slices.SortStableFunc(sorted, CompareFiles)
	}
	index := newIndex(cut(last.index.List, parts))
	if wrong := append(index.check(), checkFiles(sorted)...); len(wrong) > 0 {
		return nil, wrong
	}
	c := build(last, index, sorted)
	if len(parts) == 1 && last.Size() == 0 { // the sections are slices of this part
		c.main = func() string { return parts[0] }
	}
	return c, nil
}

// Empty returns the configuration of an instance that has none. [New] refuses to make it.
func Empty() *Config { return build(nil, newIndex(nil), nil) }

// build makes a configuration that shares with last everything that both have.
func build(last *Config, x *Index, files []File) *Config {
	c := &Config{Files: files, index: x}
	c.main = sync.OnceValue(x.join)
	var known *groupSums
	if last != nil {
		known = last.sums.Load()
	}
	c.facts = factsOf(last, files)
	c.hash = sync.OnceValue(func() string {
		sums := x.sums(known)
		known = nil
		c.sums.Store(sums)
		return c.computeHash(sums)
	})
	return c
}

// checkFiles checks sorted files.
func checkFiles(sorted []File) (wrong Refusals) {
	general := make(map[string]FileKind)
	for i, f := range sorted {
		_, known := extensions[f.Kind]
		switch {
		case !known:
			wrong = append(wrong, &Refusal{f.Kind, f.Name, 0, fmt.Sprintf("file %q: unknown kind %q", f.Name, f.Kind)})
		case i > 0 && CompareFiles(sorted[i-1], f) == 0:
			wrong = append(wrong, refuseFile(f.Kind, f.Name, "given twice"))
		}
		if r := checkFileName(f.Kind, f.Name); r != nil {
			wrong = append(wrong, r)
		}
		if f.Kind == Map || f.Kind == Certificate {
			continue
		}
		if other, ok := general[f.Name]; ok && other != f.Kind {
			wrong = append(wrong, refuseFile(f.Kind, f.Name, "a file of kind "+string(other)+" has the same path"))
		}
		general[f.Name] = f.Kind
	}
	return wrong
}

// With returns a configuration with another text and the same files. The text must come from
// a configuration that [New] accepted.
func (c *Config) With(main string) *Config {
	with := build(c, newIndex(cut(c.index.List, []string{main})), c.Files)
	with.main = func() string { return main }
	return with
}

// WithSections returns a configuration with another text for each section, and the same
// files. It returns c itself if all texts stay the same.
func (c *Config) WithSections(other func(*Section) string) *Config {
	parts, same := make([]string, len(c.index.List)), true
	for i, s := range c.index.List {
		parts[i] = other(s)
		same = same && parts[i] == s.Text
	}
	if same {
		return c
	}
	return build(c, newIndex(cut(c.index.List, parts)), c.Files)
}

// WithFiles returns a configuration with the same text and other files, which
// must be sorted and checked.
func (c *Config) WithFiles(files []File) *Config {
	with := build(c, c.index, files)
	with.main = c.main
	return with
}

// Main returns the text of haproxy.cfg. The text is joined once.
func (c *Config) Main() string { return c.main() }

// Size returns the number of bytes of the text.
func (c *Config) Size() int { return c.index.size }

// SameMain reports whether both have the same text.
func (c *Config) SameMain(other *Config) bool {
	return c.index == other.index || c.Size() == other.Size() && slices.EqualFunc(c.index.List, other.index.List, func(a, b *Section) bool {
		return a == b || a.Text == b.Text
	})
}

// File returns the file of that kind and name.
func (c *Config) File(kind FileKind, name string) (File, bool) {
	i, ok := slices.BinarySearchFunc(c.Files, File{Kind: kind, Name: name}, CompareFiles)
	if !ok {
		return File{}, false
	}
	return c.Files[i], true
}

// Hash returns a hash of the text and all files. It is computed once.
func (c *Config) Hash() string { return c.hash() }

// Index returns the sections of the text.
func (c *Config) Index() *Index { return c.index }

// CompareFiles orders files by kind, then by name.
func CompareFiles(a, b File) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}
