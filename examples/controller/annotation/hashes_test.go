package annotation

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
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

// TestHashesTakeWhatTheTableSays: a real HAProxy checks the heaviest hash of each kind that is
// taken, with the longest login, in about the time that the table has.
func TestHashesTakeWhatTheTableSays(t *testing.T) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	sum := func(n int) string { return strings.Repeat("a", n-1) + "." }
	heaviest := map[string]string{
		"$1$": "$1$saltsalt$" + sum(22), "$5$": "$5$saltsaltsaltsalt$" + sum(43), "$6$": "$6$saltsaltsaltsalt$" + sum(86), "$2a$ $2b$ $2y$": "$2y$06$abcdefghijklmnopqrstuu" + sum(31),
		"$y$j75$": "$y$j75$n.hiunI6hnZT7x/ZUOTy5.$" + sum(43), "$y$j85$": "$y$j85$j99mHf8bgyAasj.ePc8.00$" + sum(43), "$y$j7T$": "$y$j7T$WlYR5XIMGeOReZETv.vZb/$" + sum(43),
	}
	dir, err := os.MkdirTemp("", "users") // its path is short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	lists, rules := "", ""
	for i, k := range hashKinds {
		if k.taken() == "no" {
			continue
		}
		require.NoError(t, checkUser("u", heaviest[k.prefixes]), k.name)
		lists += fmt.Sprintf("userlist l%d\n    user u password %s\n", i, heaviest[k.prefixes])
		rules += fmt.Sprintf("    http-request return status 204 if { path /%d } { http_auth(l%[1]d) }\n", i)
	}
	cfg := lists + fmt.Sprintf("defaults\n    mode http\n    timeout client 60s\nfrontend f\n    bind unix@%s/f\n%s    http-request return status 200\n", dir, rules)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "haproxy.cfg"), []byte(cfg), 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "haproxy", "-db", "-f", filepath.Join(dir, "haproxy.cfg"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "f"))
	}}}
	t.Cleanup(func() { client.CloseIdleConnections(); cancel(); <-ended })
	for serves := false; !serves; {
		select {
		case <-ended:
			t.Fatal(out.String())
		case <-time.After(10 * time.Millisecond):
			conn, err := net.Dial("unix", filepath.Join(dir, "f"))
			if serves = err == nil; serves {
				conn.Close()
			}
		}
	}
	login := "Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+strings.Repeat("p", 126)))
	require.LessOrEqual(t, len(login), MaxLogin)
	for i, k := range hashKinds {
		if k.taken() == "no" {
			continue
		}
		best := time.Minute
		for range 20 { // others use the machine, too
			req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://haproxy/%d", i), nil)
			require.NoError(t, err)
			req.Header.Set("Authorization", login)
			start := time.Now()
			resp, err := client.Do(req)
			require.NoError(t, err)
			resp.Body.Close()
			best = min(best, time.Since(start))
		}
		_, rounds, cost := kindOf(heaviest[k.prefixes])
		says := time.Duration(k.login(rounds, cost)) * time.Microsecond
		t.Logf("%s: %v, and the table says %v", k.name, best, says)
		require.Less(t, best, 4*says, "%s: other machines are slower, but not by that much", k.name)
	}
}
