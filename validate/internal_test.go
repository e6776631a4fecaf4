package validate

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hapticsdk/haptic/dataplane"
)

func TestMask(t *testing.T) {
	t.Parallel()
	tests := []struct{ line, want string }{
		{"server a 10.0.0.1:80 check", "server a 10.0.0.1:80 check"},
		{"user bob insecure-password hunter2 groups g", "user bob insecure-password (secret)"},
		{"user bob pasword hunter2", "user bob (secret)"},
		{"user haproxy", "user haproxy"},
		{"stats auth admin:hunter2", "stats auth (secret)"},
		{"http-request set-header Authorization \"Basic abc\"", "http-request set-header Authorization (secret)"},
		{"http-request deny if { req.hdr(x-token) -m str(token=abc) }", "http-request deny if { (secret)"},
		{"setenv TOKEN abc", "setenv (secret)"},
		{"dynamic-cookie-key abc", "dynamic-cookie-key (secret)"},
		{"cluster-secret abc", "cluster-secret (secret)"},
		{"eab-mac-key abc", "eab-mac-key (secret)"},
		{"http-request set-var(txn.a) req.hdr(a),hmac(sha256,abc)", "http-request set-var(txn.a) (secret)"},
		{"server a 192.0.2.1:80 agent-check agent-send \"abc\"", "server a 192.0.2.1:80 agent-check agent-send (secret)"},
		{"tcp-check send AUTH\\ abc\\r\\n", "tcp-check send (secret)"},
		{"option httpchk GET / HTTP/1.1\\r\\nAuthorization:\\ Basic\\ abc", "option httpchk GET / (secret)"},
		{"http-check send meth GET hdr Authorization abc", "http-check send meth GET hdr Authorization (secret)"},
		{"http-request set-header \"Cookie\" abc", "http-request set-header \"Cookie\" (secret)"},
		{"http-request set-header X-Site-Key abc", "http-request set-header X-Site-Key (secret)"},
		{"http-request redirect location https://bob:abc@a.example/ code 302", "http-request redirect location https://(secret)@a.example/ code 302"},
		{"server a bob:abc@192.0.2.1:80", "server a (secret)@192.0.2.1:80"},
		{"stats auht admin:abc", "stats auht (secret)"},
		{"presetenv PASS abc", "presetenv (secret)"},
		{"option mysql-check user root password abc", "option mysql-check user root password (secret)"},
		{"bind quic4@:443 ssl crt /etc/haproxy/ssl/a.pem", "bind quic4@:443 ssl crt /etc/haproxy/ssl/a.pem"},
		{"bind :443 ssl crt /etc/haproxy/ssl/a-key.pem alpn h2", "bind :443 ssl crt /etc/haproxy/ssl/a-key.pem alpn h2"},
		{"http-request set-var(txn.password) str(abc)", "http-request (secret)"},
		{"cookie SRV insert indirect", "cookie SRV insert indirect"},
		{"http-request auth unless { http_auth(users) }", "http-request auth unless { http_auth(users) }"},
		{"http-request set-header X-Auth abc", "http-request set-header X-Auth (secret)"},
	}
	for _, tt := range tests {
		if got := mask(tt.line); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.line, got, tt.want)
		}
	}
	if got := maskMessage("unknown option 'hunter2' of 'user'", "user bob pasword hunter2"); strings.Contains(got, "hunter2") {
		t.Errorf("message %s", got)
	}
}

