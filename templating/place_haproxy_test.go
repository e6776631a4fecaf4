package templating_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// hostileValues are what a resource may have in place of an honest value.
var hostileValues = []string{"plain", "a b", `say "hi"`, "it's", `back\slash \n \t \x41 \1`, `\`, `"`, "a#b", "#", "%", "100% sure", "%%", "%ci %{+Q}o", "%[env(HOME)]",
	"$HOME", "${HOME}", "$HOME ${HOME}", "{", "}", "a } b", ",", "a,b", "(", ")", "f(x)", `a"),str(b`, "],x[", "a.b*c+d?[e]{2}^$|(f)", "!", "-f", "--", "-m", "-i", "@", "unix@/x", "@1",
	"if", "unless", "or", "||", "gt", "src", "lower", "map(/a)", "date", "TRUE", "ü", "日本", ";", "a; Path=/x", "a=b", "a:b", ":1-2", "1-9", "a:-1", "*", "/a/../b", "..", "http-request", "lua.f",
	strings.Repeat("a", 3000), strings.Repeat("%\\ ", 300) + "."}

// neverWritten are refused wherever they stand.
var neverWritten = []string{"a\nb", "a\rb", "a\r\nb", "a\x00b", "a\tb", "a\x7fb", "a\x1bb", "a\xffb", "\n", "\r\n  http-request deny"}

// meaning is a row of the table of directives, and what HAProxy says that it
// made of the value x.
type meaning struct {
	before string            // sections before that of the row
	row    string            // lines of a backend, N for its number, DIR for a folder
	shows  string            // the header of the answer with the value, or "body"; X if not said
	want   string            // what stands in it, the value if not said
	takes  func(string) bool // what may not be refused: everything if not said
	listen bool              // the row is one of a frontend
	user   string            // of the request
	leaves func(string) bool // of what cannot be seen
	files  map[string]string // templates of files, by name
}

