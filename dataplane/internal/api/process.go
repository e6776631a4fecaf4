package api

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/dpapi"
)

// readProcess reads the state of the process for everything that a configuration names, as
// far as the API gives it out. Before HAProxy 2.7 the API only passes on error messages.
func (c *Client) readProcess(ctx context.Context, j *job, stored *config.Config) (*change.Process, error) {
	p := &change.Process{Maps: map[string]string{}, Certificates: map[string]string{}}
	var err error
	if j.target.WhyNot("server", change.Update, "address") == "" {
		if p.Servers, err = c.readServers(ctx); err != nil {
			return nil, err
		}
		c.inherit(p.Servers, stored)
	}
	for _, f := range stored.Files {
		switch f.Kind {
		case config.Map:
			err = c.readMap(ctx, j, f, p)
		case config.Certificate:
			var sum string
			if sum, err = c.loadedFingerprint(ctx, j, f); sum != "" {
				p.Certificates[f.Name] = sum
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// readServers reads addresses, weights and states of all servers from the statistics, in a
// single request.
func (c *Client) readServers(ctx context.Context) (map[change.ServerRef]change.ServerState, error) {
	stats, err := c.api.ServerStats(ctx, "")
	if ok, err := answered("read", err); !ok {
		return nil, err
	}
	servers := make(map[change.ServerRef]change.ServerState, len(stats))
	for _, s := range stats {
		state := change.ServerState{State: change.Ready, Weight: -1}
		state.Address, _ = netip.ParseAddrPort(s.Address)
		if s.Weight != nil {
			state.Weight = int(*s.Weight)
		}
		switch {
		case s.Status == "MAINT":
			state.State = change.Maint
		case strings.HasPrefix(s.Status, "MAINT"), s.Status == "": // set by a resolver, or by another server
			state.State = ""
		case strings.HasPrefix(s.Status, "DRAIN"):
			state.State = "drain"
		}
		servers[change.ServerRef{Backend: s.Backend, Server: s.Name}] = state
	}
	c.seen(servers)
	return servers, nil
}

// readMap reads the entries of a map. The API cuts values at blanks, so readMap skips maps
// with values of several words.
func (c *Client) readMap(ctx context.Context, j *job, f config.File, p *change.Process) error {
	if j.target.Version.Compare(change.HAProxy27) < 0 {
		return nil
	}
	if !safeMap(f.Content) {
		return nil
	}
	entries, err := c.api.MapEntries(ctx, f.Name)
	if ok, err := answered("read", err); !ok {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Key + " " + e.Value + "\n")
	}
	p.Maps[f.Name] = b.String()
	return nil
}

// safeMap reports whether the API gives out the entries of a map unchanged.
func safeMap(content []byte) bool {
	return !slices.ContainsFunc(config.ParseMap(content), func(e config.MapEntry) bool {
		return !dpapi.SafeWord(e.Key) || !dpapi.SafeWord(e.Value)
	})
}

// errNotApplied says that the process does not have what the API has accepted.
var errNotApplied = errors.New("the running process does not have the change")
