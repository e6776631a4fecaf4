package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/internal/dpapi"
)

// readers is the number of backends that are read at the same time.
const readers = 4

// applies bounds how long HAProxy may take to carry out an accepted command. From 2.9 on a
// command only queues the change of an address.
const applies = time.Second

// readBack checks address, state and weight of the changed servers.
func (c *Client) readBack(ctx context.Context, dos []change.Do) error {
	byBackend := map[string][]change.Do{}
	for _, do := range dos {
		if backend := change.RefOf(do).Backend; backend != "" {
			byBackend[backend] = append(byBackend[backend], do)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for backend, dos := range byBackend {
		g.Go(func() error { return c.readBackend(ctx, backend, dos) })
	}
	return g.Wait()
}

// readBackend reads the servers of a backend until they have the changes.
func (c *Client) readBackend(ctx context.Context, backend string, dos []change.Do) error {
	deadline := time.Now().Add(applies)
	for wait := time.Millisecond; ; wait *= 2 {
		servers, err := c.loadedServers(ctx, backend, dos)
		if err != nil {
			return err
		}
		missed := ""
		for _, do := range dos {
			if what := misses(servers, do); what != "" {
				missed = fmt.Sprintf("server %s: %s", change.RefOf(do), what)
			}
		}
		if missed == "" {
			return nil
		}
		if time.Now().Add(wait).After(deadline) || !sleep(ctx, wait) {
			return fmt.Errorf("%s: %w", missed, errNotApplied)
		}
	}
}

// misses names the change that a server does not have, or returns "".
func misses(servers map[change.ServerRef]change.ServerState, do change.Do) string {
	state, ok := servers[change.RefOf(do)]
	switch do := do.(type) {
	case *change.DeleteServer:
		if ok {
			return string(change.Delete)
		}
	case *change.AddServer:
		if !ok {
			return string(change.Create)
		}
		return state.Misses(change.SettingsOf(do.Server))
	case *change.SetServer:
		if !ok {
			return string(change.Create)
		}
		return state.Misses(do.Set)
	}
	return ""
}

// loadedServers reads the servers of a backend. Before version 3.3, the API gives out weights
// only in the statistics.
func (c *Client) loadedServers(ctx context.Context, backend string, dos []change.Do) (map[change.ServerRef]change.ServerState, error) {
	loaded, err := c.api.LoadedServers(ctx, backend)
	if err != nil {
		return nil, errorAt("verify", err)
	}
	weights := map[string]*int64{}
	weighs := slices.ContainsFunc(dos, func(do change.Do) bool {
		if set, ok := do.(*change.SetServer); ok {
			_, late := c.late[set.Ref]
			return !late && slices.ContainsFunc(set.Set, func(s change.Setting) bool { return s.Row.Field == "weight" })
		}
		_, added := do.(*change.AddServer)
		return added
	})
	if weighs && slices.ContainsFunc(loaded, func(s dpapi.LoadedServer) bool { return s.Weight == nil }) {
		stats, err := c.api.ServerStats(ctx, backend)
		if err != nil {
			return nil, errors.Join(errNotApplied, errorAt("verify", err))
		}
		for _, s := range stats {
			weights[s.Name] = s.Weight
		}
	}
	servers := make(map[change.ServerRef]change.ServerState, len(loaded))
	for _, s := range loaded {
		state := change.ServerState{State: s.AdminState, Weight: -1}
		state.Address, _ = netip.ParseAddrPort(net.JoinHostPort(s.Address, strconv.Itoa(s.Port)))
		if w := cmp.Or(s.Weight, weights[s.Name]); w != nil {
			state.Weight = int(*w)
		}
		servers[change.ServerRef{Backend: backend, Server: s.Name}] = state
	}
	c.seen(servers)
	return servers, nil
}
