package host

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

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
		"bind :80\n    disabled":                "",
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
	require.Empty(t, listenersOf(parse(t, "defaults\n    disabled\nfrontend web\n    bind :80\n").Index()))
	require.Len(t, listenersOf(parse(t, "frontend web\n    bind :80\nbackend b\n    disabled\n").Index()), 1)
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
		text := fmt.Sprintf("global\nfrontend web\n    bind %s\n", address)
		err = h.tryToListen(config.Empty(), parse(t, text), procs)
		require.ErrorIs(t, err, config.ErrListen, listen)
		require.ErrorIs(t, err, config.ErrReload)
		require.True(t, config.Retryable(err, 0))
		require.ErrorContains(t, err, fmt.Sprintf("reload: haproxy.cfg:3: HAProxy cannot listen: on %s: another process has the address; ", address))
		require.NoError(t, h.tryToListen(parse(t, text), parse(t, text), procs), "the running one has it")
		require.NoError(t, taken.Close())
		require.NoError(t, h.tryToListen(config.Empty(), parse(t, text), procs))
	}
}

// An address that shall serve IPv4, too, is another one.
func TestTryToListenOnIPv4AsWell(t *testing.T) {
	t.Parallel()
	h := newHost(t, Options{Dir: t.TempDir()})
	taken, err := net.Listen("tcp4", "0.0.0.0:0")
	require.NoError(t, err)
	defer taken.Close()
	text := func(option string) *config.Config {
		return parse(t, fmt.Sprintf("frontend web\n    bind :::%d %s\n", taken.Addr().(*net.TCPAddr).Port, option))
	}
	procs := haproxyctl.Procs{MasterPID: os.Getppid()}
	require.NoError(t, h.tryToListen(text("v6only"), text("v6only"), procs))
	require.ErrorIs(t, h.tryToListen(text("v6only"), text("v4v6"), procs), config.ErrListen)
}

// A HAProxy without SO_REUSEPORT shares no address, and gives way in a reload all the
// same.
func TestTryToListenAfterNoreuseport(t *testing.T) {
	t.Parallel()
	h := newHost(t, Options{Dir: t.TempDir()})
	own, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer own.Close()
	text := fmt.Sprintf("frontend web\n    bind %s\n", own.Addr())
	hidden := haproxyctl.Procs{MasterPID: os.Getppid()} // as if the owner could not be seen
	require.NoError(t, h.tryToListen(parse(t, "global\n    noreuseport\n"+text), parse(t, text), hidden))
}

// Many ports of another process are found in one look at the processes.
func TestTryToListenOnManyPorts(t *testing.T) {
	t.Parallel()
	h := newHost(t, Options{Dir: t.TempDir()})
	var text strings.Builder
	text.WriteString("frontend web\n")
	for range 300 {
		taken, err := net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		defer taken.Close()
		fmt.Fprintf(&text, "    bind %s\n", taken.Addr())
	}
	begin := time.Now()
	err := h.tryToListen(config.Empty(), parse(t, text.String()), haproxyctl.Procs{MasterPID: os.Getppid()})
	require.ErrorContains(t, err, "and on 297 more")
	t.Logf("300 ports took %s", time.Since(begin))
	require.Less(t, time.Since(begin), 2*time.Second)
}

// A HAProxy that another program runs as root takes a line that ours could not.
func TestAttachedMayChroot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs a HAProxy as root")
	}
	s := attached(t)
	s.Host = newHost(t, Options{Dir: s.dir, NoStart: true})
	jail := t.TempDir()
	require.Equal(t, 1, s.sync(strings.Replace(s.text("second"), "global\n", "global\n    chroot "+jail+"\n", 1)).Reloads)
	require.Equal(t, "second", s.body())
}

func TestNeedsRoot(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"chroot /var/empty": true, "uid 5": false, "uid 6": true, "gid 7": false, "gid 8": true,
		"user root": false, "group root": false, "user nobody": true, "group no-such-group": false, "maxconn 5": false,
	} {
		require.Equal(t, want, needsRoot(config.NewLine(line), "5", "7"), line)
	}
}

// No thread ends by a try: the kernel would end the processes that it started with
// Pdeathsig.
func TestBindAsEndsNoThread(t *testing.T) {
	threads := func() (ids []string) {
		entries, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		for _, e := range entries {
			ids = append(ids, e.Name())
		}
		return ids
	}
	before := threads()
	for range 200 {
		require.Empty(t, bindAs(os.Geteuid(), nil))
		if os.Geteuid() == 0 {
			require.Empty(t, bindAs(65534, nil))
		}
	}
	require.Subset(t, threads(), before)
}
