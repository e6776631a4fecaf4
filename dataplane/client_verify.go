package dataplane

import (
	"context"
	"crypto/sha1" //nolint:gosec // a fingerprint to compare with that of HAProxy, nothing rests on it
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// errNotApplied says that the process does not have what the API has accepted.
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
	if err := c.verifyServers(ctx, j.servers); err != nil {
		return err
	}
	return c.verifyLimits(ctx, j.limits)
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
