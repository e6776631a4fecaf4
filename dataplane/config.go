package dataplane

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// FileKind says what HAProxy uses a file for, and so where it is stored and
// what of it can change without a reload.
type FileKind string

// The kinds of files that may accompany a configuration.
const (
	Map         FileKind = "map"         // one "key value" a line, for the map_* converters
	Certificate FileKind = "certificate" // certificate, chain and private key in one PEM file
	CA          FileKind = "ca"          // CA certificates, for ca-file
	CRTList     FileKind = "crt-list"    // certificates of a bind line, one a line
	General     FileKind = "general"     // anything else: error pages, ACL files, Lua
)

func (k FileKind) valid() bool {
	switch k {
	case Map, Certificate, CA, CRTList, General:
		return true
	}
	return false
}

// File is a file that the configuration refers to, by the path that
// [Layout.Path] gives for its kind and name.
//
// The content of a file never prints: String, slog and JSON show kind, name,
// size and, except for certificates, a short hash.
type File struct {
	Kind    FileKind
	Name    string
	Content []byte // shared, not copied: whoever made the File leaves it alone
}

// String describes the file without its content.
func (f File) String() string {
	if f.Kind == Certificate {
		return fmt.Sprintf("%s %s (%d bytes)", f.Kind, f.Name, len(f.Content))
	}
	return fmt.Sprintf("%s %s (%d bytes, %s)", f.Kind, f.Name, len(f.Content), hashOf(f.Content)[:8])
}

// GoString is String, so that %#v shows no content either.
func (f File) GoString() string { return f.String() }

// Format is String for every verb, so that %x or %+v show no content either.
func (f File) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(f.String())) }

// LogValue is String.
func (f File) LogValue() slog.Value { return slog.StringValue(f.String()) }

// MarshalJSON gives kind, name and size, never the content.
func (f File) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Kind FileKind `json:"kind"`
		Name string   `json:"name"`
		Size int      `json:"size"`
	}{f.Kind, f.Name, len(f.Content)})
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ErrInvalidConfig is wrapped by the errors of [NewConfig].
var ErrInvalidConfig = errors.New("invalid configuration")

// Config is a whole desired state of one HAProxy: the text of its
// configuration and the files that the text refers to. A Config is immutable
// and safe for concurrent use.
type Config struct {
	main  string
	files []File // by kind, then name
	hash  func() string
	split func() *sectionIndex // sections of main
}

