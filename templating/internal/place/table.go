package place

import (
	"slices"
	"strings"
)

// point is one position in an output, as the text before it determines it: the quotes and
// escapes of its line, and in a configuration HAProxy's position in the line.
type point struct {
	place places
	line  line
}

// Points is the set of points at which the output may be at one point of a
// template. It is a set because branches, loops and shared files reach the same
// point from different texts; usually it has one element. Each rune is the
// index of a point in Table.
type Points string

// Table has the points of one template.
type Table struct {
	Kind   Kind // of the output
	list   []point
	index  map[point]rune
	shapes map[int][]shape // of the words in which a value stands
	lone   map[int]bool    // values that are a whole argument of a sample expression
}

// maxPoints bounds the points at one position of a template. Beyond it the strictest rule
// applies to values.
const maxPoints = 24

func NewTable(k Kind) *Table {
	return &Table{Kind: k, index: map[point]rune{}, shapes: map[int][]shape{}, lone: map[int]bool{}}
}

func (t *Table) set(list ...point) Points {
	runes := make([]rune, 0, len(list))
	for _, s := range list {
		runes = append(runes, t.id(s))
	}
	return t.merge(runes)
}

func (t *Table) merge(runes []rune) Points {
	slices.Sort(runes)
	runes = slices.Compact(runes)
	if len(runes) > maxPoints || slices.ContainsFunc(runes, func(id rune) bool { return t.at(id).line.lost }) {
		runes = t.lose(runes)
	}
	return Points(runes)
}

// lose merges all points with the same quotes into one with an unknown line. It keeps
// points at the start of a line. A merged point stays merged, so the walk around a loop
// ends.
func (t *Table) lose(runes []rune) []rune {
	var kept []rune
	for _, id := range runes {
		p := t.at(id)
		if p.line != (line{}) {
			id = t.id(point{place: p.place, line: line{lost: true, begun: true, text: true, reads: asStrict}})
		}
		if !slices.Contains(kept, id) {
			kept = append(kept, id)
		}
	}
	slices.Sort(kept)
	return kept
}

func (t *Table) id(p point) rune {
	id, ok := t.index[p]
	if !ok {
		id = rune(len(t.list))
		if id >= 0xd800 { // skips the surrogates
			id += 0x800
		}
		t.index[p] = id
		t.list = append(t.list, p)
	}
	return id
}

func (t *Table) at(id rune) point {
	if id >= 0xe000 {
		id -= 0x800
	}
	return t.list[id]
}

func (t *Table) points(p Points) []point {
	var list []point
	for _, id := range p {
		list = append(list, t.at(id))
	}
	return list
}

func (t *Table) Join(p, q Points) Points {
	if p == q || q == "" {
		return p
	}
	return t.merge(append([]rune(p), []rune(q)...))
}

// Start returns the start of an entry.
func (t *Table) Start() Points { return t.set(point{place: t.Kind.start()}) }

// StartApart returns the start of a text that a template may show anywhere, such as a
// macro's.
func (t *Table) StartApart() Points {
	s := point{place: t.Kind.start()}
	if t.Kind == Config {
		s.line.mode, s.line.apart = modeUnknown, true
	}
	return t.set(s)
}

// After returns the points behind a text that starts at p.
func (t *Table) After(p Points, text string) Points {
	if t.Kind == Plain || t.Kind == Unknown || text == "" {
		return p
	}
	list := t.points(p)
	for i := range list {
		list[i] = t.afterOne(list[i], text)
	}
	return t.set(list...)
}

func (t *Table) afterOne(s point, text string) point {
	// Only the first line and the open last line count. A log-format string has no lines.
	if first, last := strings.IndexByte(text, '\n'), strings.LastIndexByte(text, '\n'); first >= 0 && t.Kind != Format {
		for i := range first {
			t.step(&s, text[i])
		}
		t.finish(&s)
		s, text = point{place: t.Kind.start()}, text[last+1:]
	}
	for i := range len(text) {
		t.step(&s, text[i])
	}
	return s
}

// finish ends the word of a point, and notes its shape for each value in it.
func (t *Table) finish(s *point) {
	if word := s.line.shape; word != noShape {
		for _, c := range word {
			if id := int(c - firstHole); id > 0 && !slices.Contains(t.shapes[id], word) {
				t.shapes[id] = append(t.shapes[id], word)
			}
		}
	}
	for _, id := range s.line.lone {
		t.lone[int(id)] = true
	}
	s.line.end()
}

// Finish ends a text of its own.
func (t *Table) Finish(p Points) {
	for _, s := range t.points(p) {
		t.finish(&s)
	}
}

// step reads one byte of a line.
func (t *Table) step(s *point, c byte) {
	before := s.place
	s.place = step(before, c)
	l := &s.line
	switch {
	case t.Kind == Format:
		l.in.stepFormat(c)
		return
	case t.Kind == RegMap && s.place == mapKey, t.Kind == RegList && s.place == listText:
		l.in.stepRegexp(c)
		return
	case t.Kind != Config || before == comment:
		return
	}
	switch before {
	case argument:
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '#':
			t.finish(s)
		case s.place == double || s.place == single:
			l.begin()
		case s.place == argument:
			l.content(c)
		}
	case argEscape, dblEscape:
		l.escaped(c)
	case argHex, argHexEnd, dblHex, dblHexEnd: // the x counts for the digits
	case single:
		if s.place == single {
			l.content(c)
		}
	default: // inside double quotes
		switch {
		case s.place == double && before != dblBrace:
			l.content(c)
		case s.place == dblDollar:
			l.content(0)
		}
	}
}

