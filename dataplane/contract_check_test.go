package dataplane_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// check is one line of the file "checks" of an archive, which says how HAProxy
// must answer:
//
//	get PATH STATUS BODY [header=NAME:VALUE] [user=NAME:PASSWORD] [at=SOCKET]
//	spread PATH SERVER...       these servers answer, and no others
//	certificate SNI NAME/ORGANISATION
//	command COMMAND TEXT        the answer to a runtime command has that text
//	refused SOCKET              nobody listens there
//
// "_" stands for a blank in words of more than one, "-" for any body.
func (p *place) check(line string) error {
	words := strings.Fields(line)
	switch words[0] {
	case "get":
		return p.checkGet(words[1], words[2], words[3], words[4:])
	case "spread":
		return p.checkSpread(words[1], words[2:])
	case "certificate":
		return p.checkCertificate(words[1], words[2])
	case "command":
		answer, err := p.ask(strings.ReplaceAll(words[1], "_", " "))
		if want := strings.ReplaceAll(words[2], "_", " "); err == nil && !strings.Contains(answer, want) {
			err = fmt.Errorf("no %q in %q", want, answer)
		}
		return err
	case "refused":
		conn, err := net.Dial("unix", p.socket(words[1]))
		if err == nil {
			_ = conn.Close()
			return errors.New("somebody listens")
		}
		return nil
	}
	return errors.New("there is no such check")
}

func (p *place) socket(name string) string { return filepath.Join(p.sockets, name+".sock") }

// get sends a request on a connection of its own.
func (p *place) get(socket, path string, prepare func(*http.Request)) (*http.Response, string, error) {
	client := &http.Client{
		Timeout: patience,
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", p.socket(socket))
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequest(http.MethodGet, "http://shop.test"+path, nil)
	if err != nil {
		return nil, "", err
	}
	if prepare != nil {
		prepare(req)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return res, strings.TrimSpace(string(body)), err
}

func (p *place) checkGet(path, status, body string, more []string) error {
	socket, header, value := "web", "", ""
	var prepare func(*http.Request)
	for _, option := range more {
		key, of, _ := strings.Cut(option, "=")
		first, second, _ := strings.Cut(of, ":")
		switch key {
		case "at":
			socket = of
		case "user":
			prepare = func(r *http.Request) { r.SetBasicAuth(first, second) }
		case "header":
			header, value = first, strings.ReplaceAll(second, "_", " ")
		}
	}
	res, got, err := p.get(socket, path, prepare)
	switch {
	case err != nil:
		return err
	case fmt.Sprint(res.StatusCode) != status || body != "-" && got != body:
		return fmt.Errorf("%d %q", res.StatusCode, got)
	case header != "" && res.Header.Get(header) != value:
		return fmt.Errorf("%s: %q", header, res.Header.Get(header))
	}
	return nil
}

func (p *place) checkSpread(path string, servers []string) error {
	seen := map[string]bool{}
	// One that had a small weight before has to wait for its turn.
	for n := 0; n < 4*len(servers) || len(seen) < len(servers) && n < 200; n++ {
		_, body, err := p.get("web", path, nil)
		if err != nil {
			return err
		}
		if seen[body] = true; !slices.Contains(servers, body) {
			return fmt.Errorf("%q answers", body)
		}
	}
	if len(seen) != len(servers) {
		return fmt.Errorf("only these answer: %v", seen)
	}
	return nil
}

func (p *place) checkCertificate(sni, want string) error {
	d := tls.Dialer{Config: &tls.Config{ServerName: sni, InsecureSkipVerify: true}} //nolint:gosec // the name is what is tested
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := d.DialContext(ctx, "unix", p.socket("tls"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	subject := conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject
	if got := subject.CommonName + "/" + strings.Join(subject.Organization, ","); got != want {
		return errors.New(got)
	}
	return nil
}

// serves checks that HAProxy answers as configured. A reload leaves the sockets
// to the old worker for a moment, which is said by patient.
func (p *place) serves(t *testing.T, checks []string, patient bool) {
	t.Helper()
	for _, line := range checks {
		err := p.check(line)
		for deadline := time.Now().Add(patience); err != nil && patient && time.Now().Before(deadline); {
			err = p.check(line)
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// ask sends a command to the worker. The connection is refused for a moment
// while workers change.
func (p *place) ask(commands ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := haproxyctl.Dial(ctx, p.stats)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	answers, err := conn.Batch(ctx, commands)
	return strings.Join(answers, "\n"), err
}

// worker is the process that answers on the stats socket, 0 where none does.
func (p *place) worker() string {
	answer, _ := p.ask("show info")
	for line := range strings.Lines(answer) {
		if pid, ok := strings.CutPrefix(line, "Pid: "); ok {
			return strings.TrimSpace(pid)
		}
	}
	return ""
}

// alone waits until no other worker than the last can accept a connection: both
// have the stats socket for as long as the old one does not know that it goes.
func (p *place) alone(t *testing.T) {
	t.Helper()
	eventually(t, "the old workers have ended", func() bool {
		procs, err := p.master.Procs(t.Context())
		return err == nil && procs.WorkerPID() != 0 && len(procs.Old)+len(procs.Loading) == 0
	})
}

// state is what the worker has loaded, as far as it can change at runtime, in a
// form that does not depend on how it came to that.
func (p *place) state(t *testing.T) []string {
	t.Helper()
	p.alone(t)
	ask := func(command string) []string {
		answer, err := p.ask(command)
		require.NoError(t, err)
		return strings.Split(strings.TrimSpace(answer), "\n")
	}
	var state []string
	for _, line := range ask("show stat -1 4 -1") { // of servers
		f := strings.Split(line, ",")
		if len(f) > 73 && !strings.HasPrefix(line, "#") {
			maintenance := strings.HasPrefix(f[17], "MAINT")
			state = append(state, fmt.Sprintf("server %s/%s at %s weight %s limit %s maintenance %v checked %v", f[0], f[1], f[73], f[18], f[25], maintenance, f[36] != "" && !maintenance))
		}
	}
	for _, list := range []struct{ all, one string }{
		{"show map", "show map "}, {"show ssl cert", "show ssl cert "}, {"show ssl crt-list", "show ssl crt-list "},
	} {
		for _, line := range ask(list.all) {
			name := line
			if list.all == "show map" { // 0 (/path) pattern loaded from file ...
				_, rest, _ := strings.Cut(line, "(")
				name, _, _ = strings.Cut(rest, ")")
			}
			if !strings.HasPrefix(name, "/") {
				continue
			}
			for _, entry := range ask(list.one + name) {
				switch {
				case list.all == "show map":
					_, entry, _ = strings.Cut(entry, " ") // without the address in memory
				case list.all == "show ssl cert" && !strings.HasPrefix(entry, "SHA1 FingerPrint"):
					continue
				}
				state = append(state, fmt.Sprintf("%s: %s", name, entry))
			}
		}
	}
	slices.Sort(state)
	return state
}

// quiet is for servers that must meet clients who break off.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