// NewConfig makes a Config from the text of haproxy.cfg and its files, in any
// order. It refuses, with an error that wraps [ErrInvalidConfig] and names the
// line or the file, what could not arrive at a HAProxy unchanged: text that is
// empty, does not end in a line feed, has control characters or a line of
// [MaxLine] bytes or more; file names that a storage would rename (see
// [CheckFileName]); an unknown kind; two files that would lie at one path, as CA
// files, crt-lists and general files share a folder.
func NewConfig(main string, files ...File) (*Config, error) {
	var errs []error
	if err := checkText(main); err != nil {
		errs = append(errs, err)
	}
	sorted := slices.Clone(files)
	slices.SortStableFunc(sorted, compareFiles)
	general := make(map[string]FileKind)
	for i, f := range sorted {
		switch {
		case !f.Kind.valid():
			errs = append(errs, fmt.Errorf("%w: file %q: unknown kind %q", ErrInvalidConfig, f.Name, f.Kind))
		case i > 0 && compareFiles(sorted[i-1], f) == 0:
			errs = append(errs, fmt.Errorf("%w: %s %q: given twice", ErrInvalidConfig, f.Kind, f.Name))
		}
		if err := CheckFileName(f.Kind, f.Name); err != nil {
			errs = append(errs, err)
		}
		if f.Kind == Map || f.Kind == Certificate {
			continue
		}
		if other, ok := general[f.Name]; ok && other != f.Kind {
			errs = append(errs, fmt.Errorf("%w: %s %q: a file of kind %s has the same path", ErrInvalidConfig, f.Kind, f.Name, other))
		}
		general[f.Name] = f.Kind
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	c := &Config{main: main, files: sorted}
	c.hash = sync.OnceValue(c.computeHash)
	c.split = sync.OnceValue(func() *sectionIndex { return indexSections(c.main) })
	return c, nil
}

// Main returns the text of haproxy.cfg.
func (c *Config) Main() string { return c.main }

// Files returns the files, sorted by kind and name. The contents are shared
// with the Config and must not be changed.
func (c *Config) Files() []File { return slices.Clone(c.files) }

// File returns the file of that kind and name.
func (c *Config) File(kind FileKind, name string) (File, bool) {
	i, ok := slices.BinarySearchFunc(c.files, File{Kind: kind, Name: name}, compareFiles)
	if !ok {
		return File{}, false
	}
	return c.files[i], true
}

// Hash returns a hash of the text and all files: two configurations are the
// same to the byte exactly if their hashes are equal. It is computed once.
func (c *Config) Hash() string { return c.hash() }

func (c *Config) computeHash() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s", len(c.main), c.main)
	for _, f := range c.files {
		fmt.Fprintf(h, "%s\n%s\n%d\n", f.Kind, f.Name, len(f.Content))
		h.Write(f.Content)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// String describes the configuration without its text, which may hold
// passwords.
func (c *Config) String() string {
	return fmt.Sprintf("configuration %s (%d bytes, %s)", c.Hash()[:8], len(c.main), count(len(c.files), "file"))
}

// GoString is String.
func (c *Config) GoString() string { return c.String() }

// Format is String for every verb.
func (c *Config) Format(s fmt.State, _ rune) { _, _ = s.Write([]byte(c.String())) }

// LogValue is String.
func (c *Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

func compareFiles(a, b File) int {
	if c := strings.Compare(string(a.Kind), string(b.Kind)); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// MaxLine is the number of bytes at which a line of configuration is refused:
// the parser of the Dataplane API drops, without a word, everything from the
// first line of 64 KiB on.
const MaxLine = 64 << 10

func checkText(main string) error {
	if main == "" {
		return fmt.Errorf("%w: the text is empty", ErrInvalidConfig)
	}
	if !strings.HasSuffix(main, "\n") {
		return fmt.Errorf("%w: the last line does not end in a line feed", ErrInvalidConfig)
	}
	line, start := 1, 0
	for at := 0; at < len(main); at++ {
		if at = nextControl(main, at); at == len(main) {
			break
		}
		switch c := main[at]; {
		case c == '\n':
			if n := at + 1 - start; n >= MaxLine {
				return fmt.Errorf("%w: line %d: %d bytes are too many, a line must be shorter than %d",
					ErrInvalidConfig, line, n, MaxLine)
			}
			line, start = line+1, at+1
		case c == '\r' && main[at+1] == '\n': // the text ends in a line feed
		case isControl(c):
			return fmt.Errorf("%w: line %d: control character %q in column %d", ErrInvalidConfig, line, c, at+1-start)
		}
	}
	return nil
}

// nextControl returns where the first control character stands from a place on,
// the tab included, or else the length of the text. It looks at eight bytes at a
// time, since it goes through all of every configuration.
func nextControl(s string, at int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; at+8 <= len(s); at += 8 {
		w := s[at : at+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		del := x ^ ones*0x7f
		if ((x-ones*0x20)&^x|(del-ones)&^del)&high != 0 {
			break
		}
	}
	for at < len(s) && s[at] >= 0x20 && s[at] != 0x7f {
		at++
	}
	return at
}

// isControl reports the characters that no line of configuration may have: C0
// controls but the tab, and DEL.
func isControl(c byte) bool { return c < 0x20 && c != '\t' || c == 0x7f }

// CheckFileName reports why a file of that kind cannot have that name, in an
// error that wraps [ErrInvalidConfig]; nil says that it can. A name is a
// single path element of at most 255 bytes. Only ASCII letters, digits, "_"
// and "-" may stand before the last dot, because the storage of the Dataplane
// API silently renames everything else; [FileName] makes such a name from any
// text. Maps must end in ".map" and crt-lists in ".txt", which that storage
// appends or insists on.
func CheckFileName(kind FileKind, name string) error {
	refuse := func(why string) error {
		return fmt.Errorf("%w: %s %q: %s", ErrInvalidConfig, kind, name, why)
	}
	stem, ext := splitExt(name)
	switch {
	case name == "":
		return refuse("the name is empty")
	case len(name) > 255:
		return refuse("the name is longer than 255 bytes")
	case !utf8.ValidString(name):
		return refuse("the name is not UTF-8")
	case stem == "":
		return refuse("the name starts with a dot")
	}
	if i := strings.IndexFunc(stem+strings.TrimPrefix(ext, "."), func(r rune) bool { return !isNameRune(r) }); i >= 0 {
		return refuse("only letters, digits, _ and - may stand in a name, and one dot before the extension")
	}
	if want := requiredExt(kind); want != "" && ext != want {
		return refuse("the name must end in " + want)
	}
	return nil
}

// FileName makes a name for a file of that kind from any text, such as a host
// name: characters that a storage would rename become "_", and the extension
// of the kind is appended (.map, .pem, .txt). Texts that differ only in such
// characters give the same name.
func FileName(kind FileKind, text string) string {
	stem := strings.Map(func(r rune) rune {
		if isNameRune(r) {
			return r
		}
		return '_'
	}, text)
	ext := requiredExt(kind)
	if ext == "" {
		switch kind {
		case Certificate, CA:
			ext = ".pem"
		default:
			ext = ".txt"
		}
	}
	return stem + ext
}

func requiredExt(kind FileKind) string {
	switch kind {
	case Map:
		return ".map"
	case CRTList:
		return ".txt"
	}
	return ""
}

func splitExt(name string) (stem, ext string) {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name[:i], name[i:]
	}
	return name, ""
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}
