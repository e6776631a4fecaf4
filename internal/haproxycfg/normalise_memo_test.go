package haproxycfg

import (
	"errors"
	"fmt"
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
