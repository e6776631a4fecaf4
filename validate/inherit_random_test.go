package validate

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
)

var (
	randomSeed = flag.Uint64("inherit.seed", 1, "where TestInheritsAtRandom begins")
	randomFor  = flag.Duration("inherit.for", 0, "how long TestInheritsAtRandom goes on; zero means a few changes")
)

// TestInheritsAtRandom makes configurations at random, changes each in many
// ways, one upon the other, and asks haproxy about whatever was inherited. HAPROXY_BIN names
// another haproxy than that on the PATH.
func TestInheritsAtRandom(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("haproxy"); err != nil && os.Getenv("HAPROXY_BIN") == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	m := &maker{certificates: [][]byte{newCertificate(t), newCertificate(t), []byte("no certificate\n")}}
	v := &Validator{Binary: os.Getenv("HAPROXY_BIN"), NoInherit: true, Timeout: time.Minute}
	start, asked, bases := time.Now(), 0, 0
	for seed := *randomSeed; bases < 3 || time.Since(start) < *randomFor; seed++ {
		m.Rand = rand.New(rand.NewPCG(seed, 0))
		base := m.draft()
		if !takes(t, v, base.config(t)) {
			continue
		}
		bases++
		kept := &Validator{}
		kept.took(t.Context(), base.config(t), &verdict{})
		for range 40 {
			next := m.change(base)
			cfg := next.config(t)
			if got, want := fmt.Sprint(kept.Syntax(cfg)), fmt.Sprint(Syntax(cfg)); got != want {
				t.Fatalf("seed %d: phase 1 says\n%s\nwant\n%s\nof\n%s", seed, got, want, next)
			}
			if kept.inherits(t.Context(), cfg) == nil {
				continue
			}
			asked++
			if !takes(t, v, next.config(t)) {
				t.Fatalf("seed %d: inherited what haproxy refuses\n%s\nbecomes\n%s", seed, base, next)
			}
			base = next // which the next one inherits from
		}
	}
	t.Logf("%d bases, asked %d times", bases, asked)
	if asked == 0 {
		t.Error("nothing was inherited")
	}
}

// takes asks haproxy.
func takes(t *testing.T, v *Validator, cfg *dataplane.Config) bool {
	t.Helper()
	_, err := v.Semantics(t.Context(), cfg)
	var invalid *Error
	if err != nil && !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	return err == nil
}

// draft is a configuration in lines.
type draft struct {
	lines       []string
	entries     []string // of m.map
	certificate []byte   // of a.pem
}

func (d *draft) String() string {
	return strings.Join(d.lines, "\n") + "\n-- m.map --\n" + strings.Join(d.entries, "\n")
}

