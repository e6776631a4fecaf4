package validate

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
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
			holds(t, &v.sections, main)
		}
	}
}

// holds checks that a cache is that of a text, as if it had seen no other one.
func holds(t *testing.T, c *sectionCache, text string) {
	t.Helper()
	sections := haproxycfg.Split(text)
	if len(sections) != len(c.all) {
		t.Fatalf("%q: %d sections, want %d", text, len(c.all), len(sections))
	}
	fresh := &sectionCache{}
	fresh.take(text)
	for i, s := range sections {
		if p := c.all[i]; p.section.Text != s.Text || p.section.Kind != s.Kind || p.section.Name != s.Name || p.at != i {
			t.Fatalf("%q: section %d is %+v at %d, want %+v", text, i, p.section, p.at, s)
		}
		if s.Name != "" && c.names.find(s.Name, s.Kind).at != fresh.names.find(s.Name, s.Kind).at {
			t.Fatalf("%q: not the first section %s %s is found", text, s.Kind, s.Name)
		}
	}
	for text, p := range c.known { // of two sections with one text none may be left, once one is gone
		if p.section.Text != text || c.all[p.at] != p {
			t.Fatalf("%q: section %q is known, but not there", text, p.section.Text)
		}
	}
	if len(c.names.sections) != len(fresh.names.sections) ||
		c.names.twice != fresh.names.twice || !reflect.DeepEqual(c.names.tables, fresh.names.tables) {
		t.Fatalf("%q: remembers %+v, want %+v", text, c.names, fresh.names)
	}
}

// FuzzSectionsAgain does so for any two texts.
func FuzzSectionsAgain(f *testing.F) {
	f.Add("# c\n\nbackend a\n", "# c\nbackend a\n", "backend a\nbackend a\n")
	f.Add("a\nglobal\n# x\nlisten b\n", "global\n# x\n", "# x\nlisten b\na\n")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var cache sectionCache
		for _, text := range []string{a + b + c + "\n", a + c + "\n", b + a + "\n", a + b + b + "\n", c + "\n"} {
			cache.take(text)
			holds(t, &cache, text)
		}
	})
}
