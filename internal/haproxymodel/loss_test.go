package haproxymodel

import (
	"slices"
	"testing"
)

func texts(lines []Line) (all []string) {
	for _, l := range lines {
		all = append(all, l.Text)
	}
	return all
}

// TestUnmodelled has every loss of client-native that is known, by name.
func TestUnmodelled(t *testing.T) {
	tests := []struct {
		name, kind, line string
		held             bool
	}{
		{name: "env port", kind: "backend", line: `server a 127.0.0.1:"${PORT}"`},
		{name: "env port of a bind", kind: "frontend", line: `bind :"${PORT}"`},
		{name: "several crt", kind: "frontend", line: `bind :443 ssl crt /a crt /b`},
		{name: "abns bind", kind: "frontend", line: `bind abns@x accept-proxy`},
		{name: "abns bind with a port in its name", kind: "frontend", line: `bind abns@x:1`, held: true},
		{name: "id", kind: "frontend", line: `id 7`},
		{name: "capture", kind: "frontend", line: `capture request header X len 10`},
		{name: "dispatch", kind: "backend", line: `dispatch 127.0.0.1:80`},
		{name: "stats http-request", kind: "backend", line: `stats http-request deny if x`, held: true},
		{name: "cc", kind: "backend", line: `server a 127.0.0.1:80 cc cubic`},
		{name: "sc-inc-gpc", kind: "frontend", line: `http-request sc-inc-gpc(0,1) if x`},
		{name: "unknown keyword of a server", kind: "backend", line: `server a 127.0.0.1:80 check foo bar`},
		{name: "unknown keyword of a bind", kind: "frontend", line: `bind :80 foo bar`},
		{name: "unprocessed", kind: "backend", line: `foo bar`},
		{name: "no option", kind: "backend", line: `no option foo`},
		{name: "no of a known option", kind: "backend", line: `no option redispatch`, held: true},
		{name: "quotes", kind: "backend", line: `http-request set-header X "a b"`, held: true},
		{name: "a name that says nothing", kind: "frontend", line: `bind :80 name :80`},
		{name: "bind without a name", kind: "frontend", line: `bind :80`, held: true},
		{name: "keyword order", kind: "backend", line: `server a 127.0.0.1:80 weight 10 check inter 5s`, held: true},
		{name: "time", kind: "backend", line: `timeout server 5s`, held: true},
		{name: "size", kind: "backend", line: `stick-table type ip size 1m expire 1m store gpc0`, held: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := one(t, tt.kind+" x\n  "+tt.line+"\n")
			if s.Err() != nil {
				t.Fatal(s.Err())
			}
			lost := texts(s.Unmodelled())
			if held := len(lost) == 0; held != tt.held {
				t.Errorf("held %v, lost %q", held, lost)
			}
			// Whether held or lost, a change of the last word shows.
			other := one(t, tt.kind+" x\n  "+tt.line+"9\n")
			if len(Diff(s, other)) == 0 && len(DiffLines(s, other)) == 0 {
				t.Errorf("a change of %q does not show", tt.line)
			}
			empty := one(t, tt.kind+" x\n")
			if len(Diff(s, empty)) == 0 && len(DiffLines(s, empty)) == 0 {
				t.Errorf("taking %q away does not show", tt.line)
			}
		})
	}
}

func TestDiffLines(t *testing.T) {
	tests := []struct {
		name, old, new string
		want           []string // action and text
	}{
		{name: "space, comments, quotes, units", old: "backend x\n  timeout server 5s # c\n\tserver a 1.1.1.1:80 check weight 5\n", new: "backend x\ntimeout  server 5000ms\nserver a 1.1.1.1:80 weight 5 check\n"},
		{name: "single-valued twice", old: "backend x\n fullconn 1\n fullconn 2\n", new: "backend x\n fullconn 2\n", want: []string{"delete fullconn 1"}},
		{name: "the same twice", old: "backend x\n fullconn 2\n fullconn 2\n", new: "backend x\n fullconn 2\n"},
		{name: "order of servers", old: "backend x\n server a 1.1.1.1:1\n server b 1.1.1.1:2\n", new: "backend x\n server b 1.1.1.1:2\n server a 1.1.1.1:1\n", want: []string{"update server a 1.1.1.1:1"}},
		{name: "default-server", old: "backend x\n default-server check\n server a 1.1.1.1:1\n", new: "backend x\n server a 1.1.1.1:1\n default-server check\n", want: []string{"update default-server check"}},
		{name: "unknown line", old: "backend x\n foo 1\n", new: "backend x\n foo 2\n", want: []string{"delete foo 1", "create foo 2"}},
		{name: "values of unknown keywords swapped", old: "backend x\n server a 1.1.1.1:1 foo 1 bar 2\n", new: "backend x\n server a 1.1.1.1:1 foo 2 bar 1\n", want: []string{"delete server a 1.1.1.1:1 foo 1 bar 2", "create server a 1.1.1.1:1 foo 2 bar 1"}},
		{name: "variable or not", old: "backend x\n http-request set-header A \"$B\"\n", new: "backend x\n http-request set-header A '$B'\n"},
		{name: "a server twice", old: "backend x\n server a 1.1.1.1:1\n", new: "backend x\n server a 1.1.1.1:2\n server a 1.1.1.1:1\n", want: []string{"create server a 1.1.1.1:2"}},
		{name: "listen", old: "listen x\n mode http\n", new: "listen x\n mode tcp\n", want: []string{"delete mode http", "create mode tcp"}},
		{name: "odd header", old: "frontend x :80\n", new: "frontend x :81\n", want: []string{"delete frontend x :80", "create frontend x :81"}},
		{name: "last check wins", old: "backend x\n option httpchk\n option tcp-check\n", new: "backend x\n option tcp-check\n option httpchk\n", want: []string{"update option httpchk"}},
		{name: "connection mode", old: "backend x\n option httpclose\n option http-server-close\n", new: "backend x\n option http-server-close\n option httpclose\n", want: []string{"update option httpclose"}},
		{name: "environment", old: "global\n setenv A 1\n unsetenv A\n", new: "global\n unsetenv A\n setenv A 1\n", want: []string{"update setenv A 1"}},
		{name: "rules that the model loses", old: "backend x\n http-request sc-inc-gpc(0,1)\n http-request sc-inc-gpc(0,2)\n", new: "backend x\n http-request sc-inc-gpc(0,2)\n http-request sc-inc-gpc(0,1)\n", want: []string{"update http-request sc-inc-gpc(0,1)"}},
		{name: "rules that the model has", old: "backend x\n http-request deny\n http-request allow\n", new: "backend x\n http-request allow\n http-request deny\n"},
		{name: "error files", old: "backend x\n errorfile 503 /a\n http-error status 503 file /b\n", new: "backend x\n http-error status 503 file /b\n errorfile 503 /a\n", want: []string{"update errorfile 503 /a"}},
		{name: "free order", old: "backend x\n mode http\n timeout server 1s\n", new: "backend x\n timeout server 1s\n mode http\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			old, new := one(t, tt.old), one(t, tt.new)
			var got []string
			for _, d := range DiffLines(old, new) {
				got = append(got, d.Action.String()+" "+d.Line.Text)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q; Diff %+v", got, tt.want, Diff(old, new))
			}
			if tt.name == "variable or not" && len(Diff(old, new)) == 0 {
				t.Error("a variable in double quotes is no variable in single ones")
			}
		})
	}
}
