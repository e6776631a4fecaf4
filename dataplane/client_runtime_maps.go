package dataplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// maxEntries is the number of map entries beyond which a map is replaced as a
// whole: a request for each costs more.
const maxEntries = 2000

// entryChange is one map entry to change in the running process.
type entryChange struct {
	file string
	mapChange
}

// mapReplace is a map to replace as a whole in the running process.
type mapReplace struct {
	file    string
	entries []dpapi.MapEntry
}

// changeMap adds the changes of one map, or says why there are none.
func (j *job) changeMap(do *action) (why string) {
	if speaksOfSecrets(do.file.Name) {
		return "its keys would stand in the paths of requests, which are logged"
	}
	if do.replace || len(j.entries)+len(do.changes) > maxEntries {
		return j.replaceMap(do)
	}
	for _, e := range do.changes {
		if !dpapi.SafeWord(e.key) || e.action != Delete && !dpapi.SafeWord(e.value) {
			return "an entry has characters that the Dataplane API cannot pass on"
		}
	}
	for _, e := range do.changes {
		j.entries = append(j.entries, entryChange{do.file.Name, e})
	}
	return ""
}

// replaceMap adds the replacement of a whole map. The API replaces only what is
// larger than a buffer of HAProxy: to a smaller map it adds (see
// [dpapi.Client.ReplaceMap]).
func (j *job) replaceMap(do *action) (why string) {
	var entries []dpapi.MapEntry
	size := 0
	for _, e := range parseMap(do.file.Content) {
		if !dpapi.SafeWord(e.key) || !dpapi.SafeWord(e.value) {
			return "an entry has characters that the Dataplane API cannot pass on"
		}
		entries = append(entries, dpapi.MapEntry{Key: e.key, Value: e.value})
		size += len(e.key) + len(e.value) + 2
	}
	switch {
	case size <= dpapi.ReplacedMap && do.replace:
		return "the order of the entries, or a key that stands there twice, is beyond the Dataplane API"
	case size <= dpapi.ReplacedMap:
		return "more than " + strconv.Itoa(maxEntries) + " map entries change"
	}
	if why := j.target.lacks(wholeMap); why != "" {
		return why
	}
	j.replaces = append(j.replaces, mapReplace{do.file.Name, entries})
	return ""
}

// changeMaps changes maps of the running process; their files are stored
// already.
func (c *Client) changeMaps(ctx context.Context, j *job) error {
	for _, e := range j.entries {
		var err error
		switch e.action {
		case Create:
			err = c.api.AddMapEntry(ctx, e.file, e.key, e.value)
		case Delete:
			err = c.api.DeleteMapEntry(ctx, e.file, e.key)
		default:
			err = c.api.SetMapEntry(ctx, e.file, e.key, e.value)
		}
		switch dpapi.Status(err) {
		case http.StatusNotFound, http.StatusConflict:
			// Not to be trusted, see verifyEntries, which looks for itself.
		case 0:
			if err != nil {
				return c.errorAt("runtime", err)
			}
		default:
			return c.errorAt("runtime", err)
		}
	}
	for _, m := range j.replaces {
		if err := c.api.ReplaceMap(ctx, m.file, m.entries); err != nil {
			return c.errorAt("runtime", err)
		}
	}
	return nil
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

// verifyReplaces compares whole maps. The API may lose the last entries of what
// it replaces, where these do not fit into its last buffer: they are added.
func (c *Client) verifyReplaces(ctx context.Context, replaces []mapReplace) error {
	const most = 8
	for _, m := range replaces {
		have, err := c.api.MapEntries(ctx, m.file)
		if err != nil {
			return c.errorAt("verify", err)
		}
		missing := len(m.entries) - len(have)
		if missing > 0 && missing <= most && slices.Equal(have, m.entries[:len(have)]) {
			for _, e := range m.entries[len(have):] {
				if err := c.api.AddMapEntry(ctx, m.file, e.Key, e.Value); err != nil {
					return c.errorAt("verify", err)
				}
			}
			if have, err = c.api.MapEntries(ctx, m.file); err != nil {
				return c.errorAt("verify", err)
			}
		}
		if !slices.Equal(have, m.entries) {
			return fmt.Errorf("map %s: %w", m.file, errNotApplied)
		}
	}
	return nil
}

func parseDecimal(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && strconv.FormatInt(n, 10) != text {
		err = errors.New("not a plain number")
	}
	return n, err
}
