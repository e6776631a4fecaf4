package haproxymodel

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	parser "github.com/haproxytech/client-native/v6/config-parser"
	"github.com/haproxytech/client-native/v6/config-parser/options"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// Parse reads sections into models, in one pass of client-native's parser
// where that is sound. The result has one Section for each input, in the same
// order. What the models cannot hold has an error, see [Section.Err], and
// harms no other section. Several sections may have one kind and name. Safe for
// concurrent use.
func Parse(inputs []Input) []*Section {
	sections := make([]*Section, len(inputs))
	var pending []*Section
	for i, input := range inputs {
		sections[i] = newSection(input)
		if sections[i].err == nil {
			pending = append(pending, sections[i])
		}
	}
	for len(pending) > 0 {
		var batch, rest []*Section
		single := map[*Kind]bool{} // the parser has one of these at a time
		for _, s := range pending {
			if s.Kind.Single && single[s.Kind] {
				rest = append(rest, s)
				continue
			}
			single[s.Kind] = true
			batch = append(batch, s)
		}
		haproxycfg.WithParser(func() { readBatch(batch) })
		pending = rest
	}
	return sections
}

// newSection takes the text of a section apart, without the parser.
func newSection(in Input) *Section {
	s := &Section{Kind: KindOf(in.Kind), Name: in.Name, Line: in.Header}
	number := in.Line - 1
	inBody := in.Kind == "" // what stands before the first header has none
	for raw := range strings.Lines(in.Text) {
		number++
		raw = strings.Trim(strings.TrimSuffix(strings.TrimSuffix(raw, "\n"), "\r"), " \t")
		if raw == "" || raw[0] == '#' {
			continue
		}
		words, end, err := cut(raw)
		if err == nil && len(words) == 0 {
			continue
		}
		text := strings.TrimRight(raw[:end], " \t")
		if strings.HasSuffix(text, `\`) {
			text = raw[:end] // the blank behind it belongs to it
		}
		l := line{Line: Line{Number: number, Text: text}, words: words, exact: strings.Join(words, separator)}
		switch {
		case err != nil:
			l.words, l.exact = []string{text}, text
			s.unsupported(in.Kind, l, err.Error())
		case strings.HasPrefix(words[0], "."):
			s.unsupported(in.Kind, l, "the models have no conditional blocks")
		case len(text) > maxLine:
			s.unsupported(in.Kind, l, "the line is too long for client-native")
		}
		if inBody {
			l.Child = s.childOf(words)
			s.lines = append(s.lines, l)
			continue
		}
		inBody = true
		s.header(in, l)
	}
	if s.Kind == nil {
		why := "the models have no such section"
		if in.Kind == "" {
			why = "no section header stands above"
		}
		s.unsupported(in.Kind, line{Line: Line{Number: in.Header, Text: in.Kind}}, why)
	}
	return s
}

// maxLine is the length of a line that client-native reads for sure: the
// buffer of its scanner has 64 KiB.
const maxLine = 64<<10 - 16

func (s *Section) unsupported(kind string, l line, why string) {
	if s.err == nil {
		s.err = &UnsupportedError{Kind: kind, Name: s.Name, Line: l.Number, Text: l.Redacted(), Why: why}
	}
}

// header reads what the header tells beside kind and name. What it does not
// understand makes the header a line like any other.
func (s *Section) header(in Input, l line) {
	rest := l.words[1:]
	if len(rest) > 0 && rest[0] != "from" {
		rest = rest[1:]
	}
	switch in.Kind {
	case "frontend", "backend", "defaults":
		if len(rest) >= 2 && rest[0] == "from" {
			s.From, rest = rest[1], rest[2:]
		} else if in.Kind != "defaults" {
			s.From = in.From
		}
	}
	if len(rest) > 0 {
		s.lines = append(s.lines, l)
		s.oddHeader = true
	}
}

// childOf tells which collection a line belongs to by its first word.
func (s *Section) childOf(words []string) *Child {
	if s.Kind == nil || len(words) == 0 {
		return nil
	}
	word := words[0]
	if word == "no" && len(words) > 1 {
		word = words[1]
	}
	return s.Kind.byWord[word]
}

// body returns the lines below the header.
func (s *Section) body() []line {
	if s.oddHeader {
		return s.lines[1:]
	}
	return s.lines
}

// readBatch reads sections of which none has an error yet. If the parser
// panics, it looks for the section that makes it do so.
func readBatch(batch []*Section) {
	p, why := parseText(batchText(batch))
	switch {
	case p != nil:
		known := map[string]any{}
		for i, s := range batch {
			s.read(p, parserName(s.Kind, i), known)
		}
	case len(batch) == 1:
		s := batch[0]
		s.unsupported(s.Kind.Name, line{Line: Line{Number: s.Line}}, why)
	default:
		half := len(batch) / 2
		readBatch(batch[:half])
		readBatch(batch[half:])
	}
}

// parserName is the name under which the parser knows the i-th section, so
// that no two are equal and none needs quotes.
func parserName(k *Kind, i int) string {
	if k.Single {
		if k.Name == "global" {
			return parser.GlobalSectionName
		}
		return parser.TracesSectionName
	}
	return "s" + strconv.Itoa(i)
}

// batchText is the text of sections without comments.
func batchText(batch []*Section) string {
	var b strings.Builder
	for i, s := range batch {
		b.WriteString(s.Kind.Name)
		if !s.Kind.Single {
			b.WriteString(" " + parserName(s.Kind, i))
		}
		b.WriteByte('\n')
		for _, g := range s.Kind.gates {
			if !s.has(g.word) {
				b.WriteString(g.word + " x\n")
			}
		}
		for _, l := range s.body() {
			b.WriteString(l.Text)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// has reports whether a line of the section starts with a word.
func (s *Section) has(word string) bool {
	for _, l := range s.body() {
		if l.words[0] == word {
			return true
		}
	}
	return false
}

func parseText(text string) (p parser.Parser, why string) {
	defer func() {
		if r := recover(); r != nil {
			p, why = nil, "client-native cannot read this section: it panics"
		}
	}()
	p, err := parser.New(options.String(text), options.NoNamedDefaultsFrom)
	if err != nil {
		return nil, "client-native cannot read this section: " + err.Error()
	}
	return p, ""
}

// read makes the model of a section. What the section itself says is read once
// for all that say the same, which is most of the work; known remembers it.
func (s *Section) read(p parser.Parser, name string, known map[string]any) {
	same := s.Kind.Name + separator + s.said(nil)
	model, ok := known[same]
	if !ok {
		var err error
		model, err = guard(func() (any, error) { return s.Kind.parse(p, name) })
		if err != nil {
			s.unsupported(s.Kind.Name, line{Line: Line{Number: s.Line}}, err.Error())
			return
		}
		known[same] = model
	}
	v := reflect.New(s.Kind.model).Elem()
	v.Set(reflect.ValueOf(model).Elem())
	model = v.Addr().Interface()
	setName(v, s.Name)
	if from := v.FieldByName("From"); from.IsValid() {
		from.SetString(s.From)
	}
	for _, g := range s.Kind.gates {
		if !s.has(g.word) {
			v.FieldByName(g.field).SetString("")
		}
	}
	s.model = model
	s.order = map[*Child][]string{}
	done := map[*Child]bool{}
	for _, l := range s.body() {
		if c := l.Child; c != nil && !done[c] {
			done[c] = true
			s.readChildren(c, p, name, v)
		}
	}
}

// readChildren reads one collection. When client-native cannot read it, it
// stays empty, and its lines are not modelled.
func (s *Section) readChildren(c *Child, p parser.Parser, name string, model reflect.Value) {
	list, err := guard(func() (any, error) { return c.parse(p, name) })
	if err != nil {
		return
	}
	from, to := reflect.ValueOf(list), model.FieldByIndex(c.index)
	if c.slice {
		to.Set(from)
		return
	}
	if from.Len() == 0 {
		return
	}
	children := reflect.MakeMapWithSize(to.Type(), from.Len())
	for i := range from.Len() {
		child := from.Index(i).Elem()
		key := child.FieldByName(c.Key)
		if !children.MapIndex(key).IsValid() {
			s.order[c] = append(s.order[c], key.String())
		}
		children.SetMapIndex(key, child)
	}
	to.Set(children)
}

// setName names the model after the section.
func setName(model reflect.Value, name string) {
	switch field := model.FieldByName("Name"); {
	case !field.IsValid():
	case field.Kind() == reflect.Pointer:
		field.Set(reflect.ValueOf(&name))
	default:
		field.SetString(name)
	}
}

// guard makes an error of a panic: client-native does so on some lines that
// are too short.
func guard[T any](f func() (T, error)) (result T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("client-native panics: %v", r)
		}
	}()
	return f()
}

// said returns the lines of a collection, for nil of the section itself:
// where they are equal, so are the models.
func (s *Section) said(c *Child) string {
	if s.says == nil {
		s.says = map[*Child]string{}
		texts := map[*Child][]string{}
		for _, l := range s.body() {
			texts[l.Child] = append(texts[l.Child], l.Text)
		}
		for c, lines := range texts {
			s.says[c] = strings.Join(lines, "\n")
		}
	}
	return s.says[c]
}

// sameLines reports that two sections, whose models are as they were read, say
// the same of a collection, for nil of themselves.
func sameLines(a, b *Section, c *Child) bool {
	return !a.changed && !b.changed && a.said(c) == b.said(c)
}
