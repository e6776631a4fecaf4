package dataplane

import (
	"context"
	"crypto/sha1" //nolint:gosec // a fingerprint to compare with that of HAProxy, nothing rests on it
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// errNotApplied says that the process does not have what the API has accepted.
// With an HAProxy before 2.7 behind a master socket the API cannot read the
// answers of HAProxy and takes every command for a success.
var errNotApplied = errors.New("the running process does not have the change")

// sameMeaning reports whether a stored text is a normalised one, or normalises
// to it.
func (c *Client) sameMeaning(stored, normal string) bool {
	if stored == normal {
		return true
	}
	n, err := c.stored.Normalise(stored)
	return err == nil && n == normal
}

// verifyRuntime reads back what the process has.
func (c *Client) verifyRuntime(ctx context.Context, j *job, written []fileWrite) error {
	if err := c.verifyCertificates(ctx, written); err != nil {
		return err
	}
	if err := c.verifyEntries(ctx, j.entries); err != nil {
		return err
	}
	if err := c.verifyReplaces(ctx, j.replaces); err != nil {
		return err
	}
	if err := c.verifyPatterns(ctx, j.patterns); err != nil {
		return err
	}
	if err := c.verifyCAs(ctx, j.cas); err != nil {
		return err
	}
	if err := c.verifyLists(ctx, j.lists); err != nil {
		return err
	}
	return c.verifyServers(ctx, j)
}

// verifyCertificates compares fingerprints of certificates that were swapped
// or loaded.
func (c *Client) verifyCertificates(ctx context.Context, written []fileWrite) error {
	for _, w := range written {
		if !w.swap && !w.load {
			continue
		}
		loaded, err := c.api.LoadedCertificate(ctx, c.opts.Layout.Path(w.file.Kind, w.file.Name))
		if err != nil {
			return c.errorAt("verify", err)
		}
		if !hasFingerprint(w.file.Content, loaded.SHA1) {
			return fmt.Errorf("certificate %s: %w", w.file.Name, errNotApplied)
		}
	}
	return nil
}

func hasFingerprint(content []byte, want string) bool {
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return false
		}
		sum := sha1.Sum(block.Bytes) //nolint:gosec // see the import
		if strings.EqualFold(hex.EncodeToString(sum[:]), strings.ReplaceAll(want, ":", "")) {
			return true
		}
	}
}

// verifyLists lists each crt-list that changed once.
func (c *Client) verifyLists(ctx context.Context, changes []listChange) error {
	listed := map[string][]dpapi.CrtListEntry{}
	for _, l := range changes {
		entries, ok := listed[l.list]
		if !ok {
			var err error
			if entries, err = c.api.CrtListEntries(ctx, l.list); err != nil {
				return c.errorAt("verify", err)
			}
			listed[l.list] = entries
		}
		var found []dpapi.CrtListEntry
		for _, e := range entries {
			if e.File == l.entry.File {
				found = append(found, e)
			}
		}
		want := l.kind != deleteCrtListEntry
		if want != (len(found) == 1) || want && !equalEntries(found[0], l.entry) {
			return fmt.Errorf("crt-list %s, certificate %s: %w", l.list, l.entry.File, errNotApplied)
		}
	}
	return nil
}

func equalEntries(a, b dpapi.CrtListEntry) bool {
	return slices.Equal(strings.Fields(a.Options), strings.Fields(b.Options)) && slices.Equal(a.Filters, b.Filters)
}

// readers is how many backends are read at the same time.
const readers = 4

// verifyServers compares addresses, states and, where the API tells them,
// weights. Where the API cannot tell anything, as with an HAProxy before 2.7
// behind a master socket, there is nothing to compare.
func (c *Client) verifyServers(ctx context.Context, j *job) error {
	byBackend := map[string][]serverChange{}
	var backends []string
	for _, s := range j.servers {
		if byBackend[s.backend] == nil {
			backends = append(backends, s.backend)
		}
		byBackend[s.backend] = append(byBackend[s.backend], s)
	}
	if len(backends) > 0 && j.haproxy.Compare(readableHAProxy) < 0 {
		if _, err := c.api.LoadedServers(ctx, backends[0]); isStatus(err, http.StatusNotFound) {
			c.log.Debug("the Dataplane API does not tell what the servers are", "haproxy", j.haproxy.String())
			return nil
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, min(readers, len(backends)))
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for at := i; at < len(backends) && errs[i] == nil && ctx.Err() == nil; at += len(errs) {
				if errs[i] = c.verifyBackend(ctx, backends[at], byBackend[backends[at]]); errs[i] != nil {
					cancel()
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.Join(errs...)
}

func (c *Client) verifyBackend(ctx context.Context, backend string, changes []serverChange) error {
	servers, err := c.api.LoadedServers(ctx, backend)
	if err != nil {
		return c.errorAt("verify", err)
	}
	byName := make(map[string]dpapi.LoadedServer, len(servers))
	for _, s := range servers {
		byName[s.Name] = s
	}
	for _, want := range changes {
		have, ok := byName[want.server]
		if ok == want.gone {
			return fmt.Errorf("server %s/%s: %w", backend, want.server, errNotApplied)
		}
		for _, f := range want.fields {
			if !isLoaded(have, f) {
				return fmt.Errorf("server %s/%s, %s: %w", backend, want.server, f.name, errNotApplied)
			}
		}
		if want.comes != nil && have.AdminState == "ready" && have.State != "up" {
			return fmt.Errorf("server %s/%s is %s: %w", backend, want.server, have.State, errNotApplied)
		}
	}
	return nil
}

// isLoaded reports whether a server has a value, as far as can be seen.
func isLoaded(have dpapi.LoadedServer, f serverField) bool {
	switch f.name {
	case "address":
		return f.value == net.JoinHostPort(have.Address, strconv.Itoa(have.Port))
	case "state":
		return (f.value == "maint") == (have.AdminState == "maint")
	case "weight":
		return have.Weight == nil || f.value == strconv.FormatInt(*have.Weight, 10)
	}
	return true
}
