package haproxymodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

func TestUnsupported(t *testing.T) {
	tests := []struct {
		name, text string
		line       int
		why        string
	}{
		{"listen", "listen x\n mode http\n", 1, "no such section"},
		{"nothing above", "# x\n\nmode http\n", 1, "no section header"},
		{"conditional", "backend x\n mode http\n .if defined(X)\n .endif\n", 3, "conditional"},
		{"quote", "backend x\n mode \"http\n", 2, "quote is not closed"},
		{"long line", "backend x\n acl a path " + strings.Repeat("x", 64<<10) + "\n", 2, "too long"},
		{"conditional with a secret", "backend x\n .if streq(\"$PASSWORD\",x)\n", 2, "conditional"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.text
			good := "backend good\n server a 127.0.0.1:80\n"
			sections := Parse([]Input{{Section: haproxycfg.Split(good)[0]}, {Section: haproxycfg.Split(text)[0]}})
			if sections[0].Err() != nil || len(sections[0].Unmodelled()) > 0 {
				t.Errorf("the other section: %v", sections[0].Err())
			}
			var unsupported *UnsupportedError
			if !errors.As(sections[1].Err(), &unsupported) || unsupported.Line != tt.line || !strings.Contains(unsupported.Why, tt.why) {
				t.Errorf("error %+v, want line %d: %s", sections[1].Err(), tt.line, tt.why)
			}
			if strings.Contains(fmt.Sprintf("%+v", unsupported), "PASSWORD") {
				t.Errorf("a secret in %+v", unsupported)
			}
			if sections[1].Model() != nil || Diff(sections[0], sections[1]) != nil {
				t.Error("there is a model")
			}
			if _, err := sections[1].FullBody(); err == nil {
				t.Error("FullBody without a model")
			}
			if err := sections[1].Apply(nil); err == nil {
				t.Error("Apply without a model")
			}
		})
	}
}

// TestPanic has lines on which client-native panics or errs.
func TestPanic(t *testing.T) {
	for _, line := range []string{"stats", "balance", "server", "tcp-request", "http-request", "timeout", "compression", "stick-table", "log", "option", "errorfile", "redirect", "email-alert", "http-check", "stick", "filter", "cookie", "source", "hash-type", "http-request set-map"} {
		t.Run(line, func(t *testing.T) {
			text := "backend a\n server a 127.0.0.1:80\nbackend b\n " + line + "\nbackend c\n server c 127.0.0.1:80\n"
			sections := sectionsOf(t, text)
			for _, i := range []int{0, 2} {
				if sections[i].Err() != nil || len(sections[i].Unmodelled()) > 0 {
					t.Errorf("section %d: %v", i, sections[i].Err())
				}
			}
			if s := sections[1]; s.Err() == nil {
				checkNothingHidden(t, s)
				if lost := s.Unmodelled(); len(lost) != 1 {
					t.Errorf("lost %v", lost)
				}
			}
		})
	}
}

// TestSingleSections has two of a kind of which the parser has only one.
func TestSingleSections(t *testing.T) {
	sections := sectionsOf(t, "global\n maxconn 1\nglobal\n maxconn 2\ntraces\n trace h1 sink a\ntraces\n trace h2 sink b\n")
	for i := 0; i < 4; i += 2 {
		if d := Diff(sections[i], sections[i+1]); len(d) == 0 {
			t.Errorf("%s: no difference", sections[i].Kind.Name)
		}
		for _, s := range sections[i : i+2] {
			if lost := s.Unmodelled(); len(lost) > 0 {
				t.Errorf("%s: lost %v", s.Kind.Name, lost)
			}
		}
	}
}

func TestFrom(t *testing.T) {
	section := haproxycfg.Split("backend x\n mode http\n")[0]
	named := haproxycfg.Split("backend x from b\n mode http\n")[0]
	sections := Parse([]Input{{Section: section, From: "a"}, {Section: section, From: "b"}, {Section: named, From: "a"}})
	steps := Diff(sections[0], sections[1])
	if len(steps) != 1 || len(steps[0].Fields) != 1 || steps[0].Fields[0].Name != "from" || steps[0].Fields[0].New != "b" {
		t.Errorf("steps %+v", steps)
	}
	if steps := Diff(sections[1], sections[2]); len(steps) != 0 || len(DiffLines(sections[1], sections[2])) != 0 {
		t.Errorf("an explicit from differs: %+v", steps)
	}
	if lost := sections[2].Unmodelled(); len(lost) != 0 {
		t.Errorf("lost %v", lost)
	}
}

