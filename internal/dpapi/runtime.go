package dpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Process is the running HAProxy.
type Process struct {
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// Process asks which process serves now. The zero Process says that the API
// does not know.
func (c *Client) Process(ctx context.Context) (Process, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: []string{"services", "haproxy", "runtime", "info"}})
	if err != nil {
		return Process{}, err
	}
	type native struct {
		Info Process `json:"info"`
	}
	// Older versions answer with a list of one element per process.
	var one native
	if json.Unmarshal(a.body, &one) == nil {
		return one.Info, nil
	}
	var many []native
	if err := a.json(&many); err != nil || len(many) == 0 {
		return Process{}, err
	}
	return many[0].Info, nil
}

// SafeWord reports whether a key or value can go through a runtime call: the
// API pastes it into a command line, where a space ends a word, a semicolon
// the command, and a backslash escapes. A path of dots would lead elsewhere.
func SafeWord(s string) bool {
	if s == "" || s == "." || s == ".." || strings.HasPrefix(s, "#") || strings.HasPrefix(s, "@") || strings.HasPrefix(s, "<<") {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == 0x7f || strings.IndexByte(`;\"'`, c) >= 0 {
			return false
		}
	}
	return true
}

func entriesPath(mapName string, key ...string) []string {
	return append([]string{"services", "haproxy", "runtime", "maps", mapName, "entries"}, key...)
}

// AddMapEntry adds an entry to a map of the running process; the file stays.
// Status 409 says that the key is there.
func (c *Client) AddMapEntry(ctx context.Context, mapName, key, value string) error {
	return c.mapEntry(ctx, http.MethodPost, entriesPath(mapName), key, value)
}

// SetMapEntry changes the value of a key of a map of the running process; the
// file stays. Status 404 says that the key is not there.
func (c *Client) SetMapEntry(ctx context.Context, mapName, key, value string) error {
	return c.mapEntry(ctx, http.MethodPut, entriesPath(mapName, key), key, value)
}

// DeleteMapEntry removes all entries of a key from a map of the running
// process; the file stays.
func (c *Client) DeleteMapEntry(ctx context.Context, mapName, key string) error {
	if !SafeWord(key) {
		return fmt.Errorf("map %s: key %q cannot be changed at runtime", mapName, key)
	}
	_, err := c.do(ctx, call{method: http.MethodDelete, path: entriesPath(mapName, key)})
	return err
}

func (c *Client) mapEntry(ctx context.Context, method string, path []string, key, value string) error {
	if !SafeWord(key) || !SafeWord(value) {
		return fmt.Errorf("map entry %q %q cannot be changed at runtime", key, value)
	}
	entry := map[string]string{"value": value}
	if method == http.MethodPost {
		entry["key"] = key
	}
	return c.sendJSON(ctx, method, path, nil, entry)
}

// MapEntry is an entry of a map of the running process.
type MapEntry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// MapEntries lists a map of the running process. The API splits lines at
// blanks, so values come without what follows the first; and with an HAProxy
// before 2.7 behind a master socket there are entries made of an error message.
func (c *Client) MapEntries(ctx context.Context, mapName string) ([]MapEntry, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: entriesPath(mapName)})
	if err != nil {
		return nil, err
	}
	var entries []MapEntry
	return entries, a.json(&entries)
}
