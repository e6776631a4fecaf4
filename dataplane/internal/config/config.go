// Package config holds one configuration: the text of haproxy.cfg, cut into
// sections and lines, and the files that the text names.
//
// It is the vocabulary of the packages beside it. Package dataplane converts its
// public types to these at its edge.
package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
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

// Format is String for every verb.
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

	main  string
	hash  func() string
	index func() *Index
}

// New makes a Config and refuses what could not arrive at a HAProxy unchanged.
func New(main string, files ...File) (*Config, error) {
	sorted := slices.Clone(files)
	slices.SortStableFunc(sorted, CompareFiles)
	if wrong := append(checkText(main), checkFiles(sorted)...); len(wrong) > 0 {
		return nil, wrong
	}
	return build(main, sorted), nil
}

// Empty is the configuration of an instance that has none. [New] refuses to make
// it.
func Empty() *Config { return build("", nil) }

func build(main string, files []File) *Config {
	c := &Config{main: main, Files: files}
	c.hash = sync.OnceValue(c.computeHash)
	c.index = sync.OnceValue(func() *Index { return newIndex(main) })
	return c
}

// checkFiles checks files that are sorted.
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

// With returns a configuration with another text and the same files. The text
// must come from a configuration that [New] took.
func (c *Config) With(main string) *Config { return build(main, c.Files) }

// WithFiles returns a configuration with the same text and other files, which
// must be sorted and checked.
func (c *Config) WithFiles(files []File) *Config {
	with := build(c.Main(), files)
	with.index = c.index
	return with
}

// Main returns the text of haproxy.cfg.
func (c *Config) Main() string { return c.main }

// Size returns the number of bytes of the text.
func (c *Config) Size() int { return len(c.main) }

// SameMain reports whether both have the same text.
func (c *Config) SameMain(other *Config) bool { return c.main == other.main }

// File returns the file of that kind and name.
func (c *Config) File(kind FileKind, name string) (File, bool) {
	i, ok := slices.BinarySearchFunc(c.Files, File{Kind: kind, Name: name}, CompareFiles)
	if !ok {
		return File{}, false
	}
	return c.Files[i], true
}

// Hash returns a hash of the text and all files, which is computed once.
func (c *Config) Hash() string { return c.hash() }

// Index returns the sections of the text, which is cut once.
func (c *Config) Index() *Index { return c.index() }

func (c *Config) computeHash() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n", len(c.Main()))
	_, _ = io.WriteString(h, c.Main())
	for _, f := range c.Files {
		fmt.Fprintf(h, "%s\n%s\n%d\n", f.Kind, f.Name, len(f.Content))
		h.Write(f.Content)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// CompareFiles orders files by kind, then by name.
func CompareFiles(a, b File) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}