// escaped reads a byte behind a backslash.
func (l *line) escaped(c byte) {
	switch c {
	case ' ', '#', '"', '\'', '\\', '$':
		l.content(c)
	case 'n', 'r', 't', 'x':
		l.content(0)
	default:
		l.content('\\')
		l.content(c)
	}
}

// AfterValue returns the points behind a shown value.
func (t *Table) AfterValue(p Points, id int) Points {
	list := t.points(p)
	for i := range list {
		list[i].place = afterValue(list[i].place)
		if t.Kind == Config && list[i].place != comment {
			list[i].line.shown(id)
		}
	}
	return t.set(list...)
}

// rule says how escape treats a value at a point.
type rule struct {
	place   places
	reads   what
	first   bool // nothing stands before the value in the word or the argument
	lead    bool // at most other values stand before it there
	word    bool // no text of the template stands before the value in the word
	bare    bool // nothing stands before the value in the word, not even a quote
	negated bool // behind the ! of a condition
	arg     bool // it is an argument of a sample fetch or converter
	named   bool // the argument must not be empty
	quote   sampleState

	key  string // the keyword or option that the table does not know, or the name of the fetch
	form *form  // the options of the line, if HAProxy may read the value as one

	numeric bool // it may be a numeric pattern
	cast    bool // behind a sample expression, where a converter may stand
}

// rules returns the rules for a value at all points of a set, or says why it cannot stand
// there.
func (t *Table) rules(p Points) (rules []rule, problem string) {
	var set places
	for _, s := range t.points(p) {
		set |= s.place
	}
	place, problem := placeFor(set)
	if problem != "" {
		return nil, problem
	}
	for _, s := range t.points(p) {
		if s.place == comment && place != comment {
			continue // a value that is safe as an argument is safe in a comment
		}
		if t.Kind != Config || s.place == comment {
			s.line = t.Kind.line(s)
		}
		r, problem := s.rule()
		if problem != "" {
			return nil, problem
		}
		if !slices.Contains(rules, r) {
			rules = append(rules, r)
		}
	}
	return rules, ""
}

// line returns the line of a value in a comment, or in a file that is no configuration.
func (k Kind) line(s point) line {
	l := line{begun: true, reads: asComment}
	switch {
	case s.place == comment:
	case k == Unknown || s.line.lost:
		l.reads = asStrict
	case k == RegMap && s.place != mapValue, k == RegList:
		l.reads, l.in = asRegexp, s.line.in
	case k == Format:
		l.reads, l.in = asFormat, s.line.in
	case s.place == crtStart || s.place == crtPath:
		l.reads, l.in.begun = asFile, s.place == crtPath
	case s.place == crtOption:
		l.reads = asCRTOption
	case s.place == crtOptionText:
		l.reads = asStrict
	case s.place == crtWord:
		l.reads = asSNI
	}
	return l
}

func (s point) rule() (r rule, problem string) {
	l := s.line
	r = rule{place: s.place, word: !l.text, bare: !l.begun, negated: l.begun && l.shape == "" && l.mode == modeCondition, key: l.key}
	l.begin()
	r.reads, r.first, r.lead = l.reads, !l.in.begun, !l.in.text
	r.numeric = l.numeric && (r.reads == asPattern || r.reads == asLater)
	r.cast = l.cast && l.mode == modeFlags
	if r.reads == asValue || r.reads == asWord && l.loose {
		r.form = l.form
	}
	in := l.in
	if readings[r.reads].format {
		switch in.format {
		case formatText:
			return r, ""
		case formatSample:
			return r.inSample(in)
		default:
			return r, "a value cannot stand right behind a % or in a variable of a log-format string: write %% for a percent sign"
		}
	}
	switch r.reads {
	case asNumber:
		if in.sample == sampleName && r.first {
			return r, ""
		}
		return r.inSample(in)
	case asSample:
		return r.inSample(in)
	case asRegexp:
		return r, in.regexpProblem()
	case asAddress, asListen, asSocket:
		if in.socket != 0 {
			r.reads = in.socket
		}
	case asWord, asOption, asUnknown, asKeyword, asList:
		if in.inside != 0 {
			r.reads = in.inside
		}
	}
	return r, ""
}

// BeginsText reports whether a value at p may be the first word of a text that may stand
// anywhere.
func (t *Table) BeginsText(p Points) bool {
	return slices.ContainsFunc(t.points(p), func(s point) bool {
		r, _ := s.rule()
		return t.Kind == Config && s.place != comment && r.reads == asUnknown
	})
}

func (in *inner) regexpProblem() string {
	if in.slash || in.class != classNone {
		return "a value cannot stand behind a backslash, in brackets or behind \\Q of a regular expression"
	}
	return ""
}

// inSample turns the rule into one for an argument of a sample expression.
func (r rule) inSample(in inner) (rule, string) {
	switch in.sample {
	case sampleName, sampleEnd:
		r.reads = asFetch
		return r, ""
	case sampleSlash, sampleQuoted:
		return r, `a value cannot stand right behind a backslash of a sample expression: write \\ for a backslash`
	}
	r.reads, r.arg, r.quote, r.key, r.form = in.reads(), true, in.sample, in.name, nil
	r.named = r.first && !in.takesEmpty()
	if r.reads == asRegexp {
		return r, in.regexpProblem()
	}
	return r, ""
}