// TestNamesOfAnyKind has names that client-native could not read back.
func TestNamesOfAnyKind(t *testing.T) {
	for _, name := range []string{`"a b"`, `a\ b`, "s0", "s1", "unnamed_defaults_1"} {
		sections := sectionsOf(t, "backend "+name+"\n mode http\nbackend other\n mode tcp\n")
		if d := Diff(sections[0], sections[1]); len(d) != 1 || len(d[0].Fields) != 2 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestSecrets(t *testing.T) {
	const secret = "s3cr3t"
	lines := map[string][]string{
		"userlist": {"user a password " + secret, "user a insecure-password " + secret + " groups b"},
		"backend": {
			"stats auth a:" + secret, "dynamic-cookie-key " + secret,
			`http-request set-header Authorization "Basic ` + secret + `"`,
			`http-check send hdr Authorization "Basic ` + secret + `"`,
			"tcp-check send " + secret + "\\r\\n",
			"http-request add-header Cookie " + secret,
			"errorloc 503 https://joe:" + secret + "@a.test/", "http-request redirect location http://" + secret + "@a.test/",
			`http-request set-header X-Any "Bearer ` + secret + `"`, "monitor-uri http://joe:" + secret + "@a.test/",
			"http-request set-var(txn.a) req.hdr(a),hmac(sha256," + secret + ")", "http-request set-header X-Auth " + secret,
		},
		"global": {"setenv X " + secret, "presetenv X " + secret, "cluster-secret " + secret},
	}
	for kind, all := range lines {
		for _, text := range all {
			t.Run(text, func(t *testing.T) {
				s := one(t, headerOf(kind)+"  "+text+"\n")
				for _, d := range Diff(one(t, headerOf(kind)), s) {
					for _, f := range d.Fields {
						if strings.Contains(f.New, secret) && !f.Secret {
							t.Errorf("field %s shows %q", f.Name, f.New)
						}
					}
				}
				for _, l := range s.Lines() {
					if strings.Contains(l.Redacted(), secret) {
						t.Errorf("line shows %q", l.Redacted())
					}
				}
			})
		}
	}
	plain := one(t, "backend x\n  server a 127.0.0.1:80 check\n").Lines()[0]
	if plain.Redacted() != plain.Text {
		t.Errorf("%q became %q", plain.Text, plain.Redacted())
	}
}

func TestBodies(t *testing.T) {
	s := one(t, "backend x\n mode http\n errorfile 503 /a\n server a 127.0.0.1:80\n")
	own, err := s.SectionBody()
	if err != nil || strings.Contains(string(own), "servers") || !strings.Contains(string(own), "error_files") {
		t.Errorf("%s %v", own, err)
	}
	full, err := s.FullBody()
	if err != nil || !json.Valid(full) || !strings.Contains(string(full), `"servers"`) {
		t.Errorf("%s %v", full, err)
	}
	for _, d := range Diff(one(t, "backend x\n"), s) {
		body, err := d.Body()
		if inline := d.Child == nil || d.Child.Inline(); inline != (err != nil) {
			t.Errorf("%+v: %s %v", d, body, err)
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	s := one(t, "backend x\n acl a path /\n server a 127.0.0.1:80\n")
	k := s.Kind
	acl, server := k.ChildOf("ACLList"), k.ChildOf("Servers")
	for _, d := range []Difference{
		{Action: Delete, Child: acl, OldIndex: 1},
		{Action: Update, Child: acl, OldIndex: -1},
		{Action: Create, Child: acl, NewIndex: 2},
		{Action: Create, Child: server, Name: "a"},
		{Action: Delete, Child: server, Name: "b"},
	} {
		if err := s.Apply([]Difference{d}); err == nil {
			t.Errorf("%+v fits", d)
		}
	}
	if d := Diff(s, one(t, "backend x\n acl a path /\n server a 127.0.0.1:80\n")); len(d) > 0 {
		t.Errorf("changed all the same: %+v", d)
	}
}

// TestInsertionIsOneStep has the steps that lists of rules become.
func TestInsertionIsOneStep(t *testing.T) {
	rules := func(names string) *Section {
		var b strings.Builder
		for _, n := range names {
			fmt.Fprintf(&b, "  http-request set-header X %c\n", n)
		}
		return one(t, "backend x\n"+b.String())
	}
	tests := []struct{ old, new, want string }{
		{"abc", "xabc", "create -1 0"},
		{"abc", "abxc", "create -1 2"},
		{"abc", "bc", "delete 0 -1"},
		{"abc", "axc", "update 1 1"},
		{"abcdef", "bdf", "delete 4 -1, delete 2 -1, delete 0 -1"},
		{"ab", "ba", "delete 0 -1, create -1 1"},
		{"aaa", "aa", "delete 2 -1"},
		{"abc", "xbyc", "update 0 0, create -1 2"},
		{"", "ab", "create -1 0, create -1 1"},
	}
	for _, tt := range tests {
		old, new := rules(tt.old), rules(tt.new)
		var got []string
		steps := Diff(old, new)
		for _, d := range steps {
			got = append(got, fmt.Sprint(d.Action, " ", d.OldIndex, " ", d.NewIndex))
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s to %s: %s, want %s", tt.old, tt.new, got, tt.want)
		}
		if err := old.Apply(steps); err != nil || len(Diff(old, new)) > 0 {
			t.Errorf("%s to %s: %v", tt.old, tt.new, err)
		}
	}
}
