package host

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"slices"
	"strings"
	"syscall"
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
		require.Equal(t, os.Getpid(), ownerOf(allTaken(), address, func(int) bool { return false }))
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

// listenAs has another process listen on the address, and returns its number.
func listenAs(t *testing.T, address string) int {
	t.Helper()
	l, err := net.Listen("tcp4", address)
	require.NoError(t, err)
	f, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	other := exec.Command("sleep", "600")
	other.ExtraFiles = []*os.File{f}
	other.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	require.NoError(t, other.Start())
	t.Cleanup(func() {
		require.NoError(t, other.Process.Kill())
		require.Error(t, other.Wait())
		runtime.UnlockOSThread()
	})
	require.NoError(t, errors.Join(l.Close(), f.Close()))
	return other.Process.Pid
}

// HAProxy has one address of a port and another process has another one: HAProxy does
// not get all of them.
func TestTryToListenBesideAnother(t *testing.T) {
	t.Parallel()
	own, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer own.Close()
	port := own.Addr().(*net.TCPAddr).Port
	other := listenAs(t, fmt.Sprintf("127.0.0.2:%d", port))
	h := newHost(t, Options{Dir: t.TempDir(), User: currentUser(t)})
	for _, c := range []struct{ haproxy, other int }{{os.Getpid(), other}, {other, os.Getpid()}} {
		err = h.tryToListen(config.Empty(), parse(t, fmt.Sprintf("frontend web\n    bind :%d\n", port)), haproxyctl.Procs{MasterPID: c.haproxy})
		require.ErrorIs(t, err, config.ErrListen)
		require.ErrorContains(t, err, fmt.Sprintf("process %d ", c.other))
	}
}

func currentUser(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	require.NoError(t, err)
	return u.Username
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

// The name of another process is shown as the text of another program.
func TestTryToListenNamesAProcessSafely(t *testing.T) {
	t.Parallel()
	own, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer own.Close()
	address := netip.MustParseAddrPort(own.Addr().String())
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	at := t.TempDir() + "/a\x1b[2Jb"
	require.NoError(t, os.Symlink(sleep, at)) // the kernel names a process by it
	other := &exec.Cmd{Path: at, Args: []string{"sleep", "600"}}
	require.NoError(t, other.Start())
	h := newHost(t, Options{Dir: t.TempDir()})
	sockets := func() []taken { return []taken{{"0100007F", fmt.Sprintf("%04X", address.Port()), other.Process.Pid}} }
	why := h.whyNot(listener{address: address}, syscall.EADDRINUSE, haproxyctl.Procs{}, sockets)
	require.NoError(t, other.Process.Kill())
	require.Error(t, other.Wait())
	require.Contains(t, why, fmt.Sprintf("process %d (a\\u001b[2Jb) has the address", other.Process.Pid))
}
