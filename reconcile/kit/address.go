package kit

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	wantBind    = "address:port with a port from 1 to 65535, such as :8080 or 127.0.0.1:8080"
	wantMetrics = "host:port with a port from 0 to 65535, such as :9090"
	wantDebug   = "host:port with a port from 0 to 65535, such as 127.0.0.1:6060, or unix:/path"
)

// checkListeners checks the addresses of the program itself.
func (f *Flags) checkListeners() {
	before := len(f.wrong)
	f.Check(metricsAddr, f.MetricsAddr == "" || isListen(f.MetricsAddr), wantMetrics)
	f.Check(debugAddr, f.DebugAddr == "" || isListen(f.DebugAddr) || isSocket(f.DebugAddr), wantDebug)
	if len(f.wrong) > before {
		return
	}
	f.checkApart(debugAddr, metricsAddr)
	if f.DebugToken == "" && isOpen(f.DebugAddr) {
		f.Wrong(fmt.Errorf("-%s %q is not loopback: give -debug-token-file; Prometheus and probes need -%s only", debugAddr, f.DebugAddr, metricsAddr))
	}
}

// CheckBinds checks flags whose values are addresses that HAProxy binds to. It reports wrong
// addresses, and addresses that two flags share. If HAProxy runs on this host, the addresses
// of the program itself count, too.
func (f *Flags) CheckBinds(thisHost bool, names ...string) {
	if thisHost {
		names = append(names, metricsAddr, debugAddr)
	}
	for i, name := range names {
		if name != metricsAddr && name != debugAddr {
			f.Check(name, isBind(f.value(name)), wantBind)
		}
		for _, other := range names[:i] {
			if name != debugAddr || other != metricsAddr { // Err compares these two
				f.checkApart(name, other)
			}
		}
	}
}

func (f *Flags) value(name string) string { return f.Lookup(name).Value.String() }

func (f *Flags) checkApart(name, other string) {
	if x, y := f.value(name), f.value(other); overlap(x, y) {
		f.Wrong(fmt.Errorf("-%s %q: want another address than -%s %q, which has the same", name, x, other, y))
	}
}

// isBind reports whether HAProxy can listen on an address: also on a socket, a range of ports,
// or a comma-separated list.
func isBind(bind string) bool { _, ok := parseBind(bind); return ok }

// ports is a range of ports of one address.
type ports struct {
	addr        netip.Addr // zero: all addresses of this host
	first, last int
}

// parseBind returns the addresses and ports of a bind value. It skips socket files.
func parseBind(bind string) (all []ports, ok bool) {
	for part := range strings.SplitSeq(bind, ",") {
		kind, at, found := strings.Cut(part, "@")
		switch {
		case found && (kind == "ipv4" || kind == "ipv6"):
			part = at
		case found || strings.HasPrefix(part, "/"):
			continue
		}
		i := strings.LastIndex(part, ":")
		if i < 0 || !IsHost(strings.Trim(part[:i], "[]")) {
			return nil, false
		}
		first, last, isRange := strings.Cut(part[i+1:], "-")
		if !isRange {
			last = first
		}
		if !IsPort(first, 1) || !IsPort(last, 1) {
			return nil, false
		}
		p := ports{}
		if addr, err := netip.ParseAddr(strings.Trim(part[:i], "[]")); err == nil && !addr.IsUnspecified() {
			p.addr = addr.Unmap()
		}
		p.first, _ = strconv.Atoi(first)
		p.last, _ = strconv.Atoi(last)
		all = append(all, p)
	}
	return all, true
}

// overlap reports whether two values share an address. A host name stands for all addresses.
// Port 0 overlaps with nothing: it means any free port.
func overlap(x, y string) bool {
	xs, _ := parseBind(x)
	ys, _ := parseBind(y)
	for _, a := range xs {
		for _, b := range ys {
			if (a.addr == b.addr || !a.addr.IsValid() || !b.addr.IsValid()) && a.first <= b.last && b.first <= a.last {
				return true
			}
		}
	}
	return false
}

// isListen reports whether the program can listen on an address.
func isListen(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	return err == nil && IsHost(host) && IsPort(port, 0)
}

// isSocket reports whether an address names a socket file, as unix:/path.
func isSocket(addr string) bool {
	path, ok := strings.CutPrefix(addr, "unix:")
	return ok && filepath.IsAbs(path)
}

// isOpen reports whether other machines reach an address. It takes a host name for closed: the
// debug server checks host names when it starts.
func isOpen(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip, notIP := netip.ParseAddr(host)
	return err == nil && (host == "" || host == "*" || notIP == nil && !ip.IsLoopback())
}

// IsPort reports whether a text is a port from least to 65535.
func IsPort(s string, least int) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= least && n <= 65535
}

// IsHost reports whether a text is an address or a host name that resolvers accept. Such a
// name may have a last dot, upper case and "_", as names of Docker have. "" and "*" mean all
// addresses.
func IsHost(s string) bool {
	_, err := netip.ParseAddr(s)
	name := strings.ReplaceAll(strings.ToLower(strings.TrimSuffix(s, ".")), "_", "-")
	return s == "" || s == "*" || err == nil || len(validation.IsDNS1123Subdomain(name)) == 0 && strings.Trim(name, "0123456789.") != ""
}
