package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
)

// cidrs is a flag that may be repeated. Each occurrence adds a range of addresses.
func cidrs(list *[]netip.Prefix) func(string) error {
	return func(s string) error {
		p, err := netip.ParsePrefix(s)
		if err != nil || p.Addr().Is4In6() {
			return fmt.Errorf("want a range such as 10.0.0.0/8 or fd00::/8")
		}
		*list = append(*list, p.Masked())
		return nil
	}
}

// listen notes where HAProxy and the controller listen, which special addresses endpoints may
// have, and which proxies to trust. With -demo its backends are among these addresses.
func (c *controller) listen() (err error) {
	if c.settings.Fleet, err = c.fleet(); err != nil {
		return err
	}
	c.addresses = endpoints.Addresses{Allow: slices.Clone(c.cfg.allowEndpoints), Listeners: endpoints.Listeners{}}
	for name, bind := range map[string]string{"-http-addr": c.cfg.httpAddr, "-https-addr": c.cfg.httpsAddr, "-stats-addr": c.cfg.statsAddr, "-metrics-addr": c.cfg.MetricsAddr, "-debug-addr": c.cfg.DebugAddr} {
		if strings.HasPrefix(bind, "unix:") {
			continue // no endpoint leads to a socket
		}
		if err := c.addresses.Listeners.Add(bind); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, p := range c.cfg.trustProxies {
		c.settings.TrustProxy = append(c.settings.TrustProxy, p.String())
	}
	for i := byte(demoFirst); c.cfg.demo && i <= demoLast; i++ {
		c.addresses.Allow = append(c.addresses.Allow, netip.PrefixFrom(netip.AddrFrom4([4]byte{127, 0, 0, i}), 32))
	}
	return nil
}

// fleet is a word for the instances of this controller and its replicas. Another
// controller before or behind them differs in cluster, Lease, address or namespace.
func (c *controller) fleet() (string, error) {
	hash := sha256.New()
	if c.cluster != nil {
		cluster := c.cluster.RESTConfig()
		if err := rest.LoadTLSFiles(cluster); err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%q ", cluster.CAData)
	}
	fmt.Fprintf(hash, "%q %q %q %q %q", c.cfg.lease, c.cfg.namespaces.String(), c.cfg.httpAddr, c.cfg.pods, c.cfg.podNamespace)
	return hex.EncodeToString(hash.Sum(nil)[:4]), nil
}

// endpointRules returns the address rules for one render, with the current instances.
func (c *controller) endpointRules() *endpoints.Addresses {
	return cmp.Or(c.instancesAt.Load(), &c.addresses)
}

// lookupTime bounds the DNS look-up of an instance.
const lookupTime = 2 * time.Second

// listenAt notes that HAProxy and its API listen at the addresses of these instances.
// For pods these are all addresses of the pod. If they changed, it triggers a render.
func (c *controller) listenAt(ctx context.Context, instances []dataplane.Endpoint, pods []*corev1.Pod) {
	all, served := endpoints.Listeners{}, endpoints.Listeners{}
	for port, addrs := range c.addresses.Listeners {
		all[port] = slices.Clone(addrs)
	}
	_ = errors.Join(served.Add(c.cfg.httpAddr), served.Add(c.cfg.httpsAddr), served.Add(c.cfg.statsAddr)) // already checked
	add := func(addr netip.Addr, api uint16) {
		if addr.IsLoopback() { // the loopback of this host stands for all its addresses
			addr = netip.Addr{}
		}
		all.AddAddr(addr, api)
		for port := range served {
			all.AddAddr(addr, port)
		}
	}
	for _, e := range instances {
		u, err := url.Parse(e.URL)
		if err != nil {
			continue // discover reports it
		}
		api, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil {
			api = map[string]uint64{"http": 80, "https": 443}[u.Scheme]
		}
		for _, addr := range c.lookup(ctx, u.Hostname()) {
			add(addr, uint16(api))
		}
	}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue // for example evicted: another pod may have its address by now
		}
		for _, ip := range pod.Status.PodIPs {
			if addr, err := netip.ParseAddr(ip.IP); err == nil {
				add(addr, uint16(c.cfg.podPort))
			}
		}
	}
	if before := c.instancesAt.Load(); before == nil || !maps.EqualFunc(before.Listeners, all, slices.Equal[[]netip.Addr]) {
		rules := c.addresses
		rules.Listeners = all
		c.instancesAt.Store(&rules)
		c.loop.Trigger("addresses of instances")
	}
}

// lookup returns the addresses of a host in a URL. It warns about an unknown name; the
// next look-up may find it.
func (c *controller) lookup(ctx context.Context, host string) []netip.Addr {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr.WithZone("")}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		c.log.Warn("endpoints with the address of an instance are not recognised", "instance", host, "error", err)
	}
	return addrs
}
