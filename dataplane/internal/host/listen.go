package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/diff"
	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// mayReload makes the Sync do without a reload if none is possible now.
func (s *syncing) mayReload(procs haproxyctl.Procs) {
	s.held = s.whyHeld(procs)
	s.limits.NoReload = s.limits.NoReload || s.held != nil
}

// whyHeld says why no reload is possible now, or returns nil.
func (s *syncing) whyHeld(procs haproxyctl.Procs) error {
	if s.pid == 0 {
		return nil
	}
	if err := s.whyTooMany(procs); err != nil {
		return err
	}
	switch {
	case s.limits.NoReload, change.ImpactOf(s.steps) != change.Reload && !s.h.doubt:
		return nil
	}
	if err := s.h.mayNotBecome(s.running, s.desired); err != nil {
		return err
	}
	return s.h.tryToListen(s.running, s.desired, procs)
}

// withoutFiles makes the changes that need no reload if nothing can be stored, as on a full
// disk. A later Sync stores them. If HAProxy starts before that, it lacks them.
func (s *syncing) withoutFiles(ctx context.Context, why string, full error) error {
	h := s.h
	if why != "" || s.conn == nil {
		return full
	}
	to := diff.RuntimePart(s.running, s.to, s.steps, s.target)
	dos := change.RuntimeChanges(diff.Compare(s.running, to, s.target))
	if len(dos) == 0 {
		return full
	}
	if err := s.limits.Fenced(); err != nil {
		return fail("fence", err)
	}
	var err error
	h.running = to
	s.rename(dos)
	if s.out.Commands, err = s.conn.Apply(ctx, h.layout, h.leaving, dos); err != nil {
		h.running, h.doubt = nil, true
	}
	return errors.Join(full, err)
}

// noReusePort makes HAProxy share no addresses. Then its own processes occupy them.
const noReusePort = "noreuseport"

// listener is a TCP address on which a configuration makes HAProxy listen.
type listener struct {
	address netip.AddrPort
	only6   int // value of IPV6_V6ONLY; -1: the default of the kernel
	line    int
}

// listenersOf returns the addresses of a text. It skips addresses that only HAProxy
// understands: names of hosts, variables, sockets that are not TCP, interfaces, network
// namespaces, and everything in a text with conditional blocks. It also skips disabled
// sections, because HAProxy does not bind their addresses.
func listenersOf(x *config.Index) map[netip.AddrPort]listener {
	all := make(map[netip.AddrPort]listener)
	if x.Conditional() || x.Contains(noReusePort) {
		return all
	}
	for i := range x.List {
		number, disabled := x.Line(i)-1, false
		own := make(map[netip.AddrPort]listener)
		for raw := range strings.Lines(x.List[i].Text) {
			number++
			text := strings.Trim(raw, " \t\r\n")
			disabled = disabled || strings.HasPrefix(text, "disabled")
			if strings.HasPrefix(text, "bind") || strings.HasPrefix(text, "stats") {
				addListeners(own, config.NewLine(text), number)
			}
		}
		switch {
		case disabled && x.List[i].Kind == "defaults": // this is too rare for a rule about the sections that inherit it
			return make(map[netip.AddrPort]listener)
		case !disabled:
			maps.Copy(all, own)
		}
	}
	return all
}

// addListeners adds the addresses of a line "bind" or "stats socket".
func addListeners(all map[netip.AddrPort]listener, l config.Line, number int) {
	at := 1
	if l.Keyword() == "stats" && l.Word(1) == "socket" {
		at = 2
	}
	if l.Expands() || at == 1 && l.Keyword() != "bind" || len(l.Words) <= at {
		return
	}
	only6 := -1
	for _, option := range l.Words[at+1:] {
		switch option {
		case "interface", "namespace", "transparent":
			return
		case "v6only":
			only6 = 1
		case "v4v6":
			only6 = 0
		}
	}
	for part := range strings.SplitSeq(l.Words[at], ",") {
		ip, first, last, ok := parseBind(part)
		for port := first; ok && port <= last; port++ {
			address := netip.AddrPortFrom(ip, uint16(port)) //nolint:gosec // parseBind bounds it
			all[address] = listener{address, only6, number}
		}
	}
}

// parseBind reads an address of a line "bind", such as "*:80", "ipv6@:443",
// "127.0.0.1:8000-8010" and ":::80" (configuration manual, "bind" and 11.1).
func parseBind(s string) (ip netip.Addr, first, last int, ok bool) {
	ip = netip.IPv4Unspecified()
	if family, rest, prefixed := strings.Cut(s, "@"); prefixed {
		if family != "ipv4" && family != "ipv6" {
			return ip, 0, 0, false
		}
		s = rest
		if family == "ipv6" {
			ip = netip.IPv6Unspecified()
		}
	}
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return ip, 0, 0, false
	}
	host, ports := strings.Trim(s[:i], "[]"), s[i+1:]
	var err1, err2, err3 error
	if host != "" && host != "*" {
		ip, err1 = netip.ParseAddr(host)
	}
	low, high, isRange := strings.Cut(ports, "-")
	first, err2 = strconv.Atoi(low)
	last = first
	if isRange {
		last, err3 = strconv.Atoi(high)
	}
	return ip, first, last, errors.Join(err1, err2, err3) == nil && ip.Zone() == "" && first > 0 && last <= 65535
}

