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
	"github.com/hapticsdk/haptic/examples/controller/ingress"
)

// cidrs is a flag that may be repeated: each adds a range of addresses.
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

// listen remembers where HAProxy and the controller listen, which special addresses
// are served, with -demo those of its backends, and which peers are trusted.
func (c *controller) listen() (err error) {
	if c.settings.Fleet, err = c.fleet(); err != nil {
		return err
	}
	c.addresses = ingress.Addresses{Allow: slices.Clone(c.cfg.allowEndpoints), Listeners: ingress.Listeners{}}
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
// controller before or behind has another cluster, Lease, address or namespace.
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

// endpointRules are the addresses for one render, with those of the instances of now.
func (c *controller) endpointRules() *ingress.Addresses {
	return cmp.Or(c.instancesAt.Load(), &c.addresses)
}

// lookupTime is how long the name of an instance may take to be looked up.
const lookupTime = 2 * time.Second

// listenAt remembers that HAProxy and its API listen at the addresses of these
// instances, of pods at all that they have, and renders again when these changed.
func (c *controller) listenAt(ctx context.Context, endpoints []dataplane.Endpoint, pods []*corev1.Pod) {
	all, served := ingress.Listeners{}, ingress.Listeners{}
	for port, addrs := range c.addresses.Listeners {
		all[port] = slices.Clone(addrs)
	}
	_ = errors.Join(served.Add(c.cfg.httpAddr), served.Add(c.cfg.httpsAddr), served.Add(c.cfg.statsAddr)) // checked at the start
	add := func(addr netip.Addr, api uint16) {
		if addr.IsLoopback() { // of this host, which may have others
			addr = netip.Addr{}
		}
		all.AddAddr(addr, api)
		for port := range served {
			all.AddAddr(addr, port)
		}
	}
	for _, e := range endpoints {
		u, err := url.Parse(e.URL)
		if err != nil {
			continue // it is no instance, which discover says
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
			continue // such as one that was evicted: its address may be another pod's by now
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

// lookup returns the addresses of a host in a URL. A name that is not known is
// spoken of; it may be the next time.
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
