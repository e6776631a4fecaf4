package templating

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Profile says where the time of a render goes, by line of its templates.
type Profile struct {
	Entry string
	Total time.Duration
	Lines []ProfileLine // those that took the most time first
}

// ProfileLine is what one line of a template took in one render.
type ProfileLine struct {
	File string // template
	Line int    // from 1
	Text string // of that line
	// Count is how often the line was rendered: for a loop, its turns.
	Count int
	// Self is the time spent in the line, with the Go functions that it calls,
	// but without the macros and files: these have lines of their own.
	Self time.Duration
}

// Profile renders an entry and measures each of its lines. Measuring costs time
// too, about the same for each statement, so that the total is several times
// that of [Engine.Render] and short lines seem slower than they are. With an
// error the profile is that of the render up to there.
func (e *Engine) Profile(ctx context.Context, name string, vars map[string]any) (*Profile, error) {
	en, values, err := e.prepare(ctx, name, vars)
	if err != nil {
		return &Profile{Entry: name}, err
	}
	if _, err := en.traced(); err != nil { // compiled now, so that it is not measured
		return &Profile{Entry: name}, e.unlocated(en, err)
	}
	p := newProfiler(time.Now)
	t, err := e.traced(ctx, en, values, "", p)
	if err == nil && len(t.Refused) > 0 {
		err = refusals(t.Refused).err()
	}
	return p.profile(e.src, en), err
}

// Files returns the time of each template, the longest first. Their Line is 0,
// and Count that of their line that was rendered most.
func (p *Profile) Files() []ProfileLine {
	return addUp(p.Lines, func(l ProfileLine) ProfileLine { return ProfileLine{File: l.File} })
}

// String gives a table of the templates and one of the lines that took the most
// time.
func (p *Profile) String() string {
	const most = 40
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v\n", p.Entry, p.Total.Round(time.Microsecond))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(l ProfileLine, where, text string) {
		percent := 100 * float64(l.Self) / float64(max(p.Total, 1))
		fmt.Fprintf(w, "%v\t%.1f%%\t%d\t  %s\n", l.Self.Round(time.Microsecond), percent, l.Count, strings.TrimSpace(where+"  "+text))
	}
	fmt.Fprintf(w, "self\t\tcount\t  template\n")
	for _, l := range p.Files() {
		row(l, l.File, "")
	}
	fmt.Fprintf(w, "self\t\tcount\t  line\n")
	for i, l := range p.Lines {
		if i == most {
			fmt.Fprintf(w, "\t\t\t  and %d lines more\n", len(p.Lines)-most)
			break
		}
		row(l, fmt.Sprintf("%s:%d", l.File, l.Line), strings.TrimSpace(l.Text))
	}
	w.Flush()
	return b.String()
}

// profiler adds up the time between statements.
type profiler struct {
	now   func() time.Time
	start time.Time
	since time.Time
	mark  int
	spots []measured
}

type measured struct {
	count int
	self  time.Duration
}

func newProfiler(now func() time.Time) *profiler { return &profiler{now: now, mark: -1} }

// begin says that a statement begins, resume that one goes on behind a macro.
// Both do nothing without a profiler.
func (p *profiler) begin(mark int) {
	if p != nil {
		p.resume(mark)
		p.spots[mark].count++
	}
}

func (p *profiler) resume(mark int) {
	if p == nil {
		return
	}
	now := p.now()
	if p.mark >= 0 {
		p.spots[p.mark].self += now.Sub(p.since)
	}
	p.mark, p.since = mark, now
}

// run starts the clock, and returns what stops it.
func (p *profiler) run(spots int) (stop func()) {
	if p == nil {
		return func() {}
	}
	p.spots = make([]measured, spots)
	p.start = p.now()
	return func() { p.resume(-1) }
}

func (p *profiler) profile(src *sources, en *entry) *Profile {
	traced, _ := en.traced()
	lines := make([]ProfileLine, 0, len(p.spots))
	for mark, m := range p.spots {
		if m.count > 0 || m.self > 0 {
			s := traced.spots[mark]
			lines = append(lines, ProfileLine{File: s.file, Line: s.line, Count: m.count, Self: m.self})
		}
	}
	lines = addUp(lines, func(l ProfileLine) ProfileLine { return ProfileLine{File: l.File, Line: l.Line} })
	for i, l := range lines {
		lines[i].Text = src.line(l.File, l.Line)
	}
	return &Profile{Entry: en.name, Total: p.since.Sub(p.start), Lines: lines}
}

// addUp adds up the lines of one key, and sorts them by time.
func addUp(lines []ProfileLine, key func(ProfileLine) ProfileLine) []ProfileLine {
	at := map[ProfileLine]int{}
	var out []ProfileLine
	for _, l := range lines {
		k := key(l)
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, k)
		}
		out[i].Self += l.Self
		out[i].Count = max(out[i].Count, l.Count)
	}
	slices.SortStableFunc(out, func(a, b ProfileLine) int { return cmp.Compare(b.Self, a.Self) })
	return out
}
