package validate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestParsesWhatChanged counts the sections that phase 1 parses.
func TestParsesWhatChanged(t *testing.T) {
	text := func(port int) *dataplane.Config {
		var b strings.Builder
		b.WriteString("frontend f\n  bind 127.0.0.1:9999\n")
		for i := range 100 {
			fmt.Fprintf(&b, "backend b%d\n  server a 192.0.2.1:%d\n", i, 1000+i+port/(1+(i-50)*(i-50)))
		}
		cfg, err := dataplane.NewConfig(b.String())
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	v := &Validator{}
	for _, step := range []struct {
		cfg    *dataplane.Config
		parsed int
	}{{text(0), 101}, {text(0), 0}, {text(1), 1}, {text(1), 0}} {
		before := v.sections.count
		if err := v.Syntax(step.cfg); err != nil {
			t.Fatal(err)
		}
		if got := v.sections.count - before; got != step.parsed {
			t.Errorf("parsed %d sections, want %d", got, step.parsed)
		}
	}
	if len(v.sections.known) != 101 {
		t.Errorf("%d sections are remembered, want those of the last configuration", len(v.sections.known))
	}
}

// TestParsesListsThatChanged does so for crt-lists.
func TestParsesListsThatChanged(t *testing.T) {
	config := func(list string) *dataplane.Config {
		cfg, err := dataplane.NewConfig("frontend f\n  bind 127.0.0.1:9999 ssl crt-list /etc/haproxy/general/l.txt\n",
			dataplane.File{Kind: dataplane.CRTList, Name: "l.txt", Content: []byte(list)})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	v := &Validator{}
	list := func(text string) *parsedList {
		if err := v.Syntax(config(text)); err != nil {
			t.Fatal(err)
		}
		return v.sections.lists["l.txt"]
	}
	first := list("a.pem\n")
	if list("a.pem\n") != first {
		t.Error("an unchanged crt-list was parsed again")
	}
	if list("b.pem\n") == first {
		t.Error("a changed crt-list was not parsed")
	}
	if err := v.Syntax(text(t, "frontend f\n  bind 127.0.0.1:9999\n")); err != nil || len(v.sections.lists) > 0 {
		t.Errorf("%v, remembers %v", err, v.sections.lists)
	}
}

func text(t *testing.T, main string) *dataplane.Config {
	t.Helper()
	cfg, err := dataplane.NewConfig(main)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
