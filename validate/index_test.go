package validate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/dataplane"
)

// An index that moves through configurations is that of the last.
func TestIndexMoves(t *testing.T) {
	t.Parallel()
	m := &maker{certificates: [][]byte{[]byte("x\n")}, Rand: rand.New(rand.NewPCG(1, 1))}
	moving := newIndex()
	d := m.draft()
	for step := range 200 {
		if d = m.change(d); m.IntN(50) == 0 {
			d = m.draft()
		}
		cfg, err := dataplane.NewConfig(strings.Join(d.lines, "\n") + "\n")
		if err != nil {
			t.Fatal(err)
		}
		moving.move(cfg)
		fresh := newIndex()
		fresh.move(cfg)
		if got, want := moving.show(), fresh.show(); got != want {
			t.Fatalf("step %d:\n%s\nmoved to\n%s\nwant\n%s", step, d, got, want)
		}
	}
}

// show prints all that an index says of its configuration.
func (x *index) show() string {
	var b strings.Builder
	fmt.Fprintln(&b, x.names, x.declared, x.refs, x.words, x.maps, x.conditional, x.wrong, x.unsure, x.anyMap, x.askMore, x.others)
	for _, d := range x.digests {
		fmt.Fprintf(&b, "%s %s %q %d %t %t %v:", d.kind, d.name, d.body.text, d.body.users, d.odd, d.wrong, d.refs)
		for _, s := range d.servers {
			fmt.Fprintf(&b, " %s %q %d", s.name, s.options.text, s.options.users)
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintln(&b, len(x.bodies), len(x.options))
	return b.String()
}

// What stands between the lines that two texts have in common has all lines that only
// the second has.
func TestBetween(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	text := func() []byte {
		var b strings.Builder
		for range r.IntN(400) {
			fmt.Fprintf(&b, "%s\n", strings.Repeat("x", r.IntN(40)))
		}
		return []byte(b.String())
	}
	for range 100 {
		start, end := text(), text()
		old, now := bytes.Join([][]byte{start, text(), end}, nil), bytes.Join([][]byte{start, text(), end}, nil)
		got := between(old, now)
		lines := map[string]int{}
		for line := range bytes.Lines(now) {
			lines[string(line)]++
		}
		for line := range bytes.Lines(old) {
			lines[string(line)]--
		}
		for line := range bytes.Lines(got) {
			lines[string(line)]--
		}
		for line, n := range lines {
			if n > 0 {
				t.Fatalf("%q is new, and not in %q", line, got)
			}
		}
	}
}

// A panic on the way to a configuration costs one reading of all.
func TestIndexAfterPanic(t *testing.T) {
	t.Parallel()
	var cfgs [3]*dataplane.Config
	for i := range cfgs {
		var err error
		if cfgs[i], err = dataplane.NewConfig(defaultsAbove + strings.Repeat("backend b\n"+lines, i)); err != nil {
			t.Fatal(err)
		}
	}
	v := &Validator{}
	v.took(t.Context(), cfgs[1], &verdict{})
	v.state.index.digests = nil // so that the next one finds nothing where something was
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_ = v.Syntax(cfgs[0])
	}()
	if v.inherits(t.Context(), cfgs[2]) != nil {
		t.Error("two backends of one name are inherited")
	}
	fresh := newIndex()
	fresh.move(cfgs[2])
	if got, want := v.index().show(), fresh.show(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
