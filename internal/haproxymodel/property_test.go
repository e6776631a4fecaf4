package haproxymodel

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// checkPair checks what must hold for any two texts of one section.
func checkPair(t *testing.T, kind, before, after string) {
	t.Helper()
	header := headerOf(kind)
	inputs := []Input{
		{Section: haproxycfg.Section{Kind: kind, Name: "x", Line: 1, Header: 1, Text: header + before}},
		{Section: haproxycfg.Section{Kind: kind, Name: "x", Line: 1, Header: 1, Text: header + after}},
	}
	both := Parse(inputs)
	old, new := both[0], both[1]
	for i, s := range both {
		alone := Parse(inputs[i : i+1])[0]
		if (alone.Err() == nil) != (s.Err() == nil) {
			t.Fatalf("alone %v, with others %v", alone.Err(), s.Err())
		}
		alone.changed = true // compare field by field
		if d, l := Diff(s, alone), DiffLines(s, alone); len(d)+len(l) > 0 {
			t.Fatalf("a section differs from itself: %+v %+v\n%s", d, l, inputs[i].Text)
		}
		checkNothingHidden(t, s)
	}
	steps, lines := Diff(old, new), DiffLines(old, new)
	if len(steps)+len(lines) == 0 && old.Err() == nil && !maps.Equal(meaning(old), meaning(new)) {
		t.Fatalf("no difference between\n%s\nand\n%s", before, after)
	}
	if old.Err() != nil || new.Err() != nil {
		return
	}
	if err := old.Apply(steps); err != nil {
		t.Fatalf("Apply: %v\n%s\nto\n%s", err, before, after)
	}
	if left := Diff(old, new); len(left) > 0 {
		t.Fatalf("left after Apply: %+v\n%s\nto\n%s", left, before, after)
	}
}

// checkNothingHidden checks that every line is in what the model writes or is
// told as not modelled.
func checkNothingHidden(t *testing.T, s *Section) {
	t.Helper()
	if s.Err() != nil {
		return
	}
	lost := map[int]bool{}
	for _, l := range s.Unmodelled() {
		lost[l.Number] = true
	}
	for _, l := range s.lines {
		if lost[l.Number] {
			continue
		}
		found := false
		for _, text := range s.write(l.Child) {
			words, _, err := cut(text)
			found = found || err == nil && loose(words) == loose(l.words)
		}
		if !found {
			t.Fatalf("line %q is nowhere", l.Text)
		}
	}
}

// meaning counts the lines of a section; of the section's own directives equal
// ones count once.
func meaning(s *Section) map[string]int {
	count := map[string]int{}
	for _, l := range s.lines {
		if l.Child == nil {
			count[loose(l.words)] = 1
		} else {
			count[loose(l.words)]++
		}
	}
	return count
}

// TestRandomSections makes sections of the example lines and changes them.
func TestRandomSections(t *testing.T) {
	lines := map[string][]string{}
	for _, e := range allExamples() {
		lines[e.section] = append(lines[e.section], e.line, e.changed)
	}
	for _, kind := range []string{"defaults", "frontend", "backend"} {
		lines[kind] = append(lines[kind], "mode http", "mode tcp", "timeout client 5s", "timeout client 5000", "option httplog",
			"no option httplog", "fullconn 5", "foo bar", "http-request set-header X \"a b\" if { path /a }", "tcp-request",
			"http-request set-header X a\\ b if { path /a }", "server b 127.0.0.1:1 weight 5 check", "server b 127.0.0.1:1 check weight 5",
			"cookie A insert indirect", "stick-table type ip size 1m", "stats enable", "stats auth a:b", "balance roundrobin", "default-server check")
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, kind := range slices.Sorted(maps.Keys(lines)) {
		t.Run(kind, func(t *testing.T) {
			for range 150 {
				var before []string
				for range random.IntN(8) {
					before = append(before, lines[kind][random.IntN(len(lines[kind]))])
				}
				after := slices.Clone(before)
				for range random.IntN(4) {
					i := random.IntN(len(after) + 1)
					switch {
					case i < len(after) && random.IntN(2) == 0:
						after = slices.Delete(after, i, i+1)
					case len(after) > 1 && random.IntN(3) == 0:
						random.Shuffle(len(after), func(i, j int) { after[i], after[j] = after[j], after[i] })
					default:
						after = slices.Insert(after, i, lines[kind][random.IntN(len(lines[kind]))])
					}
				}
				checkPair(t, kind, strings.Join(before, "\n")+"\n", strings.Join(after, "\n")+"\n")
			}
		})
	}
}

// TestNormalised compares sections with what the Dataplane API stores of them.
func TestNormalised(t *testing.T) {
	compared := 0
	for _, k := range Kinds() {
		if k.Name == "defaults" {
			continue // compared with each frontend and backend
		}
		var body strings.Builder
		for _, e := range allExamples() {
			if e.section == k.Name {
				body.WriteString("\t" + e.line + "   # a comment\n")
			}
		}
		text := headerOf(k.Name) + body.String()
		normal, err := haproxycfg.Normalise(text)
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
			continue
		}
		for _, s := range haproxycfg.Split(normal) {
			if s.Kind != k.Name {
				continue
			}
			compared++
			both := Parse([]Input{{Section: haproxycfg.Split(text)[0]}, {Section: s}})
			both[0].changed = true
			if d, l := Diff(both[0], both[1]), DiffLines(both[0], both[1]); len(d)+len(l) > 0 {
				t.Errorf("%s: %+v %+v\n%s\nto\n%s", k.Name, d, l, text, s.Text)
			}
		}
	}
	if compared < 17 {
		t.Errorf("only %d sections compared", compared)
	}
}

func FuzzPair(f *testing.F) {
	kinds := Kinds()
	for i, k := range kinds {
		for _, e := range allExamples() {
			if e.section == k.Name {
				f.Add(uint8(i), e.line, e.changed)
			}
		}
	}
	f.Add(uint8(3), "server a 1.1.1.1:1 \"$X\" # c\n\x00", "server a 1.1.1.1:1 '$X' \\\\#")
	f.Fuzz(func(t *testing.T, kind uint8, before, after string) {
		k := kinds[int(kind)%len(kinds)]
		for _, body := range []string{before, after} {
			// The text of a section is what Split makes of it.
			if len(haproxycfg.Split(headerOf(k.Name)+body)) != 1 {
				return
			}
		}
		checkPair(t, k.Name, before+"\n", after+"\n")
	})
}

// FuzzCut checks that marks are the only difference to Fields.
func FuzzCut(f *testing.F) {
	for _, line := range []string{`a "b $c" '$d' # e`, `\\# a`, "a\x00b", `"\x00$"`, "\x02\"$x\"\x02 v", `a "\$x" \$y`, `\x02v`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text, _, _ = strings.Cut(text, "\n")
		text = strings.TrimSuffix(text, "\r")
		want, wantErr := haproxycfg.Fields(text)
		got, end, err := cut(text)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, want %v", text, err, wantErr)
		}
		if err != nil {
			return
		}
		plain := strings.NewReplacer(nul, "\x00", expands, "$")
		for i := range got {
			got[i] = plain.Replace(got[i])
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
		rest := text[:end]
		if end < len(text) {
			rest += " " // a carriage return in front of a comment is part of the word
		}
		if again, _ := haproxycfg.Fields(rest); !slices.Equal(again, want) {
			t.Fatalf("%q ends at %d: %q", text, end, again)
		}
	})
}
