package endpoints

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Addresses says which endpoints may be served. An endpoint may not lead into the host
// of HAProxy, to the metadata service of a cloud, or back to HAProxy: the author of an
// EndpointSlice chooses its addresses. The zero value allows none of these. A value in
// use must not change. It is safe for concurrent use.
type Addresses struct {
	Allow     []netip.Prefix // special addresses that are served all the same, but never those of Listeners
	Listeners Listeners      // of HAProxy and the controller
	Host      []netip.Prefix // addresses of this host; nil: those of its interfaces
}

// Listeners are the ports of HAProxy and of the controller, each with its addresses.
// The zero address stands for all addresses of this host.
type Listeners map[uint16][]netip.Addr

// Add adds the addresses of a bind line: "host:port", ranges of ports, several with
// commas between. It skips sockets that are files: no endpoint leads there. A host name
// stands for all addresses of this host.
func (l Listeners) Add(bind string) error {
	for part := range strings.SplitSeq(bind, ",") {
		kind, at, _ := strings.Cut(part, "@")
		switch kind {
		case "ipv4", "ipv6":
			part = at
		case "unix", "abns", "abnsz", "fd", "sockpair":
			continue
		}
		i := strings.LastIndex(part, ":")
		if part == "" || strings.Contains(part, "/") {
			continue
		}
		first, last, ok := strings.Cut(part[i+1:], "-")
		if !ok {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		if i < 0 || err != nil || err2 != nil {
			return fmt.Errorf("%q: want address:port", part)
		}
		addr, _ := netip.ParseAddr(strings.Trim(part[:i], "[]"))
		for port := from; port <= to; port++ {
			l.AddAddr(addr, uint16(port))
		}
	}
	return nil
}

// AddAddr adds one address. An unspecified one stands for all addresses of this host.
func (l Listeners) AddAddr(addr netip.Addr, port uint16) {
	addr = addr.Unmap()
	if addr.IsUnspecified() {
		addr = netip.Addr{}
	}
	if i, found := slices.BinarySearchFunc(l[port], addr, netip.Addr.Compare); !found {
		l[port] = slices.Insert(l[port], i, addr)
	}
}

// special lists addresses that no pod has.
var special = []struct {
	prefix netip.Prefix
	is     string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "the broadcast address"},
	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a local NAT64 address"},
	{netip.MustParsePrefix("168.63.129.16/32"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("192.0.0.192/32"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("100.100.100.200/32"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "the metadata service of a cloud"},
	{netip.MustParsePrefix("fd00:42::42/128"), "the metadata service of a cloud"},
}

// embedding lists ranges of IPv6 whose addresses lead to an IPv4 address. at is the
// byte where the IPv4 address begins.
var embedding = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // IPv4-translated
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
}

// embedded returns the IPv4 address that an address leads to, or the zero one.
func embedded(addr netip.Addr) netip.Addr {
	for _, e := range embedding {
		if e.prefix.Contains(addr) && addr != netip.IPv6Unspecified() && addr != netip.IPv6Loopback() {
			b := addr.As16()
			return netip.AddrFrom4([4]byte(b[e.at : e.at+4]))
		}
	}
	return netip.Addr{}
}

// Judge is Addresses in use. It reads the interfaces of the host once, and only
// if an endpoint has a port of ours.
type Judge struct {
	rules *Addresses
	host  func() []netip.Prefix
}

// NewJudge prepares rules for use; nil: the zero value.
func NewJudge(a *Addresses) Judge {
	if a == nil {
		a = &Addresses{}
	}
	if a.Host != nil {
		return Judge{a, func() []netip.Prefix { return a.Host }}
	}
	return Judge{a, sync.OnceValue(interfaces)}
}

// Problem says why an endpoint is refused; "" if it is not. addr is no IPv4-mapped address.
func (j Judge) Problem(addr netip.Addr, port uint16) string {
	leads, via := addr, ""
	if inner := embedded(addr); inner.IsValid() {
		leads, via = inner, fmt.Sprintf("leads to %s, which ", inner)
	}
	if at := j.rules.Listeners[port]; len(at) > 0 && (j.ours(addr, at) || j.ours(leads, at)) {
		return via + "is where HAProxy or the controller listens"
	}
	for _, s := range special {
		if s.prefix.Contains(leads) && !slices.ContainsFunc(j.rules.Allow, func(p netip.Prefix) bool { return p.Contains(addr) }) {
			allow := s.prefix
			if via != "" {
				allow = netip.PrefixFrom(addr, addr.BitLen())
			}
			return fmt.Sprintf("%sis %s: -allow-endpoint %s would allow it", via, s.is, allow)
		}
	}
	return ""
}

// ours reports whether an address is one of the listeners of its port.
func (j Judge) ours(addr netip.Addr, listen []netip.Addr) bool {
	if slices.Contains(listen, addr) || addr.IsUnspecified() { // an unspecified address leads to a loopback address
		return true
	}
	return slices.Contains(listen, netip.Addr{}) && (addr.IsLoopback() ||
		slices.ContainsFunc(j.host(), func(p netip.Prefix) bool { return p.Contains(addr) }))
}

// interfaces returns the addresses of this host. On a loopback interface a whole range
// is local. If they cannot be read, every address counts.
func interfaces() (host []netip.Prefix) {
	everything := []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
	all, err := net.Interfaces()
	if err != nil {
		return everything
	}
	for _, i := range all {
		addresses, err := i.Addrs()
		if err != nil {
			return everything
		}
		for _, a := range addresses {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue // not an IP address
			}
			if i.Flags&net.FlagLoopback == 0 {
				p = netip.PrefixFrom(p.Addr(), p.Addr().BitLen())
			}
			host = append(host, p)
		}
	}
	return host
}