func only(more string) func(string) bool {
	return func(x string) bool {
		return strings.Trim(x, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"+more) == ""
	}
}

func without(chars string) func(string) bool {
	return func(x string) bool { return !strings.ContainsAny(x, chars) }
}

func isCondition(x string) bool { return slices.Contains([]string{"if", "unless", "or", "||", "!"}, x) }
func long(x string) bool        { return len(x) > 120 } // HAProxy cuts a unique ID
func colon(x string) bool       { return strings.Contains(x, ":") }
func noFlag(x string) bool      { return !strings.HasPrefix(x, "-") }
func patternOrConverter(x string) bool {
	return pattern(x) && !slices.Contains([]string{"or", "date", "lower", "map(/a)"}, x)
}
func pattern(x string) bool { return noFlag(x) && x != "}" }

var (
	asName    = func(x string) bool { return only("-_.:")(x) && !isCondition(x) }
	asToken   = func(x string) bool { return len(x) < 256 && only("!#$%&'*+-.^_`|~")(x) && !isCondition(x) }
	asCookie  = without(" \",;\\ü日本")
	noSpace   = without(" ")
	aPathPart = func(x string) bool { return without("/()$")(x) && !strings.Contains(x, "..") }
)

const answers = "\n  http-request return status 200 hdr X \"%[req.fhdr(X)]\""

// meanings has a line for each way in which HAProxy reads a word, with the rows
// of the table where it tells what it read.
var meanings = []meaning{
	{row: `http-request set-header X {{ x }}` + answers},
	{row: `http-request set-header X "{{ x }}"` + answers},
	{row: `http-request set-header X '{{ x }}'` + answers, takes: without("'")},
	{row: `http-request add-header X "{{ x }}"` + answers},
	{row: `http-request set-header X "%[str({{ x }})]"` + answers},
	{row: `http-request set-header X %[str({{ x }})]` + answers},
	{row: `http-request set-header X "%[str('{{ x }}')]"` + answers, takes: without("'")},
	{row: `http-request set-header X '%[str("{{ x }}")]'` + answers, takes: without("'")},
	{row: `http-request set-header X '%[str({{ x }})]'` + answers, takes: without("'")},
	{row: `http-request set-header X %[str(a),concat({{ x }}),regsub(^a,)]` + answers},
	{row: `http-request set-header X %[str(a),regsub(a,{{ x }})]` + answers},
	{row: "http-request set-header X first\n  http-request replace-header X first {{ x }}" + answers},
	{row: "http-request set-header X first\n  http-request replace-value X first \"{{ x }}\"" + answers},
	{row: "http-request set-header X {{ x }}\n  http-request replace-header X ^{{ x }}$ ({{ x }})" + answers, want: "({{ x }})"},
	{row: "http-request set-var(txn.v) str({{ x }})\n  http-request return status 200 hdr X %[var(txn.v)]"},
	{row: "http-request set-var(txn.v) str(\"{{ x }}\")\n  http-request return status 200 hdr X %[var(txn.v)]"},
	{row: "http-request set-var-fmt(txn.f) {{ x }}\n  http-request return status 200 hdr X %[var(txn.f)]"},
	{row: "http-request set-var(txn.{{ x }}) str(yes)\n  http-request return status 200 hdr X %[var(txn.{{ x }})]", want: "yes", takes: only("_.")},
	{row: "http-request set-var(txn.s) str({{ x }}),regsub({{ x }},ok)\n  http-request return status 200 hdr X %[var(txn.s)]", want: "ok"},

	// Conditions: the pattern is the value, and what stands behind it is a pattern too.
	{row: "http-request set-var(txn.r) str({{ x }})\n  http-request return status 200 hdr X {{ x }} if { var(txn.r) -m reg ^{{ x }}$ } !{ str(no) -m reg ^{{ x }}$ }", takes: pattern},
	{row: "http-request set-var(txn.r) str({{ x }})\n  http-request return status 200 hdr X {{ x }} if { var(txn.r) -m str {{ x }} } { str(no) -m str {{ x }} no }", takes: pattern},
	{row: "http-request set-var(txn.q) str({{ x }})\n  acl is-N var(txn.q) -m str -- {{ x }}\n  acl no-N str(no) -m str -- {{ x }}\n  http-request return status 200 hdr X {{ x }} if is-N !no-N", takes: pattern},
	{row: "http-request return status 200 hdr X {{ x }} if { str({{ x }}) -m beg {{ x }} } { str(no) -m beg {{ x }} no }", takes: pattern},
	{row: "http-request set-header Y {{ x }}\n  http-request return status 200 hdr X {{ x }} if { req.fhdr(Y) {{ x }} } { path {{ x }} /N }", takes: patternOrConverter},
	{row: "http-request set-header Y {{ x }}\n  http-request return status 200 hdr X {{ x }} if { req.fhdr(Y) -i \"{{ x }}\" } { path_beg {{ x }} / }", takes: pattern},
	{row: "acl a-{{ x }} always_true\n  http-request return status 200 hdr X yes if a-{{ x }}", want: "yes", takes: asName},
	{row: "http-request return status 200 hdr X {{ x }} if { str({{ x }}) -m str -f DIR/N.lst } !{ str(no) -m str -f DIR/N.lst }", takes: func(x string) bool { return x[0] != '#' && x[0] != ' ' },
		files: map[string]string{"N.lst": "{{ x }}\nyes\n"}},
	{row: "http-request return status 200 hdr X %[str({{ x }}),map_str(DIR/N.map)]", want: "yes", takes: func(x string) bool { return noSpace(x) && x[0] != '#' },
		files: map[string]string{"N.map": "{{ x }} yes\nno no\n"}},
	{row: "http-request return status 200 hdr X %[str(k),map_str(DIR/N.map)]", files: map[string]string{"N.map": "k {{ x }}\nno no\n"}},
	{row: "http-request return status 200 hdr X %[str(k),map_str(DIR/NM{{ x }}.map)]", want: "yes", takes: func(x string) bool { return aPathPart(x) && len(x) < 200 },
		files: map[string]string{"NM{{ raw(x) }}.map": "k yes\n"}},

	// Answers.
	{row: `http-request return status 200 content-type text/plain string "{{ x }}"`, shows: "body"},
	{row: `http-request return status 200 content-type text/plain string {{ x }}`, shows: "body"},
	{row: `http-request return status 200 content-type text/plain lf-string "{{ x }}"`, shows: "body"},
	{row: `http-request return status 200 content-type {{ x }} string yes`, shows: "Content-Type"},
	{row: `http-request return status 200 hdr X "{{ x }}" hdr Y "{{ x }}"`},
	{row: `http-request return status 200 hdr {{ x }} yes`, shows: "{{ x }}", want: "yes", takes: asToken},
	{row: `http-request deny deny_status 403 content-type text/plain string "{{ x }}"`, shows: "body"},
	{row: `http-request deny deny_status 429 hdr X {{ x }}`},
	{row: `http-request redirect location "https://a.test/{{ x }}" code 301`, shows: "Location", want: "https://a.test/{{ x }}"},
	{row: `http-request redirect location {{ x }} if TRUE`, shows: "Location"},
	{row: `http-request redirect prefix https://{{ x }}`, shows: "Location", want: "https://{{ x }}/N"},
	{row: `http-request redirect scheme {{ x }}`, shows: "Location", want: "{{ x }}://host.test/N"},
	{row: `redirect location /{{ x }} if { path_beg / }`, shows: "Location", want: "/{{ x }}"},
	{row: `http-request redirect location / set-cookie A={{ x }}`, shows: "Set-Cookie", want: "A={{ x }}; path=/;", takes: asCookie},
	{row: `http-request redirect location / clear-cookie {{ x }}=`, shows: "Set-Cookie", want: "{{ x }}=; path=/; Max-Age=0;", takes: asCookie},
	{row: `http-request auth realm {{ x }}`, shows: "Www-Authenticate", want: `Basic realm="{{ x }}"`},
	{row: `http-request auth realm "{{ x }}"`, shows: "Www-Authenticate", want: `Basic realm="{{ x }}"`},
	{row: "stats enable\n  stats uri /\n  stats auth u:p\n  stats realm {{ x }}", shows: "Www-Authenticate", want: `Basic realm="{{ x }}"`},
	{row: `http-error status 503 content-type text/plain string "{{ x }}"`, shows: "body"},
	{row: `http-error status 503 content-type text/plain lf-string {{ x }}`, shows: "body"},
	{row: `http-error status 503 content-type text/plain string a hdr X {{ x }}`},
	{row: `errorloc302 503 "http://a.test/{{ x }}"`, shows: "Location", want: "http://a.test/{{ x }}"},
	{row: `errorfile 503 DIR/NE{{ x }}.http`, shows: "body", want: "an error page", takes: func(x string) bool { return aPathPart(x) && len(x) < 200 },
		files: map[string]string{"NE{{ raw(x) }}.http": "HTTP/1.0 503 No\r\nConnection: close\r\n\r\nan error page"}},
	{before: "http-errors e-N-{{ x }}\n  errorfile 503 DIR/page.http\n", row: "errorfiles e-N-{{ x }}", shows: "body", want: "a page", takes: asName},
	{row: "http-after-response set-header X {{ x }}\n  http-request return status 200"},
	{row: "http-after-response set-header X a\n  http-after-response replace-value X a {{ x }}\n  http-request return status 200"},

	// What the request becomes.
	{row: "http-request set-path /{{ x }}\n  http-request return status 200 hdr X %[path]", want: "/{{ x }}", takes: func(x string) bool { return !strings.ContainsAny(x, " ?") }},
	{row: "http-request set-pathq /{{ x }}\n  http-request return status 200 hdr X %[pathq]", want: "/{{ x }}", takes: noSpace},
	{row: "http-request set-query {{ x }}\n  http-request return status 200 hdr X %[query]", takes: noSpace},
	{row: "http-request set-uri http://a.test/{{ x }}\n  http-request return status 200 hdr X %[pathq]", want: "/{{ x }}", takes: noSpace},
	{row: "http-request replace-path .* /{{ x }}\n  http-request return status 200 hdr X %[pathq]", want: "/{{ x }}", takes: func(x string) bool { return !strings.ContainsAny(x, " ?") }},
	{row: "http-request replace-uri .* /{{ x }}\n  http-request return status 200 hdr X %[pathq]", want: "/{{ x }}", takes: noSpace},
	{row: "http-request set-method {{ x }}\n  server s unix@DIR/server", shows: "X-Method", takes: func(x string) bool { return only("")(x) && !isCondition(x) }, leaves: colon},
	{row: "http-request set-map(DIR/set.map) N{{ x }} {{ x }}\n  http-request return status 200 hdr X %[str(N{{ x }}),map_str(DIR/set.map)]"},
	{row: "http-request add-acl(DIR/set.lst) N{{ x }}\n  http-request return status 200 hdr X {{ x }} if { str(N{{ x }}) -m str -f DIR/set.lst } !{ str(no) -m str -f DIR/set.lst }"},

	// Names, users and the environment.
	{before: "global\n  setenv EN {{ x }}\n", row: "http-request return status 200 hdr X %[env(EN)]"},
	{before: "global\n  presetenv FN \"{{ x }}\"\n", row: "http-request return status 200 hdr X %[env(FN)]"},
	{before: "global\n  set-var proc.vN str({{ x }})\n", row: "http-request return status 200 hdr X %[var(proc.vN)]"},
	{before: "global\n  set-var-fmt proc.fN {{ x }}\n", row: "http-request return status 200 hdr X %[var(proc.fN)]"},
	{before: "userlist uN\n  user u insecure-password {{ x }}\n", row: "http-request return status 200 hdr X yes if { http_auth(uN) }", user: "u:{{ x }}", want: "yes"},
	{before: "userlist uN\n  user {{ x }} insecure-password p\n", row: "http-request return status 200 hdr X %[http_auth_user] if { http_auth(uN) }", user: "{{ x }}:p", takes: asName, leaves: colon},
	{before: "userlist uN\n  group {{ x }} users u\n  user u insecure-password p\n", row: "http-request return status 200 hdr X yes if { http_auth_group(uN) {{ x }} }", user: "u:p", want: "yes",
		takes: func(x string) bool { return asName(x) && noFlag(x) }},
	{row: "stats enable\n  stats uri /\n  stats auth u:{{ x }}\n  stats scope .", user: "u:{{ x }}", shows: "body", want: "HAProxy"},
	{before: "backend b-N-{{ x }}\n  http-request return status 200 hdr X %[be_name]\n", listen: true, row: "use_backend b-N-{{ x }} if { path /N }", want: "b-N-{{ x }}", takes: asName},
	{before: "backend b-N-{{ x }}\n  http-request return status 200 hdr X %[be_name]\n", listen: true, row: "default_backend b-N-{{ x }}", want: "b-N-{{ x }}", takes: asName},
	{listen: true, row: "unique-id-format \"{{ x }}\"\n  http-request return status 200 hdr X %[unique-id]", leaves: long},
	{listen: true, row: "unique-id-format a%{+X}o-{{ x }}\n  http-request return status 200 hdr X %[unique-id]", want: "a-{{ x }}", leaves: long},
	{listen: true, row: "declare capture request len 5000\n  http-request capture str({{ x }}) id 0\n  http-request return status 200 hdr X %[capture.req.hdr(0)]"},

	// What a server gets and says.
	{row: "cookie SRV insert\n  server s unix@DIR/server cookie {{ x }}", shows: "Set-Cookie", want: "SRV={{ x }}; path=/", takes: asCookie},
	{row: "cookie {{ x }} insert\n  server s unix@DIR/server cookie v", shows: "Set-Cookie", want: "{{ x }}=v; path=/", takes: asCookie},
	{row: "http-send-name-header X\n  server {{ x }} unix@DIR/server", shows: "X", takes: asName},
	{row: "http-send-name-header {{ x }}\n  server s unix@DIR/server", shows: "{{ x }}", want: "s", takes: asToken},
	{row: "http-request set-header X {{ x }}\n  server s unix@DIR/server"},
	{row: "http-response set-header X {{ x }}\n  server s unix@DIR/server"},
	{row: "http-response replace-header Content-Type .* {{ x }}\n  server s unix@DIR/server", shows: "Content-Type"},
	{row: "http-request set-path /{{ x }}\n  server s unix@DIR/server", shows: "X-Path", want: "/{{ x }}", takes: only("-_.!$*+"), leaves: func(x string) bool { return strings.Contains(x, "%") }},
}

// TestMeanings has each hostile value in each row of the table: it is refused,
// or HAProxy takes it for this one value, to the byte.
func TestMeanings(t *testing.T) {
	dir := t.TempDir()
	if len(dir) > 60 { // the path of a socket has at most 97 bytes
		var err error
		if dir, err = os.MkdirTemp("", "m"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
	}
	var cases []askedFor
	var cfg strings.Builder
	fmt.Fprintf(&cfg, "global\n  tune.bufsize 65536\n  tune.maxrewrite 32768\n  stats socket %s/stats level admin\n", dir)
	fmt.Fprintf(&cfg, "defaults\n  mode http\n  timeout client 1m\n  timeout server 1m\n  timeout connect 1m\n  no option httpclose\n")
	fmt.Fprintf(&cfg, "frontend entry\n  bind unix@%s/entry\n  use_backend b%%[path,word(1,/)]\n", dir)
	writeFile(t, dir, "page.http", "HTTP/1.0 503 No\r\nConnection: close\r\n\r\na page")
	writeFile(t, dir, "set.map", "")
	writeFile(t, dir, "set.lst", "")
	for _, m := range meanings {
		cases = append(cases, m.render(t, dir, len(cases), &cfg)...)
	}
	serveEcho(t, filepath.Join(dir, "server"))
	startHAProxy(t, dir, cfg.String())
	clients := map[string]http.RoundTripper{}
	for _, c := range cases {
		if clients[c.socket] == nil {
			clients[c.socket] = overSocket(t, filepath.Join(dir, c.socket))
		}
		if got, err := c.ask(t.Context(), clients[c.socket]); err != nil {
			t.Errorf("%s\nwith %.80q: %v", c.row, c.x, err)
		} else if c.shows == "body" && c.want == "HAProxy" && strings.Contains(got, c.want) {
		} else if c.want = strings.TrimSpace(c.want); got != c.want {
			t.Errorf("%s\nwith %.80q gives %.80q, want %.80q", c.row, c.x, got, c.want)
		}
	}
	t.Logf("%d questions about %d rows", len(cases), len(meanings))
}

// askedFor is a row with one value.
type askedFor struct {
	row, x      string
	number      string
	socket      string
	shows, want string
	user        string
}

// render writes the row once for each value that is not refused.
func (m meaning) render(t *testing.T, dir string, number int, cfg *strings.Builder) (cases []askedFor) {
	t.Helper()
	text := m.before + "backend bN\n  " + m.row + "\n"
	if m.listen {
		text = m.before + "frontend fN\n  bind unix@DIR/N\n  " + m.row + "\n"
	}
	e := compileRow(t, text)
	var names []string
	var engines []*templating.Engine
	for name, text := range m.files {
		names, engines = append(names, name), append(engines, compileFile(t, name, text))
	}
	for _, x := range neverWritten {
		if got, err := e.render(t, x, dir, "0"); err == nil && strings.Contains(m.before+m.row, "{{ x }}") {
			t.Errorf("%s\n%q is written: %q", m.row, x, got)
		}
	}
	for _, x := range hostileValues {
		n := strconv.Itoa(number + len(cases))
		fill := strings.NewReplacer("{{ x }}", x, "{{ raw(x) }}", x, "N", n, "DIR", dir).Replace
		section, err := e.render(t, x, dir, n)
		written := map[string]string{}
		for i, file := range names {
			if strings.Contains(file, "x") && len(x) > 200 {
				err = errNotAsked
			}
			if err == nil {
				written[fill(file)], err = engines[i].Render(t.Context(), entryOf(file), map[string]any{"x": x})
			}
		}
		if err != nil {
			require.False(t, err != errNotAsked && (m.takes == nil || m.takes(x)), "%s\nan honest value is refused: %v", m.row, err)
			continue
		}
		for name, content := range written {
			writeFile(t, dir, name, content)
		}
		if m.leaves != nil && m.leaves(x) {
			continue
		}
		cfg.WriteString(section)
		c := askedFor{row: m.row, x: x, number: n, socket: "entry", shows: fill(m.shows), want: x, user: fill(m.user)}
		if m.listen {
			c.socket = n
		}
		if m.want != "" {
			c.want = fill(m.want)
		}
		cases = append(cases, c)
	}
	return cases
}

// errNotAsked is of a value that no file can be named by.
var errNotAsked = errors.New("longer than names of files")

// row is a compiled template of a row.
type row struct{ *templating.Engine }

func compileRow(t *testing.T, text string) row {
	t.Helper()
	text = strings.NewReplacer("DIR", "{{ raw(dir) }}", "N", "{{ raw(n) }}").Replace(text)
	e := compile(t, files("haproxy.cfg", text), &templating.Options{Vars: map[string]any{"x": "", "n": "", "dir": ""}})
	return row{e}
}

func (r row) render(t *testing.T, x, dir, n string) (string, error) {
	return r.Render(t.Context(), "haproxy.cfg", map[string]any{"x": x, "n": n, "dir": dir})
}

// entryOf is a name for the template of a file of the same kind.
func entryOf(file string) string { return "file" + filepath.Ext(file) }

func compileFile(t *testing.T, name, text string) *templating.Engine {
	t.Helper()
	e := compile(t, files(entryOf(name), text), &templating.Options{Vars: map[string]any{"x": ""}})
	return e
}

func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
}

// ask returns what HAProxy shows of the value.
func (c askedFor) ask(ctx context.Context, client http.RoundTripper) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://host.test/"+c.number, nil)
	if err != nil {
		return "", err
	}
	if user, password, ok := strings.Cut(c.user, ":"); ok {
		request.SetBasicAuth(user, password)
	}
	response, err := client.RoundTrip(request)
	if err != nil {
		return "", err
	}
	body, err := readBody(response)
	switch c.shows {
	case "body":
		return body, err
	case "":
		return response.Header.Get("X"), err
	case "Www-Authenticate":
		return unquoted(response.Header.Get(c.shows)), err
	}
	if values := response.Header[http.CanonicalHeaderKey(c.shows)]; len(values) != 1 {
		return fmt.Sprint(response.Status, values), err
	}
	return response.Header.Get(c.shows), err
}

// unquoted reads the one quoted string of a header as RFC 9110 has it, and says
// so where it does not end at the end.
func unquoted(header string) string {
	name, text, _ := strings.Cut(header, `"`)
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i != len(text)-1 {
				return "more than a quoted string: " + header
			}
			return name + `"` + b.String() + `"`
		case '\\':
			i++
		}
		if i < len(text) {
			b.WriteByte(text[i])
		}
	}
	return "no end: " + header
}

// overSocket asks over a UNIX socket.
func overSocket(t *testing.T, socket string) http.RoundTripper {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}
