package validate

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// backendChange is a change of backends, of which haproxy -c says whether it may be
// inherited.
type backendChange struct {
	name          string
	before, after string // what stands below the defaults
	inherited     bool
}

const (
	defaultsAbove = "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n"
	dynamic       = "frontend f\n  bind 127.0.0.1:9999\n  use_backend %[path]\n"
	dynamicFrom   = "frontend f from d\n  bind 127.0.0.1:9999\n  use_backend %[path]\n"
	lines         = "  balance roundrobin\n  server s1 192.0.2.1:80\n"
	lineS2        = "  server s2 192.0.2.2:80 disabled\n"
)

// TestInheritsBackends holds what is said of backends that come and go against
// haproxy.
func TestInheritsBackends(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("haproxy"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	v := &Validator{NoInherit: true, Timeout: time.Minute, Binary: os.Getenv("HAPROXY_BIN")}
	for _, c := range append(comingBackends(), goingBackends()...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			base, next := c.config(t, c.before), c.config(t, c.after)
			if _, err := v.Semantics(t.Context(), base); err != nil {
				t.Fatalf("the base is not valid: %v", err)
			}
			_, err := v.Semantics(t.Context(), next)
			var invalid *Error
			if err != nil && !errors.As(err, &invalid) {
				t.Fatal(err)
			}
			if got := inherits(t.Context(), base, next); got != c.inherited || got && err != nil {
				t.Errorf("inherited: %v, want %v; haproxy says: %v", got, c.inherited, err)
			}
		})
	}
}