// tryToListen binds each address that the desired configuration adds to the running one, as
// HAProxy would in a reload, and releases it. In a reload, HAProxy itself pauses all of its
// listeners for 2 to 3 s before it gives up because of one address.
//
// It binds and never listens, so no connection arrives. Like HAProxy it shares addresses
// among sockets of one account (SO_REUSEPORT), so an address that HAProxy has is free. It
// leaves to HAProxy an account or a network namespace in which this process cannot act.
func (h *Host) tryToListen(running, desired *config.Config, procs haproxyctl.Procs) error {
	fresh := listenersOf(desired.Index())
	before := listenersOf(running.Index())
	maps.DeleteFunc(fresh, func(address netip.AddrPort, l listener) bool {
		was, ok := before[address]
		return ok && was.only6 == l.only6
	})
	if len(fresh) == 0 || running.Index().Contains(noReusePort) {
		return nil
	}
	uid, ok := accountOf(procs.MasterPID)
	if !ok {
		return nil
	}
	line, text := h.cannotListen(fresh, uid)
	if text == "" {
		return nil
	}
	text += "; HAProxy keeps its last configuration, and what takes no reload is applied"
	return &config.Error{
		Stage:  "reload",
		File:   config.MainFile,
		Line:   line,
		Err:    &worded{config.ErrListen.Error(), errors.Join(config.ErrListen, config.ErrReload)},
		Output: text,
	}
}

// cannotListen says which addresses a HAProxy of that user cannot bind. It also returns the
// first line with such an address.
func (h *Host) cannotListen(all map[netip.AddrPort]listener, uid int) (line int, text string) {
	sorted := slices.SortedFunc(maps.Values(all), func(a, b listener) int {
		return cmp.Or(cmp.Compare(a.line, b.line), a.address.Compare(b.address))
	})
	failed := bindAs(uid, sorted)
	var texts []string
	for _, l := range sorted {
		if why := h.whyNot(failed[l.address]); why != "" {
			texts = append(texts, fmt.Sprintf("on %s: %s", l.address, why))
			line = cmp.Or(line, l.line)
		}
	}
	const most = 3
	if more := len(texts) - most; more > 0 {
		texts = append(texts[:most], fmt.Sprintf("and on %d more", more))
	}
	return line, strings.Join(texts, ", ")
}

// listensInstead says which addresses of the stored configuration are taken. It explains why
// a HAProxy does not start.
func (h *Host) listensInstead() string {
	text, _ := os.ReadFile(h.layout.ConfigPath())
	_, who := h.cannotListen(listenersOf(config.Empty().With(string(text)).Index()), h.user())
	return who
}

// whyNot says why HAProxy cannot bind an address, or "" if it may.
func (h *Host) whyNot(err error) string {
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return "another process has the address"
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return "no interface of this host has the address"
	case errors.Is(err, unix.EACCES) && h.account != nil && !h.opts.NoStart: // HAProxy then has our rights
		return "account " + h.account.Name + " lacks CAP_NET_BIND_SERVICE for a port this low"
	}
	return ""
}

// accountOf returns the user for whom a process makes sockets. It reports false if this
// process cannot make sockets for that user in the same network namespace.
func accountOf(pid int) (uid int, ok bool) {
	ours, err1 := os.Readlink("/proc/self/ns/net")
	theirs, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	status, err3 := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, line, _ := strings.Cut(string(status), "\nUid:")
	_, err4 := fmt.Sscan(line, new(int), new(int), new(int), &uid) // real, effective, saved, file system
	if errors.Is(err2, os.ErrPermission) {                         // the process changed its account, so we may not see its namespace
		theirs, err2 = ours, nil
	}
	mine := os.Geteuid()
	return uid, errors.Join(err1, err2, err3, err4) == nil && ours == theirs && (mine == 0 || mine == uid)
}

// bindAs binds addresses as that user and releases them. It returns the errors by address,
// and none if this process may not act as the user.
func bindAs(uid int, all []listener) map[netip.AddrPort]error {
	failed := make(map[netip.AddrPort]error)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		const none = -1 // an invalid id: it changes nothing and returns the current id
		was := setFSUID(uid)
		if setFSUID(none) == uid {
			for _, l := range all {
				if err := l.bind(); err != nil {
					failed[l.address] = err
				}
			}
		}
		setFSUID(was)
		if setFSUID(none) == was {
			runtime.UnlockOSThread() // otherwise the thread ends, and the kernel ends its children that have Pdeathsig
		}
	}()
	<-done
	return failed
}

// bind binds a socket with HAProxy's options, and closes it.
func (l listener) bind() error {
	family, to := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(l.address.Port())})
	if ip := l.address.Addr(); ip.Is4() {
		to.(*unix.SockaddrInet4).Addr = ip.As4()
	} else {
		family, to = unix.AF_INET6, &unix.SockaddrInet6{Port: int(l.address.Port()), Addr: ip.As16()}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|closeOnExec, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
	if family == unix.AF_INET6 && l.only6 >= 0 {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, l.only6))
	}
	return errors.Join(err, unix.Bind(fd, to))
}
