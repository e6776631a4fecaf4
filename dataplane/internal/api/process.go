package api

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/dpapi"
)

// readProcess reads what the process has of what a configuration names, as far as
// the API tells it. Before HAProxy 2.7 its answers are made of error messages.
func (c *call) readProcess(ctx context.Context, j *job, stored *config.Config) (*change.Process, error) {
	p := &change.Process{Maps: map[string]string{}, Certificates: map[string]string{}}
	if j.target.WhyNot("server", change.Update, "address") == "" {
		servers, err := c.readServers(ctx)
		if err != nil {
			return nil, err
		}
		p.Servers = servers
	}
	for _, f := range stored.Files {
		switch f.Kind {
		case config.Map:
			content, err := c.readMap(ctx, j, f)
			if err != nil {
				return nil, err
			}
			if content != nil {
				p.Maps[f.Name] = *content
			}
		case config.Certificate:
			sum, err := c.loadedFingerprint(ctx, j, f)
			if err != nil {
				return nil, err
			}
			if sum != "" {
				p.Certificates[f.Name] = sum
			}
		}
	}
	return p, nil
}

// told reports whether the API knows the answer to a question about the process. It
// does not know it where it answers with any status of an error.
func told(err error) (bool, error) {
	status := dpapi.Status(err)
	if err == nil || status != 0 && status != http.StatusUnauthorized && status != http.StatusForbidden {
		return err == nil, nil
	}
	return false, errorAt("read", err)
}

// readServers reads addresses, weights and states of all servers by the statistics,
// which is one request however many they are.
func (c *call) readServers(ctx context.Context) (map[change.ServerRef]change.ServerState, error) {
	stats, err := c.api.ServerStats(ctx, "")
	if ok, err := told(err); !ok {
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
		case strings.HasPrefix(s.Status, "MAINT"): // by a resolver, or another server
			state.State = ""
		case strings.HasPrefix(s.Status, "DRAIN"):
			state.State = "drain"
		case s.Status == "":
			state.State = ""
		}
		servers[change.ServerRef{Backend: s.Backend, Server: s.Name}] = state
	}
	return servers, nil
}

// readMap reads the entries of a map. The API cuts values at blanks, so that maps with
// other values than single words are not read.
func (c *call) readMap(ctx context.Context, j *job, f config.File) (*string, error) {
	if j.target.Version.Compare(change.HAProxy27) < 0 {
		return nil, nil
	}
	for _, e := range config.ParseMap(f.Content) {
		if !dpapi.SafeWord(e.Key) || !dpapi.SafeWord(e.Value) {
			return nil, nil
		}
	}
	entries, err := c.api.MapEntries(ctx, f.Name)
	if ok, err := told(err); !ok {
		return nil, err
	}
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Key + " " + e.Value + "\n")
	}
	text := b.String()
	return &text, nil
}

// loadedFingerprint returns the fingerprint of a certificate that the process has
// loaded, or "" where the API does not tell.
func (c *call) loadedFingerprint(ctx context.Context, j *job, f config.File) (string, error) {
	if j.target.WhyNot("certificate", change.Update, "") != "" {
		return "", nil
	}
	loaded, err := c.api.LoadedCertificate(ctx, c.opts.Layout.Path(f.Kind, f.Name))
	if ok, err := told(err); !ok {
		return "", err
	}
	return strings.ToUpper(strings.ReplaceAll(loaded.SHA1, ":", "")), nil
}

// errNotApplied says that the process does not have what the API has accepted.
var errNotApplied = fmt.Errorf("the running process does not have the change")
