package dataplane

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// maxPatterns is the number of patterns of ACLs beyond which one reload is
// cheaper than a request for each.
const maxPatterns = 500

// changePatterns adds the changes of a file of patterns, or says why there are
// none.
func (j *job) changePatterns(do *action) (why string) {
	if speaksOfSecrets(do.file.Name) {
		return "its patterns would stand in requests, which are logged"
	}
	if len(do.changes) > maxPatterns {
		return "more than " + strconv.Itoa(maxPatterns) + " patterns change"
	}
	for _, e := range do.changes {
		if !dpapi.SafeWord(e.key) {
			return "a pattern has characters that the Dataplane API cannot pass on"
		}
	}
	j.patterns = append(j.patterns, do)
	return ""
}

// callPatterns changes the patterns of a file. Its id is another one after each
// reload, so that it is looked up by its path.
func (c *Client) callPatterns(ctx context.Context, do *action) error {
	id, err := c.patternsID(ctx, do.file)
	if err != nil {
		return err
	}
	entries, err := c.api.ACLEntries(ctx, id)
	if err != nil {
		return err
	}
	loaded := make(map[string][]string, len(entries)) // ids by pattern
	for _, e := range entries {
		loaded[e.Value] = append(loaded[e.Value], e.ID)
	}
	for _, change := range do.changes {
		if change.action != Delete {
			continue
		}
		for _, entry := range loaded[change.key] {
			if err := c.api.DeleteACLEntry(ctx, id, entry); err != nil && !isStatus(err, http.StatusNotFound) {
				return err
			}
		}
	}
	for _, change := range do.changes {
		if change.action == Delete || len(loaded[change.key]) > 0 {
			continue
		}
		if err := c.api.AddACLEntry(ctx, id, change.key); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) patternsID(ctx context.Context, f File) (string, error) {
	files, err := c.api.ACLFiles(ctx)
	if err != nil {
		return "", err
	}
	path := c.opts.Layout.Path(f.Kind, f.Name)
	for _, file := range files {
		if file.Path == path {
			return file.ID, nil
		}
	}
	return "", fmt.Errorf("%s %s is not loaded: %w", f.Kind, f.Name, errNotApplied)
}

// verifyPatterns compares all patterns of the files that changed.
func (c *Client) verifyPatterns(ctx context.Context, changes []*action) error {
	for _, do := range changes {
		id, err := c.patternsID(ctx, do.file)
		if err != nil {
			return c.errorAt("verify", err)
		}
		entries, err := c.api.ACLEntries(ctx, id)
		if err != nil && !isStatus(err, http.StatusNotFound) { // which it says of an empty one
			return c.errorAt("verify", err)
		}
		var have []string
		for _, e := range entries {
			have = append(have, e.Value)
		}
		want := slices.Clone(parsePatterns(do.file.Content))
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(slices.Compact(have), slices.Compact(want)) {
			return fmt.Errorf("%s %s: %w", do.file.Kind, do.file.Name, errNotApplied)
		}
	}
	return nil
}

// verifyCAs compares the fingerprints of all certificates of CA files.
func (c *Client) verifyCAs(ctx context.Context, files []File) error {
	for _, f := range files {
		path := c.opts.Layout.Path(f.Kind, f.Name)
		n := 0
		for rest := f.Content; ; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			n++
			loaded, err := c.api.LoadedCA(ctx, path, n)
			if err != nil {
				return c.errorAt("verify", err)
			}
			if !hasFingerprint(pem.EncodeToMemory(block), loaded.SHA1) {
				return fmt.Errorf("CA file %s, certificate %d: %w", f.Name, n, errNotApplied)
			}
		}
		have, err := c.api.LoadedCAs(ctx, path)
		if err != nil {
			return c.errorAt("verify", err)
		}
		if have != n {
			return fmt.Errorf("CA file %s has %d certificates: %w", f.Name, have, errNotApplied)
		}
	}
	return nil
}

// setFrontend adds the runtime actions that limit frontends, or says why there
// are none.
func (j *job) setFrontend(do *action) (why string) {
	if _, err := parseDecimal(do.limit); err != nil {
		return "the limit is no plain number"
	}
	for _, name := range do.frontends {
		if !dpapi.SafeWord(name) {
			return "the name has characters that the Dataplane API cannot pass on"
		}
		j.actions = append(j.actions, "SetFrontendMaxConn "+name+" "+do.limit)
		if j.limits == nil {
			j.limits = map[string]string{}
		}
		j.limits[name] = do.limit
	}
	return ""
}
