// Package rewrite makes Scriggo compile templates. It finds the place of every shown value.
// It adds calls to the tree that escape values, bound the render, and follow a traced
// render.
package rewrite

import (
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/open2b/scriggo"

	"github.com/hapticsdk/haptic/templating/internal/origin"
)

// Sources is the file system that Scriggo reads. It remembers every file, because errors
// show lines, and gives all files one format. It is safe for concurrent use.
//
// The format is JSON, because the result of a macro then has the type native.JSON instead
// of string. By this type the escaper distinguishes the text of a template from a value.
type Sources struct {
	fsys  fs.FS
	mu    sync.Mutex
	files map[string]*source
}

type source struct {
	text  string
	lines []int // the starts of its lines
}

// NewSources returns the files of a file system.
func NewSources(fsys fs.FS) *Sources { return &Sources{fsys: fsys, files: map[string]*source{}} }

// Open opens a file with its text prepared for Scriggo.
func (s *Sources) Open(name string) (fs.File, error) {
	file, err := s.read(name)
	if err != nil {
		return nil, err
	}
	text, problem := prepare(file.text)
	if problem != nil {
		line, column := s.Position(name, problem.at)
		return nil, &origin.Problem{File: name, Line: line, Column: column, Message: problem.message}
	}
	return openText{Reader: strings.NewReader(text)}, nil
}

// Add adds a file.
func (s *Sources) Add(name, text string) *source {
	file := &source{text: text, lines: []int{0}}
	for i := range len(text) {
		if text[i] == '\n' {
			file.lines = append(file.lines, i+1)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[name] = file
	return file
}

// known returns a file that was read or added. For others it returns an empty file.
func (s *Sources) known(name string) (file *source, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	file, ok = s.files[name]
	if !ok {
		file = &source{lines: []int{0}}
	}
	return file, ok
}

// read reads a file once: all entries use the same text.
func (s *Sources) read(name string) (*source, error) {
	if file, ok := s.known(name); ok {
		return file, nil
	}
	b, err := fs.ReadFile(s.fsys, name)
	if err != nil {
		return nil, err
	}
	return s.Add(name, string(b)), nil
}

// openText is an open file with nothing but content.
type openText struct{ *strings.Reader }

func (openText) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }
func (openText) Close() error               { return nil }

// Format returns the same format for all files.
func (s *Sources) Format(string) (scriggo.Format, error) { return scriggo.FormatJSON, nil }

// Line returns a line of a file that was read.
func (s *Sources) Line(name string, n int) string {
	file, _ := s.known(name)
	if n < 1 || n > len(file.lines) {
		return ""
	}
	line, _, _ := strings.Cut(file.text[file.lines[n-1]:], "\n")
	return strings.TrimRight(line, "\r")
}

// Position returns the line and column of a byte of a file. Use it with the first byte of
// an expression: Scriggo's own line and column are those of an operator or parenthesis.
func (s *Sources) Position(name string, start int) (line, column int) {
	file, _ := s.known(name)
	start = min(start, len(file.text))
	line = sort.Search(len(file.lines), func(i int) bool { return file.lines[i] > start })
	return line, utf8.RuneCountInString(file.text[file.lines[line-1]:start]) + 1
}

// Text returns a file that was read.
func (s *Sources) Text(name string) string {
	file, _ := s.known(name)
	return file.text
}

// Offset returns the byte at a line and column of [Sources.Position].
func (s *Sources) Offset(name string, line, column int) int {
	file, _ := s.known(name)
	if line < 1 || line > len(file.lines) {
		return len(file.text)
	}
	at := file.lines[line-1]
	for range column - 1 {
		_, size := utf8.DecodeRuneInString(file.text[at:])
		at += size
	}
	return at
}

// has reports whether a text stands at a byte of a file.
func (s *Sources) has(name string, start int, text string) bool {
	file, _ := s.known(name)
	return start <= len(file.text) && strings.HasPrefix(file.text[start:], text)
}

// Entries lists the default entries: all files but snippets and those whose base name
// starts with "_".
func (s *Sources) Entries() ([]string, error) {
	var names []string
	err := fs.WalkDir(s.fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(path.Base(name), "_") && !strings.HasPrefix(name, snippetFolder+"/") {
			names = append(names, name)
		}
		return err
	})
	slices.Sort(names)
	return names, err
}
