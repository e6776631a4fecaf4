package validate

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hapticsdk/haptic/dataplane"
)

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
		{"/etc/haproxyx /opt/etc/haproxy/ssl/a ./etc/haproxy/ssl", "/etc/haproxyx /opt/etc/haproxy/ssl/a ./etc/haproxy/ssl"},
		{"file \"/etc/haproxy/general/e.http\"", "file \"" + at("general") + "/e.http\""},
		{"stats socket /etc/haproxy/run.sock", "stats socket " + at("run.sock")},
		{"opt@/etc/haproxy/maps/a.map", "opt@" + at("maps") + "/a.map"},
		{"a / b // /etc", "a / b // /etc"},
		{"crt /etc/haproxy/ssl/below/x.pem", "crt " + at("ssl") + "/below/x.pem"},
		{"crt /etc/haproxy/ssl//x.pem", "crt " + at("ssl") + "//x.pem"},
		{"crt-base /etc/haproxy", "crt-base " + s.dir},
		{"ca-base \"/etc/haproxy/\"", "ca-base \"" + s.dir + "/\""},
		{"default-path origin /etc/haproxy", "default-path origin " + s.dir},
		{"setenv X /etc/haproxy", "setenv X " + s.dir},
		{"crt /etc/haproxy/../x.pem", "crt /etc/haproxy/../x.pem"},
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
