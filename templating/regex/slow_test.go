package regex

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var slowFor = flag.Duration("slow", 0, "how long TestNoneIsSlow looks for an expression that takes HAProxy long; 0: one round")

// most is how long HAProxy may take for one expression on a text that it may be tried on.
const most = 50 * time.Millisecond

// tried is a running HAProxy that tries expressions on the header "text" of a request.
type tried struct {
	tb     testing.TB
	client *http.Client
}

// tryAll starts a HAProxy with expressions. It answers 204 where one matches.
func tryAll(tb testing.TB, expressions []string) *tried {
	binary := "haproxy"
	if other := os.Getenv("HAPROXY_BIN"); other != "" {
		binary = other
	}
	if _, err := exec.LookPath(binary); err != nil {
		if os.Getenv("CI") != "" {
			tb.Fatal(err)
		}
		tb.Skip(err)
	}
	dir, err := os.MkdirTemp("", "regex") // its path is short enough for a socket
	require.NoError(tb, err)
	tb.Cleanup(func() { os.RemoveAll(dir) })
	var cfg bytes.Buffer
	fmt.Fprintf(&cfg, "global\n    tune.bufsize 65536\ndefaults\n    mode http\n    timeout client 60s\nfrontend f\n    bind unix@%s/f\n", dir)
	for i, s := range expressions {
		fmt.Fprintf(&cfg, "    http-request return status 204 if { path /%d } { req.fhdr(text) -m reg -- '%s' }\n", i, Bounded(s))
	}
	fmt.Fprint(&cfg, "    http-request return status 200\n")
	file := filepath.Join(dir, "haproxy.cfg")
	require.NoError(tb, os.WriteFile(file, cfg.Bytes(), 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, binary, "-db", "-f", file)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(tb, cmd.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t := &tried{tb, &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "f"))
	}}}}
	tb.Cleanup(func() { t.client.CloseIdleConnections(); cancel(); <-ended })
	for {
		conn, err := net.Dial("unix", filepath.Join(dir, "f"))
		if err == nil {
			conn.Close()
			return t
		}
		select {
		case <-ended:
			tb.Fatalf("HAProxy does not start:\n%s", out.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// took is how long HAProxy takes for an expression at best: others use the machine, too.
func (t *tried) took(i int, text string) (best time.Duration, matches bool) {
	for n := range 10 {
		req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://haproxy/%d", i), nil)
		require.NoError(t.tb, err)
		req.Header.Set("Text", text)
		start := time.Now()
		resp, err := t.client.Do(req)
		require.NoError(t.tb, err, "HAProxy is gone")
		resp.Body.Close()
		if took := time.Since(start); n == 0 || took < best {
			best, matches = took, resp.StatusCode == http.StatusNoContent
		}
		if best < most/2 {
			break
		}
	}
	return best, matches
}

// randomPiece is a piece of an expression, and a text that it may match.
func randomPiece(r *rand.Rand, deep int) (piece, text string) {
	letters := [...][2]string{{"a", "a"}, {"b", "b"}, {"/", "/"}, {".", "a"}, {"[a-z]", "a"}, {"[^/]", "b"}, {`\w`, "a"}, {`\d`, "1"}, {"[ab]", "b"}, {"[a/]", "/"}, {"ab", "ab"}, {`\.`, "."}}
	one := letters[r.IntN(len(letters))]
	piece, text = one[0], one[1]
	if deep > 0 && r.IntN(4) == 0 {
		piece, text = randomExpression(r, deep-1, 1+r.IntN(3))
		if r.IntN(2) == 0 {
			other, _ := randomExpression(r, deep-1, 1+r.IntN(2))
			piece += "|" + other
		}
		piece = "(" + piece + ")"
	}
	number := func() int { return [...]int{1, 2, 3, 9, 30, 100, 300, 999}[r.IntN(8)] }
	switch r.IntN(9) {
	case 0:
		piece += "*"
	case 1:
		piece += "+"
	case 2:
		piece += "?"
	case 3:
		n := number()
		piece, text = piece+fmt.Sprintf("{%d}", n), strings.Repeat(text, n)
	case 4:
		n := number()
		piece += fmt.Sprintf("{%d,%d}", n/2, n)
	}
	return piece, text
}

func randomExpression(r *rand.Rand, deep, pieces int) (s, text string) {
	for range pieces {
		piece, part := randomPiece(r, deep)
		s, text = s+piece, text+part
	}
	return s, text
}

// textsFor are texts on which an expression may have to go back often.
func textsFor(r *rand.Rand, text string, length int) (all []string) {
	fill := func(part, end string) {
		all = append(all, strings.Repeat(part, length/len(part)+1)[:max(length-len(end), 0)]+end)
	}
	end := string("x!"[r.IntN(2)])
	for _, part := range []string{"a", "b", "/", "ab", "a/", "ba/", text[:min(len(text), 40)]} {
		fill(part, "")
		fill(part, end)
	}
	return all
}

// TestNoneIsSlow looks for an expression that is taken, and takes HAProxy long. -slow 1m goes on
// for that long.
func TestNoneIsSlow(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	until := time.Now().Add(*slowFor)
	slowest, of, number := time.Duration(0), "", 0
	for round := 0; round == 0 || time.Now().Before(until); round++ {
		var expressions, texts []string
		var longest []int
		for len(expressions) < 100 {
			s, text := randomExpression(r, 2, 2+r.IntN(5))
			if r.IntN(2) == 0 {
				s = "^" + s
			}
			if is, err := Check(s); err == nil && strings.ContainsAny(s, "*+{?|") && (is.Steps > costly || r.IntN(20) == 0) {
				expressions, texts, longest = append(expressions, s), append(texts, text), append(longest, is.Longest)
			}
		}
		h := tryAll(t, expressions)
		for i, s := range expressions {
			for _, text := range textsFor(r, texts[i], longest[i]) {
				took, _ := h.took(i, text)
				require.LessOrEqual(t, took, most, "seed %d: %q takes HAProxy long on %d bytes: %.60q", seed, s, len(text), text)
				if number++; took > slowest {
					slowest, of = took, s
				}
			}
		}
	}
	t.Logf("%d texts; the slowest took %v: %q", number, slowest, of)
}

// TestNet: an expression that no check has seen takes no longer, and then matches nothing.
func TestNet(t *testing.T) {
	all := []string{`^[a-z]{0,300}[a-z]{0,400}[a-z]{300}[0-9]`, `^(a+)+!`, `^/(.*)/(.*)/(.*)x`, `^a+!$`}
	h := tryAll(t, all)
	for i, text := range []string{strings.Repeat("a", 3000), strings.Repeat("a", 3000), "/x" + strings.Repeat("/", 3000), strings.Repeat("a", Subject-1) + "!"} {
		took, matches := h.took(i, text)
		require.Less(t, took, 10*most, all[i])
		require.Equal(t, i == 3, matches, all[i])
	}
}
