package reconcile

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
)

// PostProcessor changes what templates rendered: it replaces what a regular
// expression matches, or squeezes blank lines. It works line by line, so that
// every line is still known by the template that wrote it.
//
// [Templates] applies the replacements of all its processors in their order,
// then squeezes.
type PostProcessor struct {
	// Pattern is a regular expression of Go, and Replacement what takes the
	// place of its matches, with $1 or ${name} for groups. Each line is matched on
	// its own, without its end: ^ and $ are those of the line. A replacement
	// cannot have line feeds.
	Pattern     string
	Replacement string

	// Squeeze makes one blank line of several, and takes them away at the start
	// and at the end of the text.
	Squeeze bool

	// Files says what is changed, by kind and name, such as "map/*.map", with
	// the patterns of [path.Match] and the kinds of [dataplane.FileKind]. Zero
	// means haproxy.cfg.
	Files string
}

// Check says what is wrong with a processor.
func (p PostProcessor) Check() error {
	_, err := p.compile()
	return err
}

// Apply returns the text as the processor leaves it and, where lines have moved,
// for each of its lines the number of the line that it was before, both from 1:
// lines[0] is that of line 1. A nil lines says that none moved. Its error is
// that of [PostProcessor.Check].
func (p PostProcessor) Apply(text string) (out string, lines []int, err error) {
	c, err := p.compile()
	if err != nil {
		return "", nil, err
	}
	out = c.replaceLines(text)
	if p.Squeeze {
		out, lines = squeeze(out)
	}
	return out, lines, nil
}

// compiledProcessor is a processor that can run.
type compiledProcessor struct {
	PostProcessor
	re      *regexp.Regexp // nil: nothing to replace
	literal string         // without which no line matches; "" if that is not known
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

// checkGroups refuses a replacement that names a group which is not there: Go
// would put nothing in its place.
func (c *compiledProcessor) checkGroups() error {
	for _, m := range groupNames.FindAllStringSubmatch(strings.ReplaceAll(c.Replacement, "$$", ""), -1) {
		name := m[1] + m[2]
		if c.re.SubexpIndex(name) < 0 && !isGroupNumber(name, c.re.NumSubexp()) {
			return fmt.Errorf("post-processor %q: the replacement %q names the group %q, which is not there (write ${1}x for group 1 before x, $$ for $)",
				c.Pattern, c.Replacement, name)
		}
	}
	return nil
}

var groupNames = regexp.MustCompile(`\$(?:\{([\p{L}\p{Nd}_]+)\}|([\p{L}\p{Nd}_]+))`) // constant in effect

func isGroupNumber(name string, most int) bool {
	var n int
	_, err := fmt.Sscanf(name, "%d", &n)
	return err == nil && fmt.Sprint(n) == name && n <= most
}

// replaceLines replaces within each line. It returns the same string where
// nothing matches.
func (c *compiledProcessor) replaceLines(text string) string {
	if c.re == nil || text == "" || !strings.Contains(text, c.literal) {
		return text
	}
	var b strings.Builder
	done := 0 // bytes of text that are in b, or would be
	at := 0
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if strings.Contains(body, c.literal) && c.re.MatchString(body) {
			if with := c.re.ReplaceAllString(body, c.Replacement); with != body {
				b.WriteString(text[done:at])
				b.WriteString(with)
				done = at + len(body)
			}
		}
		at += len(line)
	}
	if done == 0 && b.Len() == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// squeeze makes one blank line of several, and none of those at the start and
// the end. lines is nil where nothing changed.
func squeeze(text string) (out string, lines []int) {
	if !squeezable(text) {
		return text, nil
	}
	var b strings.Builder
	b.Grow(len(text))
	lines = []int{}
	n, blank := 0, 0 // blank: the number of a blank line that is kept if text follows
	var kept string
	for line := range strings.Lines(text) {
		n++
		if isBlankLine(line) {
			if blank == 0 && len(lines) > 0 {
				blank, kept = n, line
			}
			continue
		}
		if blank > 0 {
			b.WriteString(kept)
			lines = append(lines, blank)
			blank = 0
		}
		b.WriteString(line)
		lines = append(lines, n)
	}
	return b.String(), lines
}

// squeezable reports whether squeeze would change the text.
func squeezable(text string) bool {
	blank, first := false, true
	for line := range strings.Lines(text) {
		now := isBlankLine(line)
		if now && (blank || first) {
			return true
		}
		blank, first = now, false
	}
	return blank
}

func isBlankLine(line string) bool {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ', '\t', '\r', '\n':
		default:
			return false
		}
	}
	return true
}

// postProcessing is all processors of a [Templates], compiled.
type postProcessing struct {
	from []PostProcessor // what they were compiled from
	all  []*compiledProcessor
}

// postProcessing compiles the processors when they are new.
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
	s.post = p
	t.remembered = nil // texts that other processors made
	return p, nil
}

// replace replaces in a part of haproxy.cfg that begins and ends with a line.
func (p *postProcessing) replace(text string) string {
	for _, c := range p.all {
		if c.Files == "" {
			text = c.replaceLines(text)
		}
	}
	return text
}

// squeeze squeezes the whole haproxy.cfg; see [PostProcessor.Apply] for lines.
func (p *postProcessing) squeeze(text string) (out string, lines []int) {
	for _, c := range p.all {
		if c.Files == "" && c.Squeeze {
			return squeeze(text)
		}
	}
	return text, nil
}

// files changes the files that a processor is for.
func (p *postProcessing) files(files []dataplane.File) []dataplane.File {
	if !slices.ContainsFunc(p.all, func(c *compiledProcessor) bool { return c.Files != "" }) {
		return files
	}
	files = slices.Clone(files)
	for i, f := range files {
		squeezed := false
		text := string(f.Content)
		for _, c := range p.all {
			if ok, _ := path.Match(c.Files, string(f.Kind)+"/"+f.Name); ok && c.Files != "" {
				text = c.replaceLines(text)
				squeezed = squeezed || c.Squeeze
			}
		}
		if squeezed {
			text, _ = squeeze(text)
		}
		if text != string(f.Content) {
			files[i].Content = []byte(text)
		}
	}
	return files
}
