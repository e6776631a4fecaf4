package render

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
)

// PostProcessor changes what templates rendered: it replaces the matches of a regular
// expression, or squeezes blank lines. It works line by line, so the template that wrote a
// line stays known.
//
// [Templates] applies the replacements of all its processors in their order. Then it
// squeezes.
type PostProcessor struct {
	// Pattern is a regular expression of Go. Replacement takes the place of its matches,
	// with $1 or ${name} for groups. Each line is matched alone, without its end: ^ and $
	// are those of the line. A replacement cannot have line feeds.
	Pattern     string
	Replacement string

	// Squeeze makes one blank line of several, and removes them at the start and at the end
	// of the text.
	Squeeze bool

	// Name stands for the processor in errors. Zero: its pattern.
	Name string

	// Files selects the files to change, by kind and name, such as "map/*.map". It takes the
	// patterns of [path.Match] and the kinds of [dataplane.FileKind]. Zero means
	// haproxy.cfg.
	Files string
}

// Check returns what is wrong with a processor.
func (p PostProcessor) Check() error {
	_, err := p.compile()
	return err
}

// compiledProcessor is a processor that can run.
type compiledProcessor struct {
	PostProcessor
	re      *regexp.Regexp // nil: nothing to replace
	literal string         // no line matches without it; "" if not known
}

func (p PostProcessor) compile() (*compiledProcessor, error) {
	c := &compiledProcessor{PostProcessor: p}
	switch {
	case p.Pattern == "" && p.Replacement != "":
		return nil, errors.New("post-processor: a replacement without a pattern")
	case p.Pattern == "" && !p.Squeeze:
		return nil, errors.New("post-processor: neither a pattern nor Squeeze")
	case strings.ContainsFunc(p.Replacement, func(r rune) bool { return isControl(r) && r != '\t' }):
		return nil, fmt.Errorf("post-processor %q: the replacement %q has a line feed or another control character", p.Pattern, p.Replacement)
	}
	if _, err := path.Match(p.Files, ""); err != nil {
		return nil, fmt.Errorf("post-processor: files %q: %w", p.Files, err)
	}
	if kind, _, ok := strings.Cut(p.Files, "/"); p.Files != "" && (!ok || kind == "") {
		return nil, fmt.Errorf("post-processor: files %q: want a kind and a name, such as map/*.map", p.Files)
	}
	if p.Pattern == "" {
		return c, nil
	}
	var err error
	if c.re, err = regexp.Compile(p.Pattern); err != nil {
		return nil, fmt.Errorf("post-processor: %w", err)
	}
	c.literal, _ = c.re.LiteralPrefix()
	return c, c.checkGroups()
}

// checkGroups refuses a replacement that names a missing group: Go would put an empty text
// in its place.
func (c *compiledProcessor) checkGroups() error {
	for _, m := range groupNames.FindAllStringSubmatch(strings.ReplaceAll(c.Replacement, "$$", ""), -1) {
		name := m[1] + m[2]
		n, err := strconv.Atoi(name)
		if err == nil && strconv.Itoa(n) == name && n <= c.re.NumSubexp() || c.re.SubexpIndex(name) >= 0 {
			continue
		}
		return fmt.Errorf("post-processor %q: the replacement %q names the group %q, which is not there (write ${1}x for group 1 before x, $$ for $)",
			c.Pattern, c.Replacement, name)
	}
	return nil
}

var groupNames = regexp.MustCompile(`\$(?:\{([\p{L}\p{Nd}_]+)\}|([\p{L}\p{Nd}_]+))`) // constant in effect

// replaceLines replaces within each line. It returns the same string if nothing matches.
func (c *compiledProcessor) replaceLines(text string) string {
	if c.re == nil || !strings.Contains(text, c.literal) {
		return text
	}
	var b strings.Builder
	changed := false
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if strings.Contains(body, c.literal) && c.re.MatchString(body) {
			with := c.re.ReplaceAllString(body, c.Replacement)
			changed = changed || with != body
			b.WriteString(with)
			b.WriteString(line[len(body):])
		} else {
			b.WriteString(line)
		}
	}
	if !changed {
		return text
	}
	return b.String()
}

// changedBy names the processors that change a line of an entry.
func (p *postProcessing) changedBy(line, entry string) string {
	var names []string
	kind, _ := kindOfEntry(entry)
	for _, c := range p.all {
		ofFile, _ := path.Match(c.Files, string(kind)+"/"+path.Base(entry))
		if isMain(entry) && c.Files != "" || !isMain(entry) && !ofFile {
			continue
		}
		if changed := c.replaceLines(line); changed != line {
			names, line = append(names, cmp.Or(c.Name, "the post-processor "+strconv.Quote(c.Pattern))), changed
		}
	}
	return strings.Join(names, " and ")
}

// squeeze makes one blank line of several, and removes those at the start and the end. moved
// has, for each line of out, its number in text, both from 1: moved[0] is that of line 1.
func squeeze(text string) (out string, moved []int) {
	var b strings.Builder
	b.Grow(len(text))
	n, blankLine, blank := 0, 0, "" // the blank line that is kept if text follows
	for line := range strings.Lines(text) {
		n++
		if strings.Trim(line, " \t\r\n") == "" {
			if blank == "" && len(moved) > 0 {
				blankLine, blank = n, line
			}
			continue
		}
		if blank != "" {
			b.WriteString(blank)
			moved = append(moved, blankLine)
			blank = ""
		}
		b.WriteString(line)
		moved = append(moved, n)
	}
	return b.String(), moved
}

// postProcessing is all processors of a [Templates], compiled.
type postProcessing struct {
	from []PostProcessor // what they were compiled from
	all  []*compiledProcessor
}

// postProcessing compiles the processors if they changed.
func (t *Templates) postProcessing() (*postProcessing, error) {
	s := &t.settling
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.post != nil && slices.Equal(s.post.from, t.Post) {
		return s.post, nil
	}
	p := &postProcessing{from: slices.Clone(t.Post)}
	var errs []error
	for _, processor := range t.Post {
		c, err := processor.compile()
		errs = append(errs, err)
		p.all = append(p.all, c)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s.post = p // other texts: see newRun
	return p, nil
}

// replace replaces in a part of haproxy.cfg that consists of whole lines.
func (p *postProcessing) replace(text string) string {
	for _, c := range p.all {
		if c.Files == "" {
			text = c.replaceLines(text)
		}
	}
	return text
}

// squeezes reports whether a processor squeezes the whole haproxy.cfg.
func (p *postProcessing) squeezes() bool {
	return slices.ContainsFunc(p.all, func(c *compiledProcessor) bool { return c.Files == "" && c.Squeeze })
}

// files applies the processors to their files. moved has the line numbers of files whose
// lines have moved.
func (p *postProcessing) files(given []dataplane.File) (files []dataplane.File, moved map[dataplane.Position][]int) {
	files, moved = given, map[dataplane.Position][]int{}
	if len(p.all) == 0 {
		return files, moved
	}
	files = slices.Clone(given)
	for i, f := range files {
		squeezed := false
		for _, c := range p.all {
			if ok, _ := path.Match(c.Files, string(f.Kind)+"/"+f.Name); ok {
				files[i].Content = []byte(c.replaceLines(string(files[i].Content)))
				squeezed = squeezed || c.Squeeze
			}
		}
		if squeezed {
			text, lines := squeeze(string(files[i].Content))
			files[i].Content, moved[dataplane.Position{Kind: f.Kind, Name: f.Name}] = []byte(text), lines
		}
	}
	return files, moved
}
