package kit

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
)

// lookupTime bounds the DNS look-up of an instance.
const lookupTime = 2 * time.Second

// listeners returns the addresses and ports of Dataplane APIs. For pods these are all
// addresses of the pod, even if it is not ready.
func (t *Targets) listeners(ctx context.Context, instances []dataplane.Endpoint, pods []*corev1.Pod) (all []netip.AddrPort) {
	for _, e := range instances {
		u, err := url.Parse(e.URL)
		if err != nil {
			continue // discover reports it
		}
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil {
			port = map[string]uint64{"http": 80, "https": 443}[u.Scheme]
		}
		for _, addr := range t.lookup(ctx, u.Hostname()) {
			all = append(all, netip.AddrPortFrom(addr, uint16(port)))
		}
	}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue // for example evicted: another pod may have its address by now
		}
		for _, ip := range pod.Status.PodIPs {
			if addr, err := netip.ParseAddr(ip.IP); err == nil {
				all = append(all, netip.AddrPortFrom(addr, uint16(t.flags.PodPort)))
			}
		}
	}
	return all
}

// lookup returns the addresses of a host in a URL. It warns about an unknown name; the next
// look-up may find it.
func (t *Targets) lookup(ctx context.Context, host string) []netip.Addr {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr.WithZone("")}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		t.opts.Logger.Warn("endpoints with the address of an instance are not recognised", "instance", host, "error", err)
	}
	return addrs
}
