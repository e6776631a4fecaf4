package haproxycfg

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var memoTexts = []string{
	"backend b\n  server s 127.0.0.1:1\nbackend a\n  mode tcp\n",
	"# top\n\nglobal\n  maxconn 5\ndefaults\n  mode http\nfrontend f\n  bind :1\n\n# of b\n# two\nbackend b\n  # inside\n  server s 127.0.0.1:1 # end\n\nlisten l\n  bind :2\nbackend a\n  mode tcp\n",
	"defaults\n  mode http\nbackend b\ndefaults\n  mode tcp\nbackend a\ndefaults x\nbackend c from x\nbackend d\n",
	"backend b\n  mode tcp\n# loose\n\nbackend a\n  mode http\n# at the end\n",
	"defaults from x\n  mode http\nbackend b\n",
	"defaults a\n  mode http\ndefaults b from a\n  maxconn 5\nbackend x\n  mode tcp\nprogram p\n  command x\nfcgi-app q\n  index i\n",
	"global\n  setenv\nbackend b\n",
	"backend b\n  server s 127.0.0.1:1\n  http-request set-bandwidth-limit if\n",
	"",
	"\n\n",
	"# only this\n",
}

func checkMemo(t *testing.T, n *Normaliser, text string) {
	t.Helper()
	want, wantErr := Normalise(text)
	got, err := n.Normalise(text)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%q\ngot  %v\nwant %v", text, err, wantErr)
	}
	if got != want {
		t.Fatalf("%q\ngot  %q\nwant %q", text, got, want)
	}
}

func TestNormaliserIsNormalise(t *testing.T) {
	for _, text := range memoTexts {
		n := &Normaliser{}
		checkMemo(t, n, text)
		checkMemo(t, n, strings.ReplaceAll(text, "127.0.0.1:1", "127.0.0.1:2"))
		checkMemo(t, n, strings.Replace(text, "backend b", "backend z", 1))
		checkMemo(t, n, text+"backend more\n  mode http\n")
		checkMemo(t, n, text)
	}
}

func TestNormaliserNamesTheLine(t *testing.T) {
	n := &Normaliser{}
	_, err := n.Normalise("defaults\n  mode http\nbackend a\n  mode http\nbackend b\n  http-request set-bandwidth-limit if\n")
	var r *Refusal
	if !errors.As(err, &r) || r.Line != 6 {
		t.Errorf("got %v", err)
	}
}

// Sections come, go, change and move at random: by section and as a whole, the normal
// form is the same.
func TestNormaliserFollowsChanges(t *testing.T) {
	pool := []string{
		"# top\n\n", "global\n  maxconn 5\n", "defaults\n  mode http\n\n", "defaults y\n  mode tcp\n", "frontend f\n  bind :1\n",
		"frontend b1\n  bind :2\n", "listen l\n  bind :3\n\n", "cache c\n", "crt-store\n", "userlist u\n", "# of it\nbackend k\n  mode tcp\n\n",
		"backend z\n  # inside\n  mode http\n# loose\n\n", "backend from\n", "backend w from x\n", "backend b1\n  server t 127.0.0.1:1\n",
		"backend v\n  server t 127.0.0.1:1\n  default-server check\n", "fcgi-app a\n  index i\n", "backend u\n  errorfile 503 /x\n  .if 1\n",
	}
	for n := range 6 {
		pool = append(pool, fmt.Sprintf("backend b%d\n  server s 127.0.0.1:%d\n", n, n), fmt.Sprintf("backend b%d\n  mode tcp\n\n", n))
	}
	byParts := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same ones each time
		n := &Normaliser{}
		sections := []string{"defaults x\n  mode http\n"}
		for range 60 {
			switch at := 1 + r.IntN(len(sections)); {
			case at == len(sections) || r.IntN(3) == 0:
				sections = slices.Insert(slices.Clone(sections), at, pool[r.IntN(len(pool))])
			case r.IntN(2) == 0:
				sections = slices.Delete(slices.Clone(sections), at, at+1)
			default:
				sections = slices.Clone(sections)
				sections[at] = pool[r.IntN(len(pool))]
			}
			text := strings.Join(sections, "")
			cut := sections
			if raws := Split(text); len(raws) != len(sections) || r.IntN(10) == 0 { // a comment belongs to the section below it
				cut = Texts(text)
			}
			want, wantErr := Normalise(text)
			parts, err := n.Sections(cut)
			if got := strings.Join(parts, ""); got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("seed %d: %q\ngot  %q, %v\nwant %q, %v", seed, text, got, err, want, wantErr)
			}
			if n.last != nil {
				byParts++
			}
			for _, part := range parts {
				if raws := Split(part); len(raws) != 1 {
					t.Fatalf("seed %d: %q has %d sections", seed, part, len(raws))
				}
			}
			if err != nil && r.IntN(2) == 0 { // or else most are refused
				sections = sections[:1]
			}
		}
	}
	if byParts < 300 {
		t.Errorf("only %d by sections", byParts)
	}
}

func FuzzNormaliser(f *testing.F) {
	for _, text := range memoTexts {
		f.Add(text, "backend b\n  mode http\n")
	}
	f.Fuzz(func(t *testing.T, text, more string) {
		if strings.IndexFunc(text+more, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }) >= 0 {
			return // NewConfig refuses control characters
		}
		if text != "" && !strings.HasSuffix(text, "\n") || more != "" && !strings.HasSuffix(more, "\n") {
			return // and a last line without an end
		}
		if strings.Contains(text+more, "from") {
			return // the order of the parser is random where the name after it is not known
		}
		n := &Normaliser{}
		checkMemo(t, n, text)
		checkMemo(t, n, text+more)
		checkMemo(t, n, more)
	})
}
