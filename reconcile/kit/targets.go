package kit

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
)

// TargetOptions of [TargetFlags.Open].
type TargetOptions struct {
	Bus    *eventbus.Bus // if nil, no events are published
	Stdout io.Writer     // gets the access log of the HAProxy on this host; see [dataplane.LocalOptions]
	Logger *slog.Logger  // required
}

// Targets are the HAProxy on this host, or the instances behind Dataplane APIs.
type Targets struct {
	Local     *dataplane.Local   // nil: behind Dataplane APIs
	Discovery *discover.Follower // nil: on this host, or before Follow
	Layout    dataplane.Layout   // of the files of each instance
	Socket    string             // the runtime socket of each instance

	flags   TargetFlags
	opts    TargetOptions
	scratch string // folder to remove at the end; "": none
}

// Open prepares the HAProxy on this host, or notes where the others are. Call Close at the end.
func (t *TargetFlags) Open(opts TargetOptions) (*Targets, error) {
	all := &Targets{flags: *t, opts: opts, Layout: dataplane.Layout{Base: t.Base}, Socket: t.Socket}
	if t.Remote() {
		return all, nil
	}
	dir, err := t.Local, error(nil)
	if dir == "" {
		if all.scratch, err = os.MkdirTemp("", "haptic-"); err != nil {
			return nil, err
		}
		dir = filepath.Join(all.scratch, "haproxy")
		if err = os.Chmod(all.scratch, 0o711); err != nil { // haproxy runs under its own account
			all.Close()
			return nil, err
		}
	}
	all.Local, err = dataplane.NewLocal(dataplane.LocalOptions{
		Dir: dir, Temporary: all.scratch != "", MaxOldWorkers: t.MaxOldWorkers, StopTimeout: t.StopTimeout, Stdout: opts.Stdout, Logger: opts.Logger,
		OnProcess: func(e dataplane.ProcessEvent) {
			eventbus.Publish(opts.Bus, reconcile.HAProxyChanged{Instance: all.Local.Name(), ProcessEvent: e})
		},
	})
	if err != nil {
		all.Close()
		return nil, err
	}
	all.Layout, all.Socket = all.Local.Layout(), all.Local.RuntimeSocket()
	return all, nil
}

// Close removes the temporary folder. Nil Targets have none.
func (t *Targets) Close() {
	if t != nil && t.scratch != "" {
		os.RemoveAll(t.scratch)
	}
}

// String says where the instances behind Dataplane APIs are, for [Process].
func (t *Targets) String() string {
	switch {
	case t.flags.Pods != "":
		return fmt.Sprintf("pods %s of namespace %s", t.flags.Pods, t.flags.PodNamespace)
	case len(t.flags.Endpoints) == 1:
		return "behind 1 Dataplane API"
	}
	return fmt.Sprintf("behind %d Dataplane APIs", len(t.flags.Endpoints))
}

// OnThisHost returns the HAProxy on this host, for [reconcile.Options]. Instances behind
// Dataplane APIs come later, by Follow. Nil Targets have none.
func (t *Targets) OnThisHost() []reconcile.Target {
	if t == nil || t.Local == nil {
		return nil
	}
	return []reconcile.Target{t.Local}
}

// Follow prepares the discovery of the instances behind Dataplane APIs, which gives them to
// the loop. On this host it does nothing. onFound, if not nil, gets the addresses and ports of
// the APIs whenever the instances may have changed. For pods these are all their addresses.
func (t *Targets) Follow(source k8swatch.Source, loop *reconcile.Loop, onFound func([]netip.AddrPort)) (err error) {
	if t.Local != nil {
		return nil
	}
	opts := discover.FollowerOptions{Source: source, SetTargets: loop.SetTargets, Bus: t.opts.Bus, Logger: t.opts.Logger}
	if onFound != nil {
		opts.OnFound = func(ctx context.Context, instances []dataplane.Endpoint, pods []*corev1.Pod) {
			onFound(t.listeners(ctx, instances, pods))
		}
	}
	if t.Discovery, err = discover.NewFollower(opts); err != nil {
		return err
	}
	f := t.flags
	return t.Discovery.Set(discover.Wanted{
		URLs: f.Endpoints, Selector: f.Pods, Pods: discover.PodOptions{Namespace: f.PodNamespace, Port: f.PodPort, Scheme: f.PodScheme},
		Secret: f.Secret, Credentials: f.Credentials, TLS: discover.TLS{CAFile: f.CA, ServerName: f.ServerName},
		Client: &dataplane.ClientOptions{Layout: t.Layout},
	})
}

// Watch adds the part that follows the instances behind Dataplane APIs. Nil Targets have none.
func (t *Targets) Watch(g *Group) {
	if t != nil && t.Discovery != nil {
		g.Go("watches of instances", t.Discovery.Run)
	}
}

// Wait waits until the instances behind Dataplane APIs are known. With once, it is an error
// if there are none, or if they cannot be read within [SyncTimeout]. Otherwise they may come
// later, and events and checks report the problem.
func (t *Targets) Wait(ctx context.Context, once bool) error {
	if t.Discovery == nil {
		return nil
	}
	if !once {
		_ = t.Discovery.Wait(ctx)
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, SyncTimeout)
	defer cancel()
	return t.Discovery.Wait(ctx)
}

// Current returns the configuration that an instance has, or nil. deployed reports whether an
// earlier process may have deployed one: a new HAProxy behind a Dataplane API has a text, but
// no files. If the configuration cannot be read, the log says so and the first deployment
// replaces it.
func (t *Targets) Current(ctx context.Context) (current *dataplane.Config, deployed bool) {
	var err error
	if t.Local != nil {
		current, err = t.Local.Current(ctx)
	} else if t.Discovery != nil {
		current, err = t.Discovery.Current(ctx)
	}
	if err != nil {
		t.opts.Logger.Warn("the stored configuration cannot be read", "error", err)
	}
	return current, err != nil || current != nil && (t.Local != nil || len(current.Files()) > 0)
}

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
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		t.opts.Logger.Warn("endpoints with the address of an instance are not recognised", "instance", host, "error", err)
	}
	return addrs
}
