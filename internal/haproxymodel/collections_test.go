package haproxymodel

import (
	"testing"

	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// parseText is Parse for a whole text.
func sectionsOf(t testing.TB, text string) []*Section {
	t.Helper()
	var inputs []Input
	for _, s := range haproxycfg.Split(text) {
		inputs = append(inputs, Input{Section: s})
	}
	return Parse(inputs)
}

func one(t testing.TB, text string) *Section {
	t.Helper()
	sections := sectionsOf(t, text)
	if len(sections) != 1 {
		t.Fatalf("%d sections in %q", len(sections), text)
	}
	return sections[0]
}

// example is a line of each collection and another that says something else
// about the same child.
type example struct{ section, field, line, changed string }

var examples = []example{
	{"global", "CPUMaps", "cpu-map 1 0", "cpu-map 1 1"},
	{"global", "CPUSets", "cpu-set drop-cpu 2", "cpu-set drop-cpu 3"},
	{"global", "H1CaseAdjusts", "h1-case-adjust a A", "h1-case-adjust b B"},
	{"global", "HTTPErrCodes", "http-err-codes 400", "http-err-codes 401"},
	{"global", "HTTPFailCodes", "http-fail-codes 500", "http-fail-codes 501"},
	{"global", "RuntimeAPIs", "stats socket /run/a.sock mode 600", "stats socket /run/a.sock mode 660"},
	{"global", "SetVars", "set-var proc.a int(1)", "set-var proc.a int(2)"},
	{"global", "SetVarFmts", "set-var-fmt proc.a x", "set-var-fmt proc.a y"},
	{"global", "ThreadGroupLines", "thread-group 1 1-2", "thread-group 1 1-3"},
	{"global", "LogTargetList", "log 127.0.0.1 local0", "log 127.0.0.1 local1"},
	{"resolvers", "Nameservers", "nameserver a 127.0.0.1:53", "nameserver a 127.0.0.2:53"},
	{"peers", "Binds", "bind 127.0.0.1:1000 name a", "bind 127.0.0.1:1001 name a"},
	{"peers", "Servers", "server a 127.0.0.1:1000", "server a 127.0.0.2:1000"},
	{"peers", "PeerEntries", "peer a 127.0.0.1:1000", "peer a 127.0.0.2:1000"},
	{"peers", "Tables", "table a type ip size 1m", "table a type ip size 2m"},
	{"peers", "LogTargetList", "log 127.0.0.1 local0", "log 127.0.0.1 local1"},
	{"mailers", "MailerEntries", "mailer a 127.0.0.1:25", "mailer a 127.0.0.2:25"},
	{"userlist", "Users", "user a password x", "user a password y"},
	{"userlist", "Groups", "group a users b", "group a users c"},
	{"ring", "Servers", "server a 127.0.0.1:1000", "server a 127.0.0.2:1000"},
	{"log-forward", "Binds", "bind 127.0.0.1:1000 name a", "bind 127.0.0.1:1001 name a"},
	{"log-forward", "DgramBinds", "dgram-bind 127.0.0.1:1000 name a", "dgram-bind 127.0.0.1:1001 name a"},
	{"log-forward", "LogTargetList", "log 127.0.0.1 local0", "log 127.0.0.1 local1"},
	{"log-profile", "Steps", "on accept format a", "on accept format b"},
	{"http-errors", "ErrorFiles", "errorfile 503 /a", "errorfile 503 /b"},
	{"fcgi-app", "LogStderrs", "log-stderr 127.0.0.1 local0", "log-stderr 127.0.0.1 local1"},
	{"fcgi-app", "PassHeaders", "pass-header a", "pass-header b"},
	{"fcgi-app", "SetParams", "set-param A x", "set-param A y"},
	{"fcgi-app", "ACLList", "acl a path /x", "acl a path /y"},
	{"crt-store", "Loads", "load crt a.pem key a.key", "load crt a.pem key b.key"},
	{"traces", "Entries", "trace h1 sink buf0", "trace h1 sink buf1"},
}

// proxyExamples are for the kinds that have the collection.
var proxyExamples = []example{
	{"", "ErrorFiles", "errorfile 503 /a", "errorfile 503 /b"},
	{"", "ErrorFilesFromHTTPErrors", "errorfiles a", "errorfiles b"},
	{"", "ForcePersistList", "force-persist if a", "force-persist if b"},
	{"", "IgnorePersistList", "ignore-persist if a", "ignore-persist if b"},
	{"", "ACLList", "acl a path /x", "acl a path /y"},
	{"", "QUICInitialRuleList", "quic-initial reject if a", "quic-initial reject if b"},
	{"", "TCPRequestRuleList", "tcp-request connection reject if a", "tcp-request connection reject if b"},
	{"", "TCPResponseRuleList", "tcp-response content reject if a", "tcp-response content reject if b"},
	{"", "HTTPRequestRuleList", "http-request deny if a", "http-request deny if b"},
	{"", "HTTPResponseRuleList", "http-response deny if a", "http-response deny if b"},
	{"", "HTTPAfterResponseRuleList", "http-after-response set-header X a", "http-after-response set-header X b"},
	{"", "HTTPErrorRuleList", "http-error status 503 file /a", "http-error status 503 file /b"},
	{"", "TCPCheckRuleList", "tcp-check expect string a", "tcp-check expect string b"},
	{"", "HTTPCheckList", "http-check expect status 200", "http-check expect status 201"},
	{"", "LogTargetList", "log 127.0.0.1 local0", "log 127.0.0.1 local1"},
	{"", "Binds", "bind 127.0.0.1:80 name a", "bind 127.0.0.1:81 name a"},
	{"", "SSLFrontUses", "ssl-f-use crt a.pem", "ssl-f-use crt b.pem"},
	{"", "CaptureList", "declare capture request len 10", "declare capture request len 11"},
	{"", "FilterList", "filter trace name a", "filter trace name b"},
	{"", "BackendSwitchingRuleList", "use_backend b if a", "use_backend c if a"},
	{"", "StickRuleList", "stick on src table a", "stick on src table b"},
	{"", "Servers", "server a 127.0.0.1:80 check", "server a 127.0.0.2:80 check"},
	{"", "ServerTemplates", "server-template a 3 a.example:80 check", "server-template a 4 a.example:80 check"},
	{"", "ServerSwitchingRuleList", "use-server a if x", "use-server b if x"},
}

func allExamples() []example {
	all := append([]example(nil), examples...)
	for _, kind := range []string{"defaults", "frontend", "backend"} {
		for _, e := range proxyExamples {
			if KindOf(kind).ChildOf(e.field) != nil {
				all = append(all, example{kind, e.field, e.line, e.changed})
			}
		}
	}
	return all
}

func headerOf(kind string) string {
	if KindOf(kind).Single {
		return kind + "\n"
	}
	return kind + " x\n"
}

func TestEveryCollection(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range allExamples() {
		seen[e.section+" "+e.field] = true
		t.Run(e.section+" "+e.field, func(t *testing.T) {
			old := one(t, headerOf(e.section)+"  "+e.line+"\n")
			changed := one(t, headerOf(e.section)+"  "+e.changed+"\n")
			empty := one(t, headerOf(e.section))
			for _, s := range []*Section{old, changed, empty} {
				if s.Err() != nil {
					t.Fatal(s.Err())
				}
				if lost := s.Unmodelled(); len(lost) > 0 {
					t.Errorf("not modelled: %v", lost)
				}
			}
			c := KindOf(e.section).ChildOf(e.field)
			if n := len(old.children(c)); n != 1 {
				t.Fatalf("%d children", n)
			}
			check := func(from, to *Section, action Action) {
				t.Helper()
				steps := Diff(from, to)
				if c.NoUpdate && action == Update {
					if len(steps) != 2 || steps[0].Action != Delete || steps[1].Action != Create {
						t.Errorf("steps %+v, want a deletion and a creation", steps)
					}
				} else if len(steps) != 1 || steps[0].Action != action || steps[0].Child != c {
					t.Fatalf("steps %+v, want one %s of a %s", steps, action, c.Kind)
				} else if len(steps[0].Fields) == 0 {
					t.Error("no fields")
				}
				if lines := DiffLines(from, to); len(lines) > 0 {
					t.Errorf("lines that nothing explains: %v", lines)
				}
				copied := *from
				if err := copied.Apply(steps); err != nil {
					t.Fatal(err)
				}
				if left := Diff(&copied, to); len(left) > 0 {
					t.Errorf("left after Apply: %+v", left)
				}
			}
			check(old, changed, Update)
			check(empty, old, Create)
			check(old, empty, Delete)
			if same := Diff(old, old); len(same) > 0 {
				t.Errorf("differs from itself: %+v", same)
			}
		})
	}
	for _, k := range Kinds() {
		for _, c := range k.Children {
			if !seen[k.Name+" "+c.Field] {
				t.Errorf("no example for %s of %s", c.Field, k.Name)
			}
		}
	}
}
