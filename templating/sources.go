package templating

import (
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/open2b/scriggo"
)

// sources is the file system that Scriggo reads: it remembers every file, so
// that errors can show the line, and gives all of them one format.
//
// The format is JSON only because of the type that the result of a macro has
// then: not string, as in the text format, but native.JSON. That is how the
// escaper tells text that was made by a template from a value.
type sources struct {
	fsys  fs.FS
	mu    sync.Mutex
	files map[string]string
	lines map[string][]int // where the lines of a file begin, once that was asked
}

func newSources(fsys fs.FS) *sources {
	return &sources{fsys: fsys, files: map[string]string{}, lines: map[string][]int{}}
}

// Open gives a file as Scriggo is to see it.
func (s *sources) Open(name string) (fs.File, error) {
	text, err := s.read(name)
	if err != nil {
		return nil, err
	}
	text, problem := prepare(text)
	if problem != nil {
		line, column := s.position(name, problem.at)
		return nil, s.at(name, name, line, column, problem.message, nil)
	}
	return openText{Reader: strings.NewReader(text)}, nil
}

// read reads a file once; every entry is compiled from the same text.
func (s *sources) read(name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text, ok := s.files[name]; ok {
		return text, nil
	}
	b, err := fs.ReadFile(s.fsys, name)
	if err != nil {
		return "", err
	}
	s.files[name] = string(b)
	return s.files[name], nil
}

// openText is an open file of which only the content matters.
type openText struct{ *strings.Reader }

func (openText) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }
func (openText) Close() error               { return nil }

// Format gives all files the same one.
func (s *sources) Format(string) (scriggo.Format, error) { return scriggo.FormatJSON, nil }

// starts returns a file and where its lines begin.
func (s *sources) starts(name string) (text string, starts []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text = s.files[name]
	starts, ok := s.lines[name]
	if !ok {
		starts = []int{0}
		for i := range len(text) {
			if text[i] == '\n' {
				starts = append(starts, i+1)
			}
		}
		s.lines[name] = starts
	}
	return text, starts
}

// line returns a line of a file that was read.
func (s *sources) line(name string, n int) string {
	text, starts := s.starts(name)
	if n < 1 || n > len(starts) {
		return ""
	}
	line, _, _ := strings.Cut(text[starts[n-1]:], "\n")
	return strings.TrimRight(line, "\r")
}

// position gives line and column of a byte of a file. The position of an
// expression in Scriggo's tree is that of its operator or parenthesis; its
// first byte is what a reader looks for.
func (s *sources) position(name string, start int) (line, column int) {
	text, starts := s.starts(name)
	start = min(start, len(text))
	line = sort.Search(len(starts), func(i int) bool { return starts[i] > start })
	return line, utf8.RuneCountInString(text[starts[line-1]:start]) + 1
}

// has reports whether a text stands at a byte of a file.
func (s *sources) has(name string, start int, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := s.files[name]
	return start <= len(file) && strings.HasPrefix(file[start:], text)
}

// offset is the byte of a file at a line and column; position turned around.
func (s *sources) offset(name string, line, column int) int {
	text, starts := s.starts(name)
	if line > len(starts) {
		return len(text)
	}
	at := starts[max(line, 1)-1]
	for i := range text[at:] {
		if column--; column == 0 {
			return at + i
		}
	}
	return len(text)
}

// entries lists the files that are compiled when the options name none: all
// but those whose base name starts with "_".
func (s *sources) entries() ([]string, error) {
	var names []string
	err := fs.WalkDir(s.fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(path.Base(name), "_") && !isSnippet(name) {
			names = append(names, name)
		}
		return err
	})
	slices.Sort(names)
	return names, err
}
