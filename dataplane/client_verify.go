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
	"strconv"
	"strings"
)

// errNotApplied says that the process does not have what the API has accepted.
// With an HAProxy before 2.7 behind a master socket the API cannot read the
// answers of HAProxy and takes every command for a success.
var errNotApplied = errors.New("the running process does not have the change")

// verifyRuntime reads back what the process has.
func (c *Client) verifyRuntime(ctx context.Context, j *job, written []fileWrite) error {
	if err := c.verifyCertificates(ctx, written); err != nil {
		return err
	}
	if err := c.verifyEntries(ctx, j.entries); err != nil {
		return err
	}
	return c.verifyServers(ctx, j.servers)
}

// verifyCertificates compares fingerprints of certificates that were swapped.
func (c *Client) verifyCertificates(ctx context.Context, written []fileWrite) error {
	for _, w := range written {
		if !w.swap {
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

// verifyEntries lists each map once.
func (c *Client) verifyEntries(ctx context.Context, changes []entryChange) error {
	byMap := map[string][]mapChange{}
	for _, e := range changes {
		byMap[e.file] = append(byMap[e.file], e.mapChange)
	}
	for file, changes := range byMap {
		entries, err := c.api.MapEntries(ctx, file)
		if err != nil {
			return c.errorAt("verify", err)
		}
		values := make(map[string]string, len(entries))
		for _, e := range entries {
			values[e.Key] = e.Value
		}
		for _, e := range changes {
			value, ok := values[e.key]
			if ok != (e.action != Delete) || ok && value != e.value {
				return fmt.Errorf("map %s, key %s: %w", file, e.key, errNotApplied)
			}
		}
	}
	return nil
}

// verifyServers compares addresses and states. Where the API cannot tell, as
// with an HAProxy before 2.7 behind a master socket, there is nothing to compare.
func (c *Client) verifyServers(ctx context.Context, changes []serverChange) error {
	byBackend := map[string][]serverChange{}
	for _, s := range changes {
		byBackend[s.backend] = append(byBackend[s.backend], s)
	}
	for backend, changes := range byBackend {
		servers, err := c.api.LoadedServers(ctx, backend)
		if isStatus(err, http.StatusNotFound) {
			c.log.Debug("the Dataplane API does not tell what the servers of a backend are", "backend", backend)
			return nil
		}
		if err != nil {
			return c.errorAt("verify", err)
		}
		for _, want := range changes {
			for _, have := range servers {
				if have.Name != want.server {
					continue
				}
				address := net.JoinHostPort(have.Address, strconv.Itoa(have.Port))
				for _, f := range want.fields {
					if f.name == "address" && f.value != address || f.name == "state" && (f.value == "maint") != (have.AdminState == "maint") {
						return fmt.Errorf("server %s/%s, %s: %w", backend, want.server, f.name, errNotApplied)
					}
				}
			}
		}
	}
	return nil
}