func testSandbox(tb testing.TB, layout dataplane.Layout) *sandbox {
	tb.Helper()
	dir := tb.TempDir()
	s := &sandbox{dir: dir, config: dir + "/haproxy.cfg"}
	if err := s.layOut(layout); err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	s := testSandbox(t, dataplane.Layout{})
	at := func(name string) string { return s.dir + "/" + name }
	tests := []struct{ text, want string }{
		{"map(/etc/haproxy/maps/a.map,x)", "map(" + at("maps") + "/a.map,x)"},
		{"bind :443 ssl crt /etc/haproxy/ssl", "bind :443 ssl crt " + at("ssl")},
		{"/etc/haproxy/ssl/", at("ssl") + "/"},
		{"/etc/haproxy/sslx /opt/etc/haproxy/ssl/a ./etc/haproxy/ssl", "/etc/haproxy/sslx /opt/etc/haproxy/ssl/a ./etc/haproxy/ssl"},
		{"file \"/etc/haproxy/general/e.http\"", "file \"" + at("general") + "/e.http\""},
		{"stats socket /etc/haproxy/run.sock", "stats socket /etc/haproxy/run.sock"},
		{"opt@/etc/haproxy/maps/a.map", "opt@" + at("maps") + "/a.map"},
		{"a / b // /etc", "a / b // /etc"},
		{"crt /etc/haproxy/ssl/below/x.pem", "crt /etc/haproxy/ssl/below/x.pem"},
		{"crt /etc/haproxy/ssl//x.pem", "crt " + at("ssl") + "//x.pem"},
		{"crt-base /etc/haproxy", "crt-base " + s.dir},
		{"ca-base \"/etc/haproxy/\"", "ca-base \"" + s.dir + "/\""},
		{"default-path origin /etc/haproxy", "default-path origin " + s.dir},
		{"setenv X /etc/haproxy", "setenv X /etc/haproxy"},
		{"crt-base /etc", "crt-base /etc"},
	}
	for _, tt := range tests {
		if got := s.rewrite(tt.text); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.text, got, tt.want)
		}
	}
}

// FuzzRewrite checks that rewriting changes nothing but the folders.
func FuzzRewrite(f *testing.F) {
	f.Add("map(/etc/haproxy/maps/a.map)\n\n/etc/haproxy/ssl\n")
	f.Add("///etc/haproxy/ssl/x/etc/haproxy/maps")
	s := testSandbox(f, dataplane.Layout{})
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, filepath.Dir(s.dir)) {
			t.Skip()
		}
		if back := s.back.Replace(s.rewrite(text)); back != text {
			t.Errorf("%q came back as %q", text, back)
		}
	})
}

// FuzzOutput checks that no output of haproxy makes the reader panic, that a
// verdict of "no" has a finding, that lines are those of the file, and that what
// is said is text.
func FuzzOutput(f *testing.F) {
	f.Add("[ALERT]    (12) : config : parsing [/etc/haproxy/haproxy.cfg:2] : unknown keyword 'x' in 'defaults' section\n", 1)
	f.Add("[NOTICE]   (12) : haproxy version is 2.6.12\n[WARNING]  (12) : config : x\n  more\nConfiguration file is valid\n", 0)
	f.Add("[ALERT] (1) : config : Proxy 'web': unable to find required use_backend: 'nob'.\n", 1)
	f.Add("[ALERT] (1) : config : 'ca-file' : unable to load /etc/haproxy/ssl/a.pem.\n[ALERT] (1) : missing userlist in '\x01\xff\x85'\n", 1)
	f.Add("[WARNING] (1) : config : parsing [/etc/haproxy/haproxy.cfg:2]: wrong value\n[ALERT] (1) : config : Error(s) found in configuration file : x\n", 1)
	f.Add("[ALERT] : line 99999999999999999999 of file '/x'", 1)
	cfg, err := dataplane.NewConfig("defaults\n  mode http\nfrontend web\n  use_backend nob\n")
	if err != nil {
		f.Fatal(err)
	}
	s := testSandbox(f, dataplane.Layout{})
	f.Fuzz(func(t *testing.T, output string, code int) {
		d := readOutput(output, code, dataplane.Layout{}, cfg, s)
		if (code == 0) != (len(d.findings) == 0) {
			t.Fatalf("code %d with findings %v", code, d.findings)
		}
		for _, finding := range append(d.findings, d.warnings...) {
			if finding.Line < 0 || finding.File == "" {
				t.Fatalf("%+v", finding)
			}
			if strings.ContainsFunc(finding.Message, func(r rune) bool { return r < ' ' && r != '\t' }) || !utf8.ValidString(finding.Message) {
				t.Fatalf("no text: %q", finding.Message)
			}
		}
	})
}
