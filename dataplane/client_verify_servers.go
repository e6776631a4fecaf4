package dataplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// readers is how many backends are read at the same time.
const readers = 4

// verifyServers compares addresses, states and weights. A server that came is
// there with all the words that HAProxy has been told, or not at all.
func (c *Client) verifyServers(ctx context.Context, changes []serverChange) error {
	byBackend := map[string][]serverChange{}
	var backends []string
	for _, s := range changes {
		if byBackend[s.backend] == nil {
			backends = append(backends, s.backend)
		}
		byBackend[s.backend] = append(byBackend[s.backend], s)
	}
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	n := min(readers, len(backends))
	errs, unseen := make([]error, n), make([][]serverChange, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for at := i; at < len(backends) && errs[i] == nil && call.Err() == nil; at += n {
				var more []serverChange
				if more, errs[i] = c.verifyBackend(call, backends[at], byBackend[backends[at]]); errs[i] != nil {
					cancel()
				}
				unseen[i] = append(unseen[i], more...)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.verifyWeights(ctx, slices.Concat(unseen...))
}

// verifyBackend also returns those servers of which the API does not tell the
// weight that they have got.
func (c *Client) verifyBackend(ctx context.Context, backend string, changes []serverChange) (unseen []serverChange, err error) {
	servers, err := c.api.LoadedServers(ctx, backend)
	if err != nil {
		return nil, c.errorAt("verify", err)
	}
	byName := make(map[string]dpapi.LoadedServer, len(servers))
	for _, s := range servers {
		byName[s.Name] = s
	}
	for _, want := range changes {
		have, ok := byName[want.server]
		if ok == want.gone {
			return nil, fmt.Errorf("server %s/%s: %w", backend, want.server, errNotApplied)
		}
		for _, f := range want.fields {
			if f.name == "weight" && have.Weight == nil {
				unseen = append(unseen, want)
				continue
			}
			if !isLoaded(have, f) {
				return nil, fmt.Errorf("server %s/%s, %s: %w", backend, want.server, f.name, errNotApplied)
			}
		}
		if want.comes != nil && have.AdminState == "ready" && have.State != "up" {
			return nil, fmt.Errorf("server %s/%s is %s: %w", backend, want.server, have.State, errNotApplied)
		}
	}
	return unseen, nil
}

// isLoaded reports whether a server has a value.
func isLoaded(have dpapi.LoadedServer, f serverField) bool {
	switch f.name {
	case "address":
		return f.value == net.JoinHostPort(have.Address, strconv.Itoa(have.Port))
	case "state":
		return (f.value == "maint") == (have.AdminState == "maint")
	case "weight":
		return have.Weight != nil && f.value == strconv.FormatInt(*have.Weight, 10)
	}
	return false
}

// verifyWeights compares weights with the statistics, which is one request
// however many they are: HAProxy counts them all each time.
func (c *Client) verifyWeights(ctx context.Context, changes []serverChange) error {
	if len(changes) == 0 {
		return nil
	}
	backend := changes[0].backend
	if slices.ContainsFunc(changes, func(s serverChange) bool { return s.backend != backend }) {
		backend = ""
	}
	stats, err := c.api.ServerStats(ctx, backend)
	if err != nil {
		return c.errorAt("verify", err)
	}
	weights := make(map[[2]string]*int64, len(stats))
	for _, s := range stats {
		weights[[2]string{s.Backend, s.Name}] = s.Weight
	}
	for _, want := range changes {
		have := dpapi.LoadedServer{Weight: weights[[2]string{want.backend, want.server}]}
		for _, f := range want.fields {
			if f.name == "weight" && !isLoaded(have, f) {
				return fmt.Errorf("server %s/%s, weight: %w", want.backend, want.server, errNotApplied)
			}
		}
	}
	return nil
}

// verifyLimits compares the limits of frontends with the statistics.
func (c *Client) verifyLimits(ctx context.Context, limits map[string]string) error {
	if len(limits) == 0 {
		return nil
	}
	stats, err := c.api.FrontendStats(ctx)
	if err != nil {
		return c.errorAt("verify", err)
	}
	have := make(map[string]*int64, len(stats))
	for _, s := range stats {
		have[s.Name] = s.Limit
	}
	for name, limit := range limits {
		if n := have[name]; n == nil || strconv.FormatInt(*n, 10) != limit {
			return fmt.Errorf("frontend %s, maxconn: %w", name, errNotApplied)
		}
	}
	return nil
}
