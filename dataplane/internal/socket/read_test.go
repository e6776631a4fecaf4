package socket

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// Read shows what the process started with, and what another writer told it.
func TestRead(t *testing.T) {
	t.Parallel()
	text, files := site(t)
	p := start(t, text+"backend unresolved\n server s localhost.invalid:80 init-addr none\n server u unix@DIR/none\n", files...)
	known := append(files, file(config.Map, "none.map"), file(config.Certificate, "none.pem"))
	got := p.read(known...)
	fingerprints := make(map[string]string)
	for _, f := range files {
		if f.Kind == config.Certificate {
			fingerprints[f.Name] = config.Fingerprint(f.Content)
		}
	}
	require.Equal(t, &change.Process{
		Servers: map[change.ServerRef]change.ServerState{
			ref("b", "s"):             {ID: 1, Address: netip.MustParseAddrPort("192.0.2.1:80"), Weight: 3, State: change.Ready},
			ref("b", "spare"):         {ID: 2, Address: netip.MustParseAddrPort("192.0.2.2:80"), Weight: 1, State: change.Ready},
			ref("secured", "s"):       {ID: 1, Address: netip.MustParseAddrPort("192.0.2.1:443"), Weight: 1, State: change.Ready},
			ref("secured", "follows"): {ID: 2, Address: netip.MustParseAddrPort("192.0.2.2:80"), Weight: 1},
			ref("secured", "leads"):   {ID: 3, Address: netip.MustParseAddrPort("192.0.2.3:80"), Weight: 1, State: change.Maint},
			ref("unresolved", "s"):    {ID: 1, Weight: 1},
			ref("unresolved", "u"):    {ID: 2, Weight: 1, State: change.Ready},
		},
		Maps:         map[string]string{"m.map": "a 1\nb 2\n", "auth.map": "^a$ hunter2\n"},
		Certificates: fingerprints,
	}, got)

	a := made(t, config.Certificate, "a.pem", "other.test")
	require.Contains(t, p.askWith("set ssl cert DIR/ssl/a.pem", a.Content), "created")
	require.Contains(t, p.ask("commit ssl cert DIR/ssl/a.pem"), "Success")
	for _, command := range []string{"set map DIR/maps/m.map a 9", "add map DIR/maps/m.map c 3", "clear map DIR/maps/auth.map", "disable server b/spare",
		"set server b/s addr 192.0.2.77 port 81", "set weight b/s 8", "set server secured/s state drain", "enable server secured/leads"} {
		p.ask(command)
	}
	after := p.read(known...)
	require.Equal(t, change.ServerState{ID: 1, Address: netip.MustParseAddrPort("192.0.2.77:81"), Weight: 8, State: change.Ready}, after.Servers[ref("b", "s")])
	require.Equal(t, change.Maint, after.Servers[ref("b", "spare")].State)
	require.Equal(t, "drain", after.Servers[ref("secured", "s")].State)
	require.Equal(t, change.Ready, after.Servers[ref("secured", "leads")].State)
	require.Equal(t, change.Ready, after.Servers[ref("secured", "follows")].State)
	require.Equal(t, map[string]string{"m.map": "a 9\nb 2\nc 3\n", "auth.map": ""}, after.Maps)
	require.Equal(t, config.Fingerprint(a.Content), after.Certificates["a.pem"])
	require.Equal(t, fingerprints["b.pem"], after.Certificates["b.pem"])
}

const shownServers = `1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_port
3 b 1 s 192.0.2.1 2 0 3 3 7 80
3 b 2 t 2001:db8::1 0 5 256 1 7 8080
4 c 1 s - 0 32 1 1 7 0
`

func TestParseServers(t *testing.T) {
	t.Parallel()
	want := map[change.ServerRef]change.ServerState{
		ref("b", "s"): {ID: 1, Address: netip.MustParseAddrPort("192.0.2.1:80"), Weight: 3, State: change.Ready},
		ref("b", "t"): {ID: 2, Address: netip.MustParseAddrPort("[2001:db8::1]:8080"), Weight: 256, State: change.Maint},
		ref("c", "s"): {ID: 1, Weight: 1},
	}
	got, err := parseServers(shownServers)
	require.NoError(t, err)
	require.Equal(t, want, got)
	got, err = parseServers("# srv_name be_name srv_id srv_port srv_addr srv_uweight srv_admin_state\nt b 2 8080 2001:db8::1 256 1 more\n")
	require.NoError(t, err)
	require.Equal(t, want[ref("b", "t")], got[ref("b", "t")], "columns count by their names")
	for answer, says := range map[string]string{
		"": "HAProxy refused", "Can't find backend.\n": "no srv_name",
		shownServers + "Can't find backend.\n":                    "no ",
		strings.Replace(shownServers, "srv_uweight", "weight", 1): "no srv_uweight",
		strings.Replace(shownServers, " 256 ", " x ", 1):          "no srv_uweight",
	} {
		_, err := parseServers(answer)
		require.ErrorContains(t, err, says, answer)
	}
}

func FuzzParseServers(f *testing.F) {
	f.Add(shownServers)
	f.Add("# be_name srv_id srv_name srv_addr srv_admin_state srv_uweight srv_port\nb 1 s ::1 0 0 99999\n")
	f.Fuzz(func(t *testing.T, answer string) {
		servers, err := parseServers(answer)
		if err != nil && servers != nil {
			t.Errorf("an error with a result: %v", servers)
		}
		for ref := range servers {
			if ref.Backend == "" || ref.Server == "" {
				t.Errorf("a server without a name in %v", servers)
			}
		}
	})
}

func FuzzParseEntries(f *testing.F) {
	f.Add("0x55d0 a 1\n0x55d1 b two words\n0x55d2 c")
	f.Add("Unknown map identifier. Please use #<id> or <file>.")
	f.Fuzz(func(t *testing.T, answer string) {
		content, ok := parseEntries(answer)
		if !ok && content != "" {
			t.Errorf("no answer with a result: %q", content)
		}
		var lines int
		for range strings.Lines(answer) {
			lines++
		}
		if ok && strings.Count(content, "\n") != lines {
			t.Errorf("%d lines became %q", lines, content)
		}
	})
}
