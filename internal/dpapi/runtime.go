package dpapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// Process is the running HAProxy.
type Process struct {
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// Process asks which process serves now. The zero Process says that the API does not know.
func (c *Client) Process(ctx context.Context) (Process, error) {
	v, err := get[struct {
		Info Process `json:"info"`
	}](ctx, c, at("runtime/info"))
	return v.Info, err
}

// SafeWord reports whether a key or value can go through a runtime call. The API pastes it
// into a command line. There a space ends a word, a semicolon ends the command, and a
// backslash escapes. A path of dots would lead elsewhere.
func SafeWord(s string) bool {
	unsafe := func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`;\"'`, r) }
	return s != "" && s != "." && s != ".." && !strings.HasPrefix(s, "#") && !strings.HasPrefix(s, "@") &&
		!strings.HasPrefix(s, "<<") && !strings.ContainsFunc(s, unsafe)
}

// Stat has the statistics of a server in the running process (management manual, section
// 9.1).
type Stat struct {
	Name    string
	Backend string
	Address string // with its port; "" if the process does not report it
	Status  string // "UP", "MAINT", "no check", ...
	Weight  *int64 // effective weight; nil if the process does not report it
}

// ServerStats reads the statistics of the servers of a backend; "" means all backends.
// HAProxy computes all of them in both cases.
func (c *Client) ServerStats(ctx context.Context, backend string) ([]Stat, error) {
	path := at("stats/native?type=server")
	if backend != "" {
		path += "&parent=" + url.QueryEscape(backend)
	}
	native, _, err := read[struct {
		Stats list[struct {
			Name    string `json:"name"`
			Backend string `json:"backend_name"`
			Stats   struct {
				Address string `json:"addr"`
				Status  string `json:"status"`
				Weight  *int64 `json:"weight"`
			} `json:"stats"`
		}] `json:"stats"`
	}](ctx, c, call{method: http.MethodGet, path: path, large: true})
	stats := make([]Stat, 0, len(native.Stats))
	for _, s := range native.Stats {
		stats = append(stats, Stat{s.Name, s.Backend, s.Stats.Address, s.Stats.Status, s.Stats.Weight})
	}
	return stats, err
}

// LoadedServer is a server of the running process.
type LoadedServer struct {
	Name       string `json:"name"`
	Address    string `json:"address"`
	Port       int    `json:"port"`
	AdminState string `json:"admin_state"` // ready, drain or maint
	Weight     *int64 `json:"weight"`      // nil if the API does not report it, as before 3.3
}

func serversPath(backend string) string { return at("runtime/backends/%s/servers", backend) }

// LoadedServers lists the servers of a backend of the running process. Status 404 can mean
// that the API does not understand the answer of HAProxy.
func (c *Client) LoadedServers(ctx context.Context, backend string) ([]LoadedServer, error) {
	return get[list[LoadedServer]](ctx, c, serversPath(backend))
}

// AddServer adds a server to a backend of the running process. The fields are those of the
// API. The server stays in maintenance until [Client.SetServer] changes that. Its health
// checks stay off for good. Status 409 says that the name is taken.
func (c *Client) AddServer(ctx context.Context, backend string, fields map[string]any) error {
	return c.sendJSON(ctx, http.MethodPost, serversPath(backend), fields)
}

// SetServer changes fields of a server of the running process, in the order "admin_state"
// (ready, drain or maint), "weight", "address" and "port". Before version 3.4, the API
// ignores all except the first.
func (c *Client) SetServer(ctx context.Context, backend, server string, fields map[string]any) error {
	return c.sendJSON(ctx, http.MethodPut, at("runtime/backends/%s/servers/%s", backend, server), fields)
}

// DeleteServer puts a server of the running process into maintenance and deletes it. While
// the server has connections, DeleteServer fails with status 500, and the server stays in
// maintenance.
func (c *Client) DeleteServer(ctx context.Context, backend, server string) error {
	return c.delete(ctx, at("runtime/backends/%s/servers/%s", backend, server))
}
