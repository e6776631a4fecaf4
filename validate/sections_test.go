package validate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/dataplane"
)

// pieces are sections, and what may stand between them, that refer to each
// other, share names, and are wrong in one way or another.
var pieces = []string{
	"# at the top\nfoo bar\n",
	"# c\n",
	"\n",
	"global\n  daemon\n",
	"defaults\n  mode http\n",
	"defaults d\n  mode http\n",
	"defaults d\n  mode tcp\n  errorfiles none\n",
	"defaults d from e\n",
	"frontend f from d\n  bind :80\n  use_backend a if { nbsrv(b) gt 1 }\n  default_backend b\n",
	"frontend f\n  bind :443 ssl crt-list /etc/haproxy/general/l.txt\n  http-request deny errorfiles h\n",
	"# of a\n# and more\nbackend a\n  server s 192.0.2.1:80\n  stick-table type ip size 1k\n",
	"backend a\n  server s 192.0.2.2:80\n  use-server t if TRUE\n",
	"backend a from d\n  server-template s 3 192.0.2.2:80\n",
	"backend b\n  stick on src table a\n  tcp-request content reject if { srv_is_up(a/s) }\n",
	"backend b\n  disabled\n  stick on src table none\n",
	"backend b\n  server s 192.0.2.2:80 resolvers r track a/s\n",
	"listen a\n  bind :81\n",
	"listen b from d\n  stick-table type ip size 1k\n",
	"resolvers r\n  nameserver n 192.0.2.1:53\n",
	"resolvers r # again\n",
	"peers p\n  table t type ip size 1k\n",
	"backend c\n  http-request track-sc0 src table p/t\n  http-request set-var(txn.a) path,map(/etc/haproxy/maps/m.map)\n",
	".if defined(X)\n",
	"backend \"open\n",
}

// somePieces makes a text of pieces.
func somePieces(r *rand.Rand) []string {
	var text []string
	for range r.IntN(12) {
		text = append(text, pieces[r.IntN(len(pieces))])
	}
	return text
}

// edit puts pieces into a text, takes some out, or moves and repeats them.
func edit(r *rand.Rand, text []string) []string {
	from := r.IntN(len(text) + 1)
	to := min(len(text), from+r.IntN(4))
	cut := append([]string{}, text[from:to]...)
	text = append(append([]string{}, text[:from]...), text[to:]...)
	at := r.IntN(len(text) + 1)
	switch r.IntN(4) {
	case 0:
		cut = somePieces(r)[:0:0]
	case 1:
		cut = append(cut, cut...)
	case 2:
		cut = []string{pieces[r.IntN(len(pieces))]}
	}
	return append(append(append([]string{}, text[:at]...), cut...), text[at:]...)
}

// TestSyntaxAgain compares what a Validator says that saw other texts before
// with what a new one says.
func TestSyntaxAgain(t *testing.T) {
	t.Parallel()
	files := []dataplane.File{
		{Kind: dataplane.CRTList, Name: "l.txt", Content: []byte("/etc/haproxy/ssl/none.pem a.test\n")},
		{Kind: dataplane.Map, Name: "m.map", Content: []byte("a b\n")},
	}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		v := &Validator{}
		text := somePieces(r)
		for range 10 {
			text = edit(r, text)
			main := strings.Join(text, "") + "# end\n"
			cfg, err := dataplane.NewConfig(main, files[:r.IntN(len(files)+1)]...)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := fmt.Sprint(v.Syntax(cfg)), fmt.Sprint(Syntax(cfg)); got != want {
				t.Fatalf("seed %d: %s\nsays\n%s\nwant\n%s", seed, main, got, want)
			}
		}
	}
}

// FuzzSyntaxAgain does so for any two texts.
func FuzzSyntaxAgain(f *testing.F) {
	f.Add("# c\n\nbackend a\n", "# c\nbackend a\n", "backend a\nbackend a\n")
	f.Add("a\nglobal\n# x\nlisten b\n", "global\n# x\n", "# x\nlisten b\na\n")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		v := &Validator{}
		for _, main := range []string{a + b + c + "\n", a + c + "\n", b + a + "\n", a + b + b + "\n", c + "\n"} {
			cfg, err := dataplane.NewConfig(main)
			if err != nil {
				continue
			}
			if got, want := fmt.Sprint(v.Syntax(cfg)), fmt.Sprint(Syntax(cfg)); got != want {
				t.Fatalf("%q says\n%s\nwant\n%s", main, got, want)
			}
		}
	})
}

// Phase 1 costs what changed: a kept Validator parses one section of 101, and
// forgets what the last configuration does not have.
func TestSyntaxParsesWhatChanged(t *testing.T) {
	t.Parallel()
	config := func(port int, list string) *dataplane.Config {
		var b strings.Builder
		b.WriteString("frontend f\n  bind 127.0.0.1:9999 ssl crt-list /etc/haproxy/general/l.txt\n")
		for i := range 100 {
			fmt.Fprintf(&b, "backend b%d\n  server a 192.0.2.1:%d\n", i, 1000+i+port/(1+(i-50)*(i-50)))
		}
		cfg, err := dataplane.NewConfig(b.String(), dataplane.File{Kind: dataplane.CRTList, Name: "l.txt", Content: []byte(list)})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	v := &Validator{}
	known := map[any]bool{}
	for i, step := range []struct {
		cfg    *dataplane.Config
		parsed int
	}{{config(0, "a.pem\n"), 101}, {config(0, "a.pem\n"), 0}, {config(1, "a.pem\n"), 1}, {config(1, "b.pem\n"), 0}} {
		if err := v.Syntax(step.cfg); err != nil {
			t.Fatal(err)
		}
		now := map[any]bool{}
		for _, m := range v.state.texts {
			now[m] = true
		}
		parsed := 0
		for m := range now {
			if !known[m] {
				parsed++
			}
		}
		if parsed != step.parsed || len(now) != 101 {
			t.Errorf("step %d parsed %d texts and remembers %d, want %d and 101", i, parsed, len(now), step.parsed)
		}
		known = now
	}
}
