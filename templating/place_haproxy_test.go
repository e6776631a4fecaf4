package templating_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/templating"
)

// rowsOfTable has a line for the rows of the table of directives in which
// HAProxy reads something inside a word. Each puts what HAProxy made of the
// value into a header of the request; N is its number.
var rowsOfTable = []string{
	`http-request set-header X-N {{ x }}`,
	`http-request set-header X-N "{{ x }}"`,
	`http-request add-header X-N "{{ x }}"`,
	`http-request set-header X-N "%[str({{ x }})]"`,
	`http-request set-header X-N %[str({{ x }})]`,
	`http-request set-header X-N "%[str('{{ y }}')]"`,
	`http-request set-header X-N '%[str("{{ y }}")]'`,
	"http-request set-var(txn.v) str({{ x }})\n  http-request set-header X-N %[var(txn.v)]",
	"http-request set-var(txn.v) str(\"{{ y }}\")\n  http-request set-header X-N %[var(txn.v)]",
	"http-request set-var-fmt(txn.f) {{ x }}\n  http-request set-header X-N %[var(txn.f)]",
	"http-request set-header X-N first\n  http-request replace-header X-N first {{ x }}",
	"http-request set-header X-N first\n  http-request replace-value X-N first \"{{ x }}\"",
	"http-request set-header X-N {{ x }}\n  http-request replace-header X-N ^{{ x }}$ {{ x }}",
	"http-request set-var(txn.s) str({{ x }}),regsub({{ x }},ok)\n  http-request set-header X-N {{ x }} if { var(txn.s) -m str ok }",
	"http-request set-var(txn.r) str({{ x }})\n  http-request set-header X-N {{ x }} if { var(txn.r) -m reg ^{{ x }}$ }",
	"http-request set-var(txn.r) str({{ x }})\n  http-request set-header X-N {{ x }} if { var(txn.r) -m str {{ x }} }",
	"http-request set-var(txn.q) str({{ x }})\n  acl is-N var(txn.q) -m str -- {{ x }}\n  http-request set-header X-N {{ x }} if is-N",
	"http-request set-header X-N {{ x }} if { str({{ x }}) -m beg {{ x }} }",
	"http-request set-header X-N %[str(a),concat({{ x }}),regsub(^a,)]",
	"http-request set-header X-N %[str(a),regsub(a,{{ x }})]",
}

// TestPlacesInHAProxy starts HAProxy with a value in each row of the table, and
// has it say what it made of them: the value, to the byte.
func TestPlacesInHAProxy(t *testing.T) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("no haproxy on the PATH")
	}
	for i, x := range []string{"plain", "100% sure", "%[env(HOME)]", "a,b", "f(x)", `back\slash \n \t \x41`, `say "hi"`, "it's", "a#b", "$HOME ${HOME}",
		"%%", "%ci", "%{+Q}o", "a.b*c+d?[e]{2}^$|(f)", "],x[", "ü", ")", `\`, `"`, `a"),str(b`, "if", "a } b", "-i"} {
		t.Run(fmt.Sprint(i), func(t *testing.T) { askHAProxy(t, x) }) // the name is a part of the socket's path
	}
}

func askHAProxy(t *testing.T, x string) {
	socket := filepath.Join(t.TempDir(), "s")
	var b strings.Builder
	b.WriteString("defaults\n  mode http\n  timeout client 5s\n  timeout server 5s\n  timeout connect 5s\nfrontend f\n  bind unix@{{ raw(socket) }}\n")
	var asked []int
	for i, row := range rowsOfTable {
		if strings.ContainsAny(x, "'") && strings.Contains(row, "'") ||
			(strings.HasPrefix(x, "-") && strings.Contains(row, "-m ") && !strings.Contains(row, "-- ")) {
			continue // refused
		}
		asked = append(asked, i)
		b.WriteString("  " + strings.ReplaceAll(strings.ReplaceAll(row, "-N", fmt.Sprint("-", i)), "{{ y }}", "{{ x }}") + "\n")
		fmt.Fprintf(&b, "  http-request set-var(txn.w%d) req.fhdr(X-%d)\n  http-after-response set-header X-%d %%[var(txn.w%d)]\n", i, i, i, i)
	}
	b.WriteString("  http-request return status 200 content-type text/plain string \"{{ x }}\"\n")
	e, err := templating.Compile(files("haproxy.cfg", b.String()), &templating.Options{Vars: map[string]any{"x": "", "socket": ""}})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := e.Render(t.Context(), "haproxy.cfg", map[string]any{"x": x, "socket": socket})
	if err != nil {
		t.Fatal(err)
	}
	response, body := answer(t, cfg, socket)
	for _, i := range asked {
		if got := response.Header.Get(fmt.Sprint("X-", i)); got != x {
			t.Errorf("%s\nwith %q gives %q", rowsOfTable[i], x, got)
		}
	}
	if body != x {
		t.Errorf("the body is %q", body)
	}
}

// answer runs HAProxy for one request.
func answer(t *testing.T, cfg, socket string) (*http.Response, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(cfg), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("haproxy", "-c", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, cfg)
	}
	cmd := exec.Command("haproxy", "-db", "-f", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	transport := &http.Transport{DisableKeepAlives: true, Dial: func(string, string) (net.Conn, error) { return net.Dial("unix", socket) }}
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	for deadline := time.Now().Add(10 * time.Second); ; {
		response, err := client.Get("http://host.test/")
		if err == nil {
			body, _ := io.ReadAll(response.Body)
			response.Body.Close()
			return response, string(body)
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