func (c backendChange) config(t *testing.T, text string) *dataplane.Config {
	t.Helper()
	var files []dataplane.File
	if strings.Contains(text, "spoe.txt") {
		files = append(files, dataplane.File{Kind: dataplane.General, Name: "spoe.txt", Content: []byte("[e]\nspoe-agent a\n  messages m\n  timeout hello 1s\n  timeout idle 1s\n  timeout processing 1s\n  use-backend b\nspoe-message m\n  args src\n  event on-client-session\n")})
	}
	if !strings.HasPrefix(text, "global") {
		text = defaultsAbove + text
	}
	cfg, err := dataplane.NewConfig(text, files...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func comingBackends() []backendChange {
	come := func(name, before, comes string, inherited bool) backendChange {
		return backendChange{"comes: " + name, before, before + comes, inherited}
	}
	b := dynamic + "backend b\n" + lines
	track := "  server s1 192.0.2.1:80 check\n  server s2 192.0.2.2:80 track s1\n"
	table := "frontend b\n  bind 127.0.0.1:9998\n  stick-table type ip size 1k store conn_rate(1s)\n"
	return []backendChange{
		come("alike", b, "backend c\n"+lines, true),
		come("without servers", b, "backend c\n  balance roundrobin\n", true),
		come("with more servers", b, "backend c\n"+lines+"  server s7 192.0.2.7:80\n", true),
		come("with comments", b, "# why\nbackend c # that\n  # and\n"+lines, false), // on doubt
		come("with comments on lines of their own", b, "# why\nbackend c\n  # and\n\n"+lines, true),
		come("two", b, "backend c\n"+lines+"backend d\n"+lines, true),
		come("two of one name", b, "backend c\n"+lines+"backend c\n"+lines, false),
		come("of the same name", b, "backend b\n"+lines, false),
		come("of the name of a frontend", b, "backend f\n"+lines, false),
		come("of the name of a listen", b+"listen c\n  bind 127.0.0.1:9998\n", "backend c\n"+lines, false),
		come("of the name of defaults", "defaults c\n  mode http\n"+b, "backend c\n"+lines, false),
		come("of the name of peers", "peers c\n"+b, "backend c\n"+lines, false),
		{"comes: of the name of a log-forward", b + "log-forward c\n  dgram-bind 127.0.0.1:9997\n  log stdout local0\n",
			dynamic + "backend b\n" + lines + "backend c\n" + lines + "log-forward c\n  dgram-bind 127.0.0.1:9997\n  log stdout local0\n", false},
		come("GLOBAL", "global\n  stats socket /var/run/x level admin\n"+defaultsAbove+b, "backend GLOBAL\n"+lines, true),
		come("MASTER", b, "backend MASTER\n"+lines, true),
		come("with a colon", b, "backend a:c\n"+lines, false),
		come("with a slash", b, "backend a/c\n"+lines, false),
		come("with dots", b, "backend a.c-d_e\n"+lines, true),
		come("in quotes", b, "backend \"c\"\n"+lines, false),
		come("with a variable", b, "backend \"c$HOME\"\n"+lines, false),
		come("with letters of Unicode", b, "backend \u00e4\n"+lines, false),
		come("without a name", b, "backend\n"+lines, false),
		come("with a word behind its name", b, "backend c d\n"+lines, false),
		come("of a long name", b, "backend "+strings.Repeat("x", 3000)+"\n"+lines, true),
		come("with other lines", b, "backend c\n  balance leastconn\n  server s1 192.0.2.1:80\n", false),
		come("with a line less", b, "backend c\n  server s1 192.0.2.1:80\n", false),
		come("with other options", b, "backend c\n"+lines+lineS2, false),
		come("with options of another server", b+lineS2, "backend c\n  balance roundrobin\n  server s9 192.0.2.1:80 disabled\n", true),
		come("with options of another backend", b+"backend d\n  balance roundrobin\n"+lineS2, "backend c\n"+lines+lineS2, true),
		come("with options of a backend with other lines", b+"backend d\n  mode tcp\n"+lineS2, "backend c\n"+lines+lineS2, false),
		come("with a host name", b, "backend c\n  balance roundrobin\n  server s1 nowhere.invalid:80\n", false),
		come("with a server twice", b, "backend c\n"+lines+"  server s1 192.0.2.2:80\n", false),
		come("with a default-server below servers", b, "backend c\n"+lines+"  default-server check\n", false),
		come("with a condition", b, ".if 1\nbackend c\n"+lines+".endif\n", false),

		come("below other defaults", b+"defaults\n  mode tcp\n", "backend c\n"+lines, false),
		{"comes: above the defaults", b, dynamic + "backend b\n" + lines, true}, // the base of the next
		{"comes: above all defaults", "global\n" + defaultsAbove + dynamic + "backend b\n  http-request deny\n" + lines,
			"global\nbackend c\n  http-request deny\n" + lines + defaultsAbove + dynamic + "backend b\n  http-request deny\n" + lines, false},
		come("from named defaults", "defaults d\n  mode http\n"+dynamicFrom+"backend b from d\n"+lines, "backend c from d\n"+lines, true),
		come("not from those", "defaults d\n  mode http\n"+dynamicFrom+"backend b from d\n"+lines, "backend c\n"+lines, false),
		come("from others", "defaults d\n  mode http\n"+dynamicFrom+"backend b from d\n"+lines, "backend c from e\n"+lines, false),

		come("with an id", dynamic+"backend b\n  id 77\n"+lines, "backend c\n  id 77\n"+lines, false),
		come("with a stick table", dynamic+"backend b\n  stick-table type ip size 1k\n"+lines, "backend c\n  stick-table type ip size 1k\n"+lines, false),
		come("with a filter", dynamic+"backend b\n  filter compression\n"+lines, "backend c\n  filter compression\n"+lines, false),
		come("with a server-template", dynamic+"backend b\n  server-template t 2 192.0.2.9:80\n"+lines, "backend c\n  server-template t 2 192.0.2.9:80\n"+lines, false),
		come("with an own server that is used", dynamic+"backend b\n  use-server s1 if TRUE\n"+lines, "backend c\n  use-server s1 if TRUE\n  balance roundrobin\n  server s2 192.0.2.1:80\n", false),
		come("with the server that is used", dynamic+"backend b\n  use-server s1 if TRUE\n"+lines, "backend c\n  use-server s1 if TRUE\n"+lines, true),
		come("with a fetch of an own server", dynamic+"backend b\n  http-request deny unless { srv_is_up(s1) }\n"+lines, "backend c\n  http-request deny unless { srv_is_up(s1) }\n  balance roundrobin\n  server s2 192.0.2.1:80\n", false),
		come("with a fetch of an own server in parts", dynamic+"backend b\n  http-request deny unless { srv_is_up('\"s\"1') }\n"+lines, "backend c\n  http-request deny unless { srv_is_up('\"s\"1') }\n  balance roundrobin\n  server s2 192.0.2.1:80\n", false),
		come("with a server that tracks", dynamic+"backend b\n  balance roundrobin\n"+track, "backend c\n  balance roundrobin\n"+track, false),
		come("with a server that has an id", b+"  server s2 192.0.2.2:80 id 9\n", "backend c\n"+lines+"  server s2 192.0.2.2:80 id 9\n", false),
		come("with a server that has a cookie", dynamic+"backend b\n  cookie x insert\n  server s1 192.0.2.1:80 cookie s1\n", "backend c\n  cookie x insert\n  server s1 192.0.2.1:80 cookie s1\n", true),
		come("with a fetch of that table", table+dynamic+"backend b\n  http-request deny if { src_conn_rate gt 9 }\n"+lines, "backend c\n  http-request deny if { src_conn_rate gt 9 }\n"+lines, false),
		come("beside a variable", b+"  http-request set-header x \"$HOME\"\n", "backend c\n"+lines+"  http-request set-header x \"$HOME\"\n", false),
		come("where warnings are errors", "global\n  zero-warning\n"+defaultsAbove+b, "backend c\n"+lines, false),
		come("where a line mentions its name", b+"listen l\n  bind 127.0.0.1:9998\n  stats enable\n  stats scope c\n", "backend c\n"+lines, false),
		come("with a frontend", b, "frontend g\n  bind 127.0.0.1:9996\nbackend c\n"+lines, false),
	}
}

func goingBackends() []backendChange {
	alone := func(name, beside string, inherited bool) backendChange {
		return backendChange{"goes: " + name, beside + "backend b\n" + lines + "backend c\n" + lines, beside + "backend c\n" + lines, inherited}
	}
	rule := func(line string) string { return dynamic + "  " + line + "\n" }
	agent := rule("filter spoe engine e config /etc/haproxy/general/spoe.txt")
	return []backendChange{
		{"goes: where an agent uses it", agent + "backend b\n  mode tcp\n" + lines, agent, false},
		alone("alone", dynamic, true),
		{"goes: the last", dynamic + "backend b\n" + lines, dynamic, true},
		{"goes: with another name", dynamic + "backend b\n" + lines, dynamic + "backend c\n" + lines, true},
		{"goes: with another name and other lines", dynamic + "backend b\n" + lines, dynamic + "backend c\n  balance source\n", false},
		{"goes: and comes elsewhere", dynamic + "backend b\n" + lines + "backend c\n  balance source\n", dynamic + "backend c\n  balance source\nbackend b\n" + lines, true},
		{"goes: with a stick table", dynamic + "backend b\n  stick-table type ip size 1k\n" + lines, dynamic, false},
		{"goes: with its table", rule("http-request track-sc0 src table b") + "backend b\n  stick-table type ip size 1k\n", rule("http-request track-sc0 src table b"), false},
		{"goes: with a section that we do not know", dynamic + "backend b\n  id 9\n" + lines, dynamic, false},
		alone("where a rule uses it", rule("use_backend b if { path /b }"), false),
		alone("where a rule uses it in quotes", rule("use_backend 'b' if { path /b }"), false),
		alone("where a rule uses it in hexadecimal", rule("use_backend \\x62 if { path /b }"), false),
		alone("where it is the default", rule("default_backend b"), false),
		alone("where defaults name it", "defaults\n  mode http\n  default_backend b\n"+dynamic, false),
		alone("where servers are counted", rule("http-request deny if { nbsrv(b) lt 1 }"), false),
		{"goes: where its name is put together", rule("http-request set-header x '%[nbsrv(b\"b\")]'") + "backend bb\n" + lines, rule("http-request set-header x '%[nbsrv(b\"b\")]'"), false},
		{"goes: where an argument of an ACL is put together", rule("http-request deny if { 'nbsrv(\"b\"\"b\")' lt 1 }") + "backend bb\n" + lines, rule("http-request deny if { 'nbsrv(\"b\"\"b\")' lt 1 }"), false},
		alone("where a monitor counts", rule("monitor fail if { nbsrv(b) lt 1 }"), false),
		alone("where a server is asked for", rule("http-request deny if { srv_is_up(b/s1) }"), false),
		alone("where a format asks", rule("http-request set-header x \"%[be_conn(b)]\""), false),
		{"goes: where a server tracks", dynamic + "listen l\n  bind 127.0.0.1:9998\n  server t 192.0.2.3:80 track b/s1\nbackend b\n  server s1 192.0.2.1:80 check\n",
			dynamic + "listen l\n  bind 127.0.0.1:9998\n  server t 192.0.2.3:80 track b/s1\n", false},
		alone("where the SNI of a server counts its servers", dynamic+"listen l\n  bind 127.0.0.1:9998\n  server t 192.0.2.3:80 ssl verify none sni nbsrv(b)\n", false),
		alone("where the SNI of a server counts its servers in quotes", dynamic+"listen l\n  bind 127.0.0.1:9998\n  server t 192.0.2.3:80 ssl verify none sni \"nbsrv('b')\"\n", false),
		alone("where a server has its name", "listen l\n  bind 127.0.0.1:9998\n  server b 192.0.2.3:80\n"+dynamic, true),
		alone("where statistics show it", dynamic+"listen l\n  bind 127.0.0.1:9998\n  stats enable\n  stats scope b\n", false),
		alone("where a variable may name it", rule("http-request set-header x \"$HOME\""), false),
		{"goes: with its number", rule("http-request deny if { nbsrv(\\#77) lt 1 }") + "backend b\n  id 77\n" + lines, rule("http-request deny if { nbsrv(\\#77) lt 1 }"), false},
		alone("below a condition", ".if 1\n.endif\n"+dynamic, false),
		{"goes: a listen", dynamic + "listen b\n  bind 127.0.0.1:9998\n" + lines, dynamic, false},
		{"goes: a frontend", dynamic + "frontend b\n  bind 127.0.0.1:9998\n", dynamic, false},
	}
}
