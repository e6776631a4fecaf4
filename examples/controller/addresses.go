package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/reconcile/endpoints"
)

// listen notes where HAProxy and the controller listen, and which special addresses endpoints
// may have. With -demo its backends are among these addresses.
func (c *controller) listen() error {
	c.addresses = endpoints.Addresses{Allow: slices.Clone(c.cfg.allowEndpoints), Listeners: endpoints.Listeners{}}
	for name, bind := range map[string]string{"-http-addr": c.cfg.httpAddr, "-https-addr": c.cfg.httpsAddr, "-stats-addr": c.cfg.statsAddr, "-metrics-addr": c.cfg.MetricsAddr, "-debug-addr": c.cfg.DebugAddr} {
		if strings.HasPrefix(bind, "unix:") {
			continue // no endpoint leads to a socket
		}
		if err := c.addresses.Listeners.Add(bind); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for i := byte(demoFirst); c.cfg.demo && i <= demoLast; i++ {
		c.addresses.Allow = append(c.addresses.Allow, netip.PrefixFrom(netip.AddrFrom4([4]byte{127, 0, 0, i}), 32))
	}
	return nil
}

// endpointRules returns the address rules for one render, with the current instances.
func (c *controller) endpointRules() *endpoints.Addresses {
	return cmp.Or(c.instancesAt.Load(), &c.addresses)
}

// listenAt notes that HAProxy and its API listen at the addresses of these instances. If they
// changed, it triggers a render.
func (c *controller) listenAt(apis []netip.AddrPort) {
	all, served := endpoints.Listeners{}, endpoints.Listeners{}
	for port, addrs := range c.addresses.Listeners {
		all[port] = slices.Clone(addrs)
	}
	_ = errors.Join(served.Add(c.cfg.httpAddr), served.Add(c.cfg.httpsAddr), served.Add(c.cfg.statsAddr)) // already checked
	for _, api := range apis {
		addr := api.Addr()
		if addr.IsLoopback() { // the loopback of this host stands for all its addresses
			addr = netip.Addr{}
		}
		all.AddAddr(addr, api.Port())
		for port := range served {
			all.AddAddr(addr, port)
		}
	}
	if before := c.instancesAt.Load(); before == nil || !maps.EqualFunc(before.Listeners, all, slices.Equal[[]netip.Addr]) {
		rules := c.addresses
		rules.Listeners = all
		c.instancesAt.Store(&rules)
		c.loop.Trigger("addresses of instances")
	}
}
