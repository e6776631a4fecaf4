package validate

import (
	"bytes"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

// change is one that inherits must leave to haproxy.
type change struct {
	name          string
	proxy         string // lines in front of the backend
	before, after string // lines of the backend
	file          dataplane.FileKind
	old, new      []byte // of the file
}

// TestInheritsNothingThatHAProxyRefuses holds inherits against haproxy itself.
func TestInheritsNothingThatHAProxyRefuses(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("haproxy"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	v := &Validator{NoInherit: true, Timeout: time.Minute}
	for _, c := range append(serverChanges(), fileChanges(t)...) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			base, next := c.config(t, c.before, c.old), c.config(t, c.after, c.new)
			if _, err := v.Semantics(t.Context(), base); err != nil {
				t.Fatalf("the base is not valid: %v", err)
			}
			_, err := v.Semantics(t.Context(), next)
			var invalid *Error
			if err != nil && !errors.As(err, &invalid) {
				t.Fatal(err)
			}
			if invalid != nil && inherits(t.Context(), base, next) {
				t.Errorf("inherited what haproxy refuses: %v", err)
			}
			if invalid == nil {
				t.Logf("haproxy takes it; inherited: %v", inherits(t.Context(), base, next))
			}
		})
	}
}

func (c change) config(t *testing.T, backend string, content []byte) *dataplane.Config {
	t.Helper()
	text := "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n" + c.proxy + "backend b\n" + backend
	if !strings.Contains(text, "frontend f") {
		text += "frontend f\n  bind 127.0.0.1:9999\n"
	}
	var files []dataplane.File
	switch c.file {
	case dataplane.Map:
		files = append(files, dataplane.File{Kind: c.file, Name: "m.map", Content: content})
	case dataplane.Certificate:
		files = append(files, dataplane.File{Kind: c.file, Name: "a.pem", Content: content})
	}
	cfg, err := dataplane.NewConfig(text, files...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func serverChanges() []change {
	const a, b = "  server a 192.0.2.1:80\n", "  server b 192.0.2.2:80\n"
	gone := func(name, line string) change {
		return change{name: "named " + name, before: line + a + b, after: line + b}
	}
	return []change{
		{name: "above its defaults", before: a + "  default-server verify none\n  server b 192.0.2.2:80 ssl\n",
			after: a + "  server c 192.0.2.3:80 ssl\n  default-server verify none\n  server b 192.0.2.2:80 ssl\n"},
		{name: "last of an application", proxy: "fcgi-app x\n  docroot /srv\n",
			before: "  use-fcgi-app x\n  server a 192.0.2.1:80 proto fcgi\n", after: "  use-fcgi-app x\n"},
		{name: "out of a condition", before: ".if 0\n  server a 192.0.2.1:80 nonsense\n.endif\n" + b,
			after: ".if 0\n.endif\n  server a 192.0.2.1:80 nonsense\n" + b},
		gone("in quotes", "  use-server \"a\" if TRUE\n"),
		gone("in other quotes", "  use-server 'a' if TRUE\n"),
		gone("with a backslash", "  use-server \\x61 if TRUE\n"),
		gone("in a fetch", "  http-request deny if { srv_is_up(b/a) }\n"),
		gone("in a fetch of this backend", "  http-request deny if { srv_is_up(a) }\n"),
		gone("in quotes of a fetch", "  http-request deny if { srv_is_up('\"b/a\"') }\n"),
		gone("in parts", "  http-request deny if { srv_is_up('\"\"a') }\n"),
		{name: "put together", before: "  http-request deny if { srv_is_up('\"a\"1') }\n  server a1 192.0.2.1:80\n", after: "  http-request deny if { srv_is_up('\"a\"1') }\n" + a},
		gone("in a log format", "  http-request set-header x \"%[srv_queue(b/a)]\"\n"),
		gone("in a second argument", "  http-request set-var(txn.a) str(x),concat(),srv_queue\n  http-request deny if { srv_conn(a) gt 1 }\n"),
		{name: "without a name", before: a + b, after: a + "  server '' 192.0.2.2:80\n"},
		{name: "variable where a text was", before: "  server a 192.0.2.1:80 check-sni '$NOBODY'\n", after: "  server a 192.0.2.1:80 check-sni \"$NOBODY\"\n"},
		{name: "a tab that is a word's end from 3.0 on", before: "  server a 192.0.2.1:80 check-sni x\\ty\n", after: "  server a 192.0.2.1:80 check-sni x\\\ty\n"},
		{name: "a blank that is none", before: "  balance roundrobin\n" + a, after: "  balance roundrobin\u00a0\n" + a},
		{name: "a comment that is none", before: a + "  retries 3\n", after: a + "  retries 3\\ # x\n"},
		{name: "tracked", before: "  server a 192.0.2.1:80 check\n" + b, after: b, proxy: "backend t\n  server t 192.0.2.9:80 track \"b/a\"\n"},
		{name: "names of another case", before: a + b, after: a + "  server A 192.0.2.2:80\n"},
		{name: "IPv6", before: a + b, after: a + "  server b [2001:db8::1]:80\n"},
		{name: "IPv4 in IPv6", before: a + b, after: a + "  server b [::ffff:192.0.2.1]:80\n"},
		{name: "none left of many options", proxy: "peers p\n  peer x 127.0.0.1:1\n", before: "  balance hdr(x)\n  hash-type consistent\n  cookie x insert dynamic\n  dynamic-cookie-key x\n  option httpchk\n" +
			"  stick-table type ip size 1k\n  stick on src\n  retry-on all-retryable-errors\n  fullconn 10\n  load-server-state-from-file global\n" + a, after: "  balance hdr(x)\n  hash-type consistent\n  cookie x insert dynamic\n  dynamic-cookie-key x\n  option httpchk\n" +
			"  stick-table type ip size 1k\n  stick on src\n  retry-on all-retryable-errors\n  fullconn 10\n  load-server-state-from-file global\n"},
		{name: "none left of the wire", before: "  mode tcp\n  balance source\n  option tcp-check\n" + a, after: "  mode tcp\n  balance source\n  option tcp-check\n"},
		{name: "none left", before: a + b, after: ""},
		{name: "the unspecified address", before: a + b, after: a + "  server b 0.0.0.0:80\n"},
		{name: "broadcast", before: a + b, after: a + "  server b 255.255.255.255:80\n"},
		{name: "port with zeros", before: a + b, after: a + "  server b 192.0.2.1:0000080\n"},
		{name: "last that is checked", before: a + "  server b 192.0.2.2:80 check\n", after: a},
		{name: "backups only", before: a + "  server b 192.0.2.2:80 backup\n", after: "  server b 192.0.2.2:80 backup\n"},
		{name: "weight with a sign", before: a + "  server b 192.0.2.2:80 weight 1\n", after: a + "  server b 192.0.2.2:80 weight +2\n"},
		{name: "no weight at all", before: "  balance static-rr\n  server b 192.0.2.2:80 weight 1\n", after: "  balance static-rr\n  server b 192.0.2.2:80 weight 0\n"},
	}
}

func fileChanges(t *testing.T) []change {
	const use = "frontend f\n  bind 127.0.0.1:9999\n  http-request set-header x %[path,map_beg(/etc/haproxy/maps/m.map)]\n"
	const bind = "frontend f\n  bind 127.0.0.1:9999 ssl crt /etc/haproxy/ssl/a.pem\n"
	entries := func(name, content string) change {
		return change{name: "map: " + name, proxy: use, file: dataplane.Map, old: []byte("a b\n"), new: []byte(content)}
	}
	one, two := newCertificate(t), newCertificate(t)
	first, _ := pem.Decode(two)
	certificate := func(name string, content ...[]byte) change {
		return change{name: "certificate: " + name, proxy: bind, file: dataplane.Certificate, old: one, new: bytes.Join(content, nil)}
	}
	broken := []byte("-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n")
	cut := []byte("-----BEGIN CERTIFICATE-----\nMIIB\n")
	empty := []byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
	dh := []byte("-----BEGIN DH PARAMETERS-----\nMIIB\n-----END DH PARAMETERS-----\n")
	long := bytes.ReplaceAll(pem.EncodeToMemory(first), []byte("\n"), nil)
	long = bytes.Replace(bytes.Replace(long, []byte("CERTIFICATE-----"), []byte("CERTIFICATE-----\n"), 1), []byte("-----END"), []byte("\n-----END"), 1)
	_, key := pem.Decode(two)
	quoted := entries("a regular expression in quotes", "[ b\n")
	quoted.proxy += "  http-request deny if { path,map_reg(/etc/haproxy/maps/m'.map') -m found }\n"
	escaped := entries("an expression in hexadecimal", "[ b\n")
	escaped.proxy += "  http-request deny if { path,map_reg(/etc/haproxy/maps/\\x6d.map) -m found }\n"
	return []change{
		entries("another value", "a c\nd e\n"),
		entries("no value", "a\n"),
		entries("a space of Unicode", "a\u00a0b\n"),
		entries("a line of it", "a b\n\u00a0\n"),
		entries("another space of Unicode", "a\u2003b\n"),
		entries("a line beyond the buffer", "a "+strings.Repeat("x", 20000)+"\n"),
		entries("a line beyond the buffer, twice", "a "+strings.Repeat("x", 40000)+"\n"),
		entries("no end of line", "a b"),
		entries("no entries", "# none\n"),
		quoted, escaped,
		certificate("another", two),
		certificate("twice in a chain", pem.EncodeToMemory(first), two),
		certificate("key first", key, pem.EncodeToMemory(first)),
		certificate("broken behind", two, broken),
		certificate("cut behind", two, cut),
		certificate("too short behind", two, empty),
		certificate("broken before", broken, two),
		certificate("parameters behind", two, dh),
		certificate("one line", append(append([]byte(nil), long...), '\n'), key),
		certificate("two keys", two, one),
		certificate("words before", []byte("subject: a\n"), two),
		certificate("windows", bytes.ReplaceAll(two, []byte("\n"), []byte("\r\n"))),
	}
}
