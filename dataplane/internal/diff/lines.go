package diff

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// children are the keywords of lines that get a step each, because a section may have many
// lines with them. The value says how to identify such a line: by its position, by its name,
// or by both. All other lines are settings of their section.
var children = map[string]identity{
	"acl": byPosition | byName, "http-request": byPosition, "http-response": byPosition, "http-after-response": byPosition,
	"tcp-request": byPosition, "tcp-response": byPosition, "http-check": byPosition, "tcp-check": byPosition,
	"quic-initial": byPosition, "use_backend": byPosition, "use-server": byPosition, "stick": byPosition, "filter": byPosition,
	"capture": byPosition, "declare": byPosition, "log": byPosition, "http-error": byPosition, "load": byPosition,
	"ssl-f-use": byPosition, "redirect": byPosition, "block": byPosition,
	"bind": byName, "dgram-bind": byName, "server": byName, "server-template": byName, "peer": byName, "table": byName,
	"nameserver": byName, "mailer": byName, "user": byName, "group": byName,
}

type identity int

const (
	byPosition identity = 1 << iota
	byName
)

// edit is a difference between the lines of two versions of a section. At least one of old
// and now is set.
type edit struct {
	old, now *config.Line
	index    int // among the lines of its keyword, in the version that has it
}

// lines adds the steps for the edits of a section.
func (d *difference) lines(want *config.Section, edits []edit) {
	d.settings(want, edits)
	// Children that go come first, from the last to the first. Their index counts in the
	// current section. The index of all others counts in the desired one.
	for _, e := range slices.Backward(edits) {
		if e.isChild() && e.now == nil {
			r := rankChange
			if e.old.Keyword() == "acl" {
				r = rankACLGone
			}
			d.add(r, e.step(want))
		}
	}
	for _, comes := range []bool{true, false} {
		for _, e := range edits {
			if e.isChild() && e.now != nil && (e.old == nil) == comes {
				d.add(rankChange, e.step(want))
			}
		}
	}
}

// settings adds one step for all lines that are not children.
func (d *difference) settings(want *config.Section, edits []edit) {
	step := sectionStep(change.Update, want)
	var keywords []string
	for _, e := range edits {
		if !e.isChild() {
			step.Fields = append(step.Fields, e.field())
			keywords = append(keywords, e.keyword())
		}
	}
	if len(keywords) > 0 {
		step.Needs(onlyAtReload(keywords))
		d.add(rankChange, step)
	}
}

func (e edit) line() *config.Line {
	if e.now != nil {
		return e.now
	}
	return e.old
}

func (e edit) isChild() bool { return children[e.line().Keyword()] != 0 }

// step returns the step for a child.
func (e edit) step(want *config.Section) change.Step {
	l := e.line()
	step := change.Step{Action: change.Update, Kind: l.Keyword(), Parent: want.Key().String(), Fields: []change.Field{e.field()}}
	switch {
	case e.old == nil:
		step.Action = change.Create
	case e.now == nil:
		step.Action = change.Delete
	}
	if children[l.Keyword()]&byName != 0 {
		step.Name = childName(l)
	}
	if children[l.Keyword()]&byPosition != 0 {
		step.Index = &e.index
	}
	step.Needs(onlyAtReload([]string{e.keyword()}))
	return step
}

// childName returns the second word or, for a bind line, the word after "name".
func childName(l *config.Line) string {
	words := l.ShowWords()
	if strings.HasSuffix(l.Keyword(), "bind") {
		if i := slices.Index(words, "name"); i > 1 && i+1 < len(words) {
			return words[i+1]
		}
	}
	if len(words) < 2 {
		return ""
	}
	return words[1]
}

// families are keywords whose second word says what the line sets.
var families = []string{"option", "timeout", "stats", "compression", "email-alert", "rate-limit", "hold"}

var isKeyword = regexp.MustCompile(`^[\w.-]+$`)

// keyword returns the words by which a reason names the line.
func (e edit) keyword() string {
	l := e.line()
	words := l.ShowWords()
	if len(words) > 1 && (words[0] == "no" || words[0] == "default") {
		words = words[1:]
	}
	switch {
	case !isKeyword.MatchString(words[0]) || l.Words == nil:
		return Line
	case len(words) > 1 && slices.Contains(families, words[0]) && isKeyword.MatchString(words[1]):
		return words[0] + " " + words[1]
	}
	return words[0]
}

// field returns the words that changed, after the words that both lines begin with.
func (e edit) field() change.Field {
	switch {
	case e.old == nil:
		return change.Field{Name: Line, New: e.now.Show()}
	case e.now == nil:
		return change.Field{Name: Line, Old: e.old.Show()}
	}
	old, now := e.old.ShowWords(), e.now.ShowWords()
	head := 0
	for head < min(len(old), len(now)) && old[head] == now[head] && (old[head] != haproxycfg.Secret || head < min(len(old), len(now))-1) {
		head++
	}
	if head == 0 || head == len(old) && head == len(now) {
		return change.Field{Name: Line, Old: e.old.Show(), New: e.now.Show()}
	}
	name := strings.Join(old[:head], " ")
	old, now = old[head:], now[head:]
	for len(old) > 1 && len(now) > 1 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	return change.Field{Name: name, Old: strings.Join(old, " "), New: strings.Join(now, " ")}
}

// Line is the name of a field that is a whole line.
const Line = "line"

func onlyAtReload(keywords []string) string {
	keywords = slices.Compact(slices.Sorted(slices.Values(keywords)))
	if len(keywords) > 3 {
		return fmt.Sprintf("%s and %d other keywords change only at a reload", strings.Join(keywords[:3], ", "), len(keywords)-3)
	}
	return strings.Join(keywords, ", ") + " can change only at a reload"
}

// editsBetween aligns the lines. If one line goes and another comes in its place, they are
// one update if the second reads as a new version of the first.
func editsBetween(old, now []config.Line) []edit {
	oldIndex, newIndex := positions(old), positions(now)
	var edits []edit
	note := func(i, j int) {
		e := edit{}
		if i >= 0 {
			e.old, e.index = &old[i], oldIndex[i]
		}
		if j >= 0 {
			e.now, e.index = &now[j], newIndex[j]
		}
		edits = append(edits, e)
	}
	for _, h := range align(old, now, config.Line.Equal) {
		i, j := h.oldFrom, h.newFrom
		rest := append(align(old[i:h.oldTo], now[j:h.newTo], similar), hunk{h.oldTo - i, h.oldTo - i, h.newTo - j, h.newTo - j})
		for _, r := range rest {
			for ; i < h.oldFrom+r.oldFrom; i, j = i+1, j+1 {
				note(i, j)
			}
			for ; i < h.oldFrom+r.oldTo; i++ {
				note(i, -1)
			}
			for ; j < h.newFrom+r.newTo; j++ {
				note(-1, j)
			}
		}
	}
	return edits
}

// positions returns the index of each line among those with its keyword, from 0.
func positions(lines []config.Line) []int {
	count := make(map[string]int)
	out := make([]int, len(lines))
	for i, l := range lines {
		out[i] = count[l.Keyword()]
		count[l.Keyword()]++
	}
	return out
}

// similar reports whether one line reads as a new version of the other. Both must have the
// same keyword; children and families must also have the same second word.
func similar(a, b config.Line) bool {
	if a.Words == nil || b.Words == nil || a.Keyword() != b.Keyword() {
		return false
	}
	switch k := a.Keyword(); k {
	case "use_backend", "redirect", "log", "bind":
		return true
	default:
		return children[k] == 0 && !slices.Contains(families, k) || a.Word(1) == b.Word(1)
	}
}
