package dataplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/phrase"
)

// FileKind says what HAProxy uses a file for. It decides where the file is stored and which
// of its changes need no reload.
type FileKind string

// The kinds of files that may accompany a configuration.
const (
	Map         FileKind = "map"         // one "key value" a line, for the map_* converters
	Certificate FileKind = "certificate" // certificate, chain and private key in one PEM file
	CA          FileKind = "ca"          // CA certificates, for ca-file
	CRTList     FileKind = "crt-list"    // certificates of a bind line, one a line
	General     FileKind = "general"     // anything else: error pages, ACL files, Lua
)

// File is a file that the configuration refers to. [Layout.Path] gives the path from its kind
// and name.
//
// The content of a file never prints: String, slog and JSON show kind, name, size and, except
// for certificates, a short hash.
type File struct {
	Kind    FileKind
	Name    string
	Content []byte // shared, not copied: do not change it
}

func (f File) inner() config.File {
	return config.File{Kind: config.FileKind(f.Kind), Name: f.Name, Content: f.Content}
}

func outerFile(f config.File) File {
	return File{Kind: FileKind(f.Kind), Name: f.Name, Content: f.Content}
}

// String describes the file without its content.
func (f File) String() string { return f.inner().String() }

// GoString is String, so that %#v shows no content either.
func (f File) GoString() string { return f.String() }

// Format is String for every verb, so that %x or %+v show no content either.
func (f File) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(f.String())) }
func (f File) LogValue() slog.Value       { return slog.StringValue(f.String()) }

// MarshalJSON gives kind, name and size, never the content.
func (f File) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Kind FileKind `json:"kind"`
		Name string   `json:"name"`
		Size int      `json:"size"`
	}{f.Kind, f.Name, len(f.Content)})
}

// ErrInvalidConfig is wrapped by the errors of [NewConfig].
var ErrInvalidConfig = config.ErrInvalidConfig

// Config is the whole desired state of one HAProxy: the text of its configuration and the
// files that the text refers to. A Config is immutable and safe for concurrent use.
type Config struct{ inner *config.Config }

// NewConfig makes a Config from the text of haproxy.cfg and its files, in any order. It
// refuses anything that could not arrive at a HAProxy unchanged. The error wraps
// [ErrInvalidConfig] and names the line or the file. Its method Positions lists the places,
// like that of [*validate.Error]. NewConfig refuses:
//
//   - text that is empty, does not end in a line feed, or has control characters;
//   - a line of 64 KiB or more: from there on, the parser of the Dataplane API silently drops
//     the rest;
//   - file names that a storage would rename (see [CheckFileName]), and unknown kinds;
//   - two files at one path. CA files, crt-lists and general files share a folder.
//
// [*validate.Error]: https://pkg.go.dev/github.com/hapticsdk/haptic/validate#Error
func NewConfig(main string, files ...File) (*Config, error) {
	return NewConfigFrom(nil, []string{main}, files...)
}

// NewConfigFrom is [NewConfig] for a text in parts. A part is usually a whole section, but a
// section may also have several parts. The result equals that of NewConfig for all parts
// joined: the same sections, hash, text and refusals.
//
// The argument last is the configuration before. NewConfigFrom reads only parts and files
// that last does not have, and shares the others with it. It compares them by their memory
// first, and then by their bytes. A nil last shares nothing.
func NewConfigFrom(last *Config, parts []string, files ...File) (*Config, error) {
	from := config.Empty()
	if last != nil {
		from = last.inner
	}
	inner := make([]config.File, len(files))
	for i, f := range files {
		inner[i] = f.inner()
	}
	c, err := config.NewFrom(from, parts, inner...)
	var refused config.Refusals
	switch {
	case errors.As(err, &refused):
		return nil, &refusedConfig{refused}
	case err != nil:
		return nil, err
	}
	return &Config{c}, nil
}

// refusedConfig is the error of NewConfig. It has the places.
type refusedConfig struct{ config.Refusals }

// Positions lists each fault with its place.
func (e *refusedConfig) Positions() iter.Seq2[Position, string] {
	return func(yield func(Position, string) bool) {
		for _, r := range e.Refusals {
			if !yield(Position{Kind: FileKind(r.Kind), Name: r.Name, Line: r.Line}, r.Error()) {
				return
			}
		}
	}
}

// outerConfig wraps a configuration; nil stays nil.
func outerConfig(c *config.Config) *Config {
	if c == nil {
		return nil
	}
	return &Config{c}
}

// Main returns the text of haproxy.cfg.
func (c *Config) Main() string { return c.inner.Main() }

// Files returns the files, sorted by kind and name. Do not change the contents: the Config
// shares them.
func (c *Config) Files() []File {
	files := make([]File, len(c.inner.Files))
	for i, f := range c.inner.Files {
		files[i] = outerFile(f)
	}
	return files
}

// File returns the file of that kind and name.
func (c *Config) File(kind FileKind, name string) (File, bool) {
	f, ok := c.inner.File(config.FileKind(kind), name)
	if !ok {
		return File{}, false
	}
	return outerFile(f), true
}

// Hash returns a hash of the text and all files. Two configurations have equal hashes exactly
// if they are the same byte for byte. The hash is computed once.
func (c *Config) Hash() string { return c.inner.Hash() }

// String describes the configuration without its text, which may hold
// passwords.
func (c *Config) String() string {
	return fmt.Sprintf("configuration %s (%d bytes, %s)", c.Hash()[:8], c.inner.Size(), phrase.Count(len(c.inner.Files), "file"))
}

func (c *Config) GoString() string           { return c.String() }
func (c *Config) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(c.String())) }
func (c *Config) LogValue() slog.Value       { return slog.StringValue(c.String()) }

// CheckFileName reports why a file of that kind cannot have that name, in an error that wraps
// [ErrInvalidConfig], or nil if it can. A name is a single path element of at most 255 bytes.
// Only ASCII letters, digits, "_" and "-" may stand before the last dot, because the storage
// of the Dataplane API silently renames everything else. [FileName] makes a valid name from
// any text. Maps must end in ".map", which that storage appends, and crt-lists in ".txt",
// which it insists on.
func CheckFileName(kind FileKind, name string) error {
	return config.CheckFileName(config.FileKind(kind), name)
}

// FileName makes a name for a file of that kind from any text, such as a host name. It
// replaces characters that a storage would rename by "_", and appends the extension of the
// kind (.map, .pem, .txt). Texts that differ only in such characters give the same name.
func FileName(kind FileKind, text string) string { return config.FileName(config.FileKind(kind), text) }
