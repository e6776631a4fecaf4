package place

// AfterText returns the points behind the text of a macro. Unlike a value, the text may end
// a line, or be empty.
func (t *Table) AfterText(p Points, id int) Points {
	if t.Kind == Config {
		return t.Join(t.AfterValue(p, id), t.set(point{place: argument, line: line{mode: modeUnknown}}))
	}
	list := t.points(p)
	for _, s := range list {
		if s.place != comment && s.place != plain {
			list = append(list, point{place: t.Kind.start()}, point{place: afterValue(t.Kind.start())})
		}
	}
	return t.set(list...)
}

// Ending is how the text of a macro ends.
type Ending uint8

const (
	EndsAnyhow Ending = iota // it may have several words, and leave its line open
	EndsWord                 // it is one word, or a part of one
	EndsLine                 // it ends its line
	MayBeEmpty Ending = 4    // or it writes nothing
)

// Ending returns how the text of a macro ends; p is the end of its body.
func (t *Table) Ending(p Points) Ending {
	ends, empty := EndsLine|EndsWord, Ending(0)
	for _, s := range t.points(p) {
		l := s.line
		if t.Kind != Config || s.place != argument {
			return EndsAnyhow
		}
		apart := l.apart && l.mode == modeUnknown
		switch {
		case apart && !l.begun:
			empty = MayBeEmpty
		case apart:
			ends &^= EndsLine
		case l == line{}:
			ends &^= EndsWord
		default:
			return EndsAnyhow
		}
	}
	if ends == EndsLine|EndsWord || ends == 0 {
		return EndsAnyhow
	}
	return ends | empty
}

// AfterMacro returns the points behind the text of a macro with a known ending.
func (t *Table) AfterMacro(p Points, id int, end Ending) Points {
	after := t.AfterValue(p, id)
	switch end &^ MayBeEmpty {
	case EndsAnyhow:
		return t.AfterText(p, id)
	case EndsLine:
		after = t.After(after, "\n")
	}
	if end&MayBeEmpty != 0 {
		after = t.Join(after, p)
	}
	return after
}