func (d *draft) config(t *testing.T) *dataplane.Config {
	t.Helper()
	cfg, err := dataplane.NewConfig(strings.Join(d.lines, "\n")+"\n",
		dataplane.File{Kind: dataplane.Map, Name: "m.map", Content: []byte(strings.Join(d.entries, "\n") + "\n")},
		dataplane.File{Kind: dataplane.Certificate, Name: "a.pem", Content: d.certificate})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// maker makes drafts and changes them.
type maker struct {
	*rand.Rand
	certificates [][]byte
}

func pick[T any](m *maker, from ...T) T { return from[m.IntN(len(from))] }

// some returns a few of these lines, in their order.
func (m *maker) some(lines ...string) (found []string) {
	for _, line := range lines {
		if m.IntN(8) == 0 {
			found = append(found, line)
		}
	}
	return found
}

func (m *maker) draft() *draft {
	d := &draft{certificate: m.certificates[0], entries: []string{"a b"}}
	d.add(m.some("defaults d\n  mode http\n  timeout server 1s", "log-forward n2\n  dgram-bind 127.0.0.1:9997\n  log stdout local0")...)
	d.add("defaults", "  mode http", "  timeout connect 1s", "  timeout client 1s", "  timeout server 1s")
	d.add(m.some("  default-server check inter 2s", "  balance source", "  load-server-state-from-file global")...)
	d.add("peers p", "  peer x 127.0.0.1:1")
	d.add("frontend f", pick(m, "  bind 127.0.0.1:9999", "  bind 127.0.0.1:9999 ssl crt /etc/haproxy/ssl/a.pem", "  bind 127.0.0.1:9999 ssl crt \"/etc/haproxy/ssl/a.pem\" verify optional ca-file /etc/haproxy/ssl/a.pem"))
	d.add(m.some("  http-request set-header x %[path,map_beg(/etc/haproxy/maps/m.map)]", "  http-request set-header x \"%[path,map(/etc/haproxy/maps/m.map,none)]\"",
		"  http-request deny if { path,map_reg(/etc/haproxy/maps/m'.map') -m found }", "  http-request deny if { src,map_ip(/etc/haproxy/maps/m.map) -m found }",
		"  http-request deny if { path -f /etc/haproxy/maps/m.map }", "  http-request set-map(/etc/haproxy/maps/m.map) %[path] x",
		"  http-request deny unless { srv_is_up(b/a) }", "  http-request set-header y \"%[srv_queue('b/c')]\"", "  use_backend c if { nbsrv(b) lt 1 }",
		"  use_backend %[path]", "  monitor fail if { nbsrv(d) lt 1 }")...)
	// What reads the map, or names servers, often: those are the ways to be wrong.
	d.add(pick(m, "", "  http-request deny if { path,map_reg(/etc/haproxy/maps/m.map) -m found }", "  http-request deny if { path,map_sub(/etc/haproxy/maps/m.map) -m found }"))
	d.add(pick(m, "", "  http-request deny unless { srv_is_up(b/a) } || { srv_is_up(c/d) }", "  http-request set-header z %[srv_conn(c/c)]"))
	d.add("  default_backend b")
	for _, name := range []string{"b", "c", "d"} {
		d.add(m.some("defaults\n  mode tcp", "listen n1\n  bind 127.0.0.1:9998\n  server t 192.0.2.1:80 track b/a")...)
		d.add("backend " + name)
		if name == "d" && m.IntN(2) == 0 { // as the one above
			i := slices.Index(d.lines, "backend c")
			d.add(d.lines[i+1 : len(d.lines)-1]...)
			continue
		}
		d.add(m.some("  balance roundrobin", "  balance static-rr", "  balance hdr(x)", "  hash-type consistent", "  cookie SRV insert dynamic", "  dynamic-cookie-key x",
			"  cookie SRV insert", "  option httpchk", "  stick-table type string size 1k peers p", "  stick on path", "  retry-on all-retryable-errors", "  fullconn 10",
			"  default-server verify none", "  source 127.0.0.1", "  id 77", "  http-request deny unless { srv_is_up(c) }", "  cookie x insert", "  filter compression", "  # a comment", "", "  option redispatch\t", "  retries 3 # often")...)
		// All names once, so that most drafts are valid.
		for i, name := range []string{"a", "c", "d", "b"}[:2+m.IntN(3)] {
			d.add(fmt.Sprintf("  server %s 192.0.2.%d:80%s", name, i+1, pick(m, "", " check", " weight 10", " check weight 10", " "+m.option())))
		}
		d.add(m.some("  use-server a if TRUE", "  use-server \"c\" if { path /c }", "  default-server weight 3", "  stick match src table b")...)
	}
	return d
}

func (d *draft) add(lines ...string) { d.lines = append(d.lines, lines...) }

func (m *maker) entries() (entries []string) {
	for range 1 + m.IntN(3) {
		entries = append(entries, pick(m, "a b", "/a one two", "192.0.2.0/24 x", "a", "# a b", "", "  a   b  ", "a\tb", "^/(a b", "[ b", "a b\r", "\u00a0 b", "a\u00a0b", "\u00a0", strings.Repeat("a", 1100)+" b", "a \x01", "\"a b", "a\\ b"))
	}
	return entries
}

func (m *maker) name() string {
	return pick(m, "a", "b", "c", "d", "a", "b", "c", "d", "A", "a1", "a.b", "-", "_", "if", "\"a\"", "'b'", "\\x61", "\"\"", "''", "a\\ b", "a/b", "a:b", "\u00e4", "a\u00a0", "#a", "\"$NOBODY\"", strings.Repeat("x", 300))
}

func (m *maker) address() string {
	return fmt.Sprintf(pick(m, "192.0.2.%d:80", "192.0.2.%d:80", "192.0.2.%d:80", "192.0.2.%d:80", "[2001:db8::%d]:80", "192.0.2.%d:8080", "192.0.2.%d:080", "192.0.2.%d:0", "192.0.2.%d:65536", "192.0.2.%d",
		"192.0.2.%d:80-81", "[192.0.2.%d]:80", "192.0.2.00%d:80", "2001:db8::%d:80", "[fe80::%d%%lo]:80", "\"192.0.2.%d:80\"", "192.0.2.%d\\:80", "ipv4@192.0.2.%d:80", "unix@/x%d", "127.%d:80", "0.0.0.0:%d", "[::]:%d", "*:%d", ":%d", "255.255.255.255:%d", "[::ffff:192.0.2.%d]:80"), 1+m.IntN(5))
}

func (m *maker) option() string {
	return pick(m, "check", "check", "weight 10", "weight 20", "weight 0", "weight 256", "backup", "weight 257", "weight -1", "weight +5", "weight 1e1", "weight 007", "weight", "weight \"30\"", "weight 4\\ 0",
		"inter 1s", "maxconn 10", "ssl verify none", "ssl", "check port 81", "disabled", "cookie a", "cookie b", "id 1", "id 2", "track b/a", "track c/c", "observe layer4",
		"check-sni x", "check-sni '$NOBODY'", "check-sni \"$NOBODY\"", "check-sni x\\ty", "check-sni x\\\ty", "init-addr none", "source 127.0.0.1", "source 127.0.0.1:2000-2001", "source ::1", "send-proxy",
		"agent-check agent-port 1", "slowstart 1s", "nonsense", "guid x", "# check", "#check", "crt /etc/haproxy/ssl/a.pem", "ca-file /etc/haproxy/ssl/a.pem", "resolvers r", "redir /x", "addr 192.0.2.9")
}

// change returns a draft that differs a little.
func (m *maker) change(from *draft) *draft {
	d := &draft{lines: append([]string(nil), from.lines...), entries: from.entries, certificate: from.certificate}
	for range 1 + m.IntN(3) {
		switch m.IntN(14) {
		case 0, 2:
			d.entries = m.entries()
		case 1:
			d.certificate = pick(m, m.certificates...)
		case 3, 4, 5, 6:
			m.changeBackend(d)
		default:
			m.changeServer(d)
		}
	}
	return d
}

// changeServer changes a line of a server, or where it stands.
func (m *maker) changeServer(d *draft) {
	var at []int
	for i, line := range d.lines {
		if strings.HasPrefix(line, "  server ") {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return
	}
	i, j := pick(m, at...), pick(m, at...)
	words := strings.Split(strings.TrimSpace(d.lines[i]), " ")
	switch m.IntN(11) {
	case 0, 1:
		words[1] = m.name()
	case 2, 3:
		words[2] = m.address()
	case 4:
		if at := slices.Index(words, "weight"); at > 0 && at+1 < len(words) {
			words[at+1] = pick(m, "0", "1", "256", "257", "-1", "+5", "007", "1e1", "x", "\"30\"", "4\\ 0")
			break
		}
		words = append(words, m.option())
	case 5: // options of another
		words = append(words[:min(3, len(words))], strings.Split(strings.TrimSpace(d.lines[j]), " ")[min(3, len(words)):]...)
	case 6: // one more
		d.lines = append(d.lines[:i], append([]string{d.lines[i]}, d.lines[i:]...)...)
		words[1] = m.name()
	case 7: // one less
		d.lines = append(d.lines[:i], d.lines[i+1:]...)
		return
	case 8: // in another order
		d.lines[i], d.lines[j] = d.lines[j], d.lines[i]
		return
	case 9: // elsewhere
		k := min(len(d.lines)-1, max(0, i+m.IntN(5)-2))
		d.lines[i], d.lines[k] = d.lines[k], d.lines[i]
		return
	case 10: // another line that means the same, or does not
		k := m.IntN(len(d.lines))
		d.lines[k] = strings.TrimSuffix(d.lines[k], "\r") + pick(m, " ", "\t", "\u00a0", "\u2003", "\r", " # a comment", "#", " \\", "\\ ", "\u0085")
		return
	}
	d.lines[i] = "  " + strings.Join(words, " ")
}

// changeBackend lets a backend come, go, or have another name.
func (m *maker) changeBackend(d *draft) {
	var at []int // where sections begin
	for i, line := range d.lines {
		if line != "" && line[0] != ' ' {
			at = append(at, i)
		}
	}
	n := m.IntN(len(at))
	for !strings.HasPrefix(d.lines[at[n]], "backend ") && m.IntN(20) > 0 {
		n = m.IntN(len(at))
	}
	from, to := at[n], len(d.lines)
	if n+1 < len(at) {
		to = at[n+1]
	}
	name := "backend " + pick(m, "n1", "n2", "n3", "n4", "n5", "n6", "n7", "d", "f", "p", "n1 from d", m.name())
	switch m.IntN(6) {
	case 0, 1, 2: // one more
		more := append([]string{name}, d.lines[min(from+1, to):to]...)
		if m.IntN(2) == 0 {
			to = pick(m, append(at, len(d.lines))...)
		}
		d.lines = slices.Insert(d.lines, to, more...)
	case 3, 4:
		d.lines = slices.Delete(d.lines, from, to)
	case 5:
		d.lines[from] = name
	}
}
