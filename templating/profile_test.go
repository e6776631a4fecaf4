package templating_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hapticsdk/haptic/templating"
)

// TestProfile counts the lines of a render; that of the slow function has the
// most time, though a macro calls it.
func TestProfile(t *testing.T) { synctest.Test(t, testProfile) }

func testProfile(t *testing.T) {
	source := "{% macro M(s string) %}\n" +
		"m {{ slow(s) }}\n" +
		"{% end %}\n" +
		"{% for _, w := range words %}\n" +
		"{{ M(w) }}\n" +
		"{{ render `_p.cfg` }}\n" +
		"{% end %}\n"
	e, err := templating.Compile(files("a.cfg", source, "_p.cfg", "p\n"), &templating.Options{
		Vars: map[string]any{"words": []string(nil)},
		Globals: map[string]any{"slow": func(s string) string {
			time.Sleep(5 * time.Millisecond) // in the bubble, where nothing else takes time
			return s
		}}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Profile(t.Context(), "a.cfg", map[string]any{"words": []string{"a", "b", "c"}})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	var sum time.Duration
	for _, l := range p.Lines {
		counts[fmt.Sprintf("%s:%d", l.File, l.Line)] = l.Count
		sum += l.Self
	}
	for line, want := range map[string]int{"a.cfg:2": 3, "a.cfg:4": 3, "a.cfg:5": 3, "a.cfg:6": 3, "_p.cfg:1": 3} {
		if counts[line] != want {
			t.Errorf("%s: %d, want %d", line, counts[line], want)
		}
	}
	if first := p.Lines[0]; first.Line != 2 || first.Text != "m {{ slow(s) }}" || first.Self != 15*time.Millisecond || sum != p.Total {
		t.Errorf("first is %+v, all are %v of %v", first, sum, p.Total)
	}
	if files := p.Files(); len(files) != 2 || files[0].File != "a.cfg" || files[1].Count != 3 {
		t.Errorf("%+v", files)
	}
	if text := p.String(); !strings.Contains(text, "a.cfg:2  m {{ slow(s) }}\n") || strings.Count(text, "\n") != 3+len(p.Files())+len(p.Lines) {
		t.Errorf("%s", text)
	}
}

func TestProfileOfAnError(t *testing.T) {
	e := compileTraced(t, "a.cfg", "a\n{% for _, w := range words %}{{ w }}\n{{ `\t` }}{% end %}{{ fail(`no`) }}")
	p, err := e.Profile(t.Context(), "a.cfg", tracedVars())
	if positions(err) != "a.cfg:3:22" || len(p.Lines) != 3 {
		t.Errorf("%v, %+v", err, p)
	}
	p, err = e.Profile(t.Context(), "b.cfg", nil)
	if err == nil || p == nil || len(p.Lines) != 0 || p.String() == "" {
		t.Errorf("%v, %v", err, p)
	}
	e = compileTraced(t, "a.cfg", "{{ `\t` }}")
	if _, err = e.Profile(t.Context(), "a.cfg", tracedVars()); positions(err) != "a.cfg:1:4" {
		t.Error(err)
	}
	var own *templating.Error
	if !errors.As(err, &own) {
		t.Error(err)
	}
}
