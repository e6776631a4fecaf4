package host

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// Only addresses that mean the same to us as to HAProxy are tried.
func TestListenersOf(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"bind :80":                              "0.0.0.0:80",
		"bind *:80 ssl crt /x":                  "0.0.0.0:80",
		"bind 127.0.0.1:80,127.0.0.2:81 name a": "127.0.0.1:80 127.0.0.2:81",
		"bind ipv4@:80":                         "0.0.0.0:80",
		"bind ipv6@:80":                         "[::]:80",
		"bind :::80 v6only":                     "[::]:80",
		"bind [::1]:80":                         "[::1]:80",
		"bind 127.0.0.1:80-82":                  "127.0.0.1:80 127.0.0.1:81 127.0.0.1:82",
		`bind "127.0.0.1:80"`:                   "127.0.0.1:80",
		"stats socket 127.0.0.1:9999":           "127.0.0.1:9999",
		"stats socket /run/x.sock":              "",
		"stats enable":                          "",
		"bind /run/x.sock":                      "",
		"bind unix@run:80":                      "",
		"bind abns@x:80":                        "",
		"bind quic4@:443":                       "",
		"bind fd@3":                             "",
		"bind localhost:80":                     "",
		"bind fe80::1%eth0:80":                  "",
		"bind :80 interface eth0":               "",
		"bind :80 namespace blue":               "",
		"bind 192.0.2.1:80 transparent":         "",
		`bind "127.0.0.1:$PORT"`:                "",
		"bind 127.0.0.1":                        "",
		"bind 127.0.0.1:0":                      "",
		"bind 127.0.0.1:70000":                  "",
		"bind 127.0.0.1:x":                      "",
		"bind":                                  "",
		"bind-process 1":                        "",
		`bind "`:                                "",
	} {
		got := slices.SortedFunc(maps.Keys(listenersOf(parse(t, "global\nfrontend web\n    "+line+"\n").Index())), netip.AddrPort.Compare)
		text := ""
		for i, address := range got {
			if i > 0 {
				text += " "
			}
			text += address.String()
		}
		require.Equal(t, want, text, line)
	}
	require.Empty(t, listenersOf(parse(t, "global\n    noreuseport\nfrontend web\n    bind :80\n").Index()))
}

func FuzzParseBind(f *testing.F) {
	f.Add("[::1]:80-90")
	f.Fuzz(func(t *testing.T, s string) {
		if _, first, last, ok := parseBind(s); ok && (first < 1 || last > 65535) {
			t.Errorf("%q: ports %d to %d", s, first, last)
		}
	})
}

// Of IPv4 and IPv6, of one address and of all.
func TestTryToListen(t *testing.T) {
	t.Parallel()
	h := newHost(t, Options{Dir: t.TempDir()})
	procs := haproxyctl.Procs{MasterPID: os.Getpid()}
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0", ":0"} {
		taken, err := net.Listen("tcp", listen)
		require.NoError(t, err)
		address := netip.MustParseAddrPort(taken.Addr().String())
		require.Equal(t, os.Getpid(), ownerOf(address))
		text := fmt.Sprintf("global\nfrontend web\n    bind %s\n", address)
		procs.MasterPID = os.Getppid() // taken is not HAProxy's then
		err = h.tryToListen(config.Empty(), parse(t, text), procs)
		require.ErrorIs(t, err, config.ErrListen, listen)
		require.ErrorIs(t, err, config.ErrReload)
		require.True(t, config.Retryable(err, 0))
		require.ErrorContains(t, err, fmt.Sprintf("reload: haproxy.cfg:3: HAProxy cannot listen: on %s: process %d (host.test) has the address; ", address, os.Getpid()))
		require.NoError(t, h.tryToListen(parse(t, text), parse(t, text), procs), "the running one has it")
		procs.MasterPID = os.Getpid()
		require.NoError(t, h.tryToListen(config.Empty(), parse(t, text), procs), "HAProxy gives way to itself")
		require.NoError(t, taken.Close())
		procs.MasterPID = os.Getppid()
		require.NoError(t, h.tryToListen(config.Empty(), parse(t, text), procs))
	}
}
