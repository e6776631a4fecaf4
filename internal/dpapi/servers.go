package dpapi

import (
	"context"
	"encoding/json"
	"net/http"
)

// LoadedServer is a server of the running process.
type LoadedServer struct {
	Name       string `json:"name"`
	Address    string `json:"address"`
	Port       int    `json:"port"`
	AdminState string `json:"admin_state"`       // ready, drain or maint
	State      string `json:"operational_state"` // up, down or stopping
	Weight     *int64 `json:"weight"`            // nil where the API does not tell, as before 3.3
}

// LoadedServers lists the servers of a backend of the running process. Status
// 404 can mean that the API does not understand what HAProxy says.
func (c *Client) LoadedServers(ctx context.Context, backend string) ([]LoadedServer, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: serversPath(backend)})
	if err != nil {
		return nil, err
	}
	var servers []LoadedServer
	return servers, a.json(&servers)
}

// AddServer adds a server to a backend of the running process; the
// configuration stays. The fields are those of the API for a server that is
// added at runtime, "name" and "address" among them. The server is in
// maintenance until [Client.SetServerState] says otherwise, with its health
// checks off for good. Status 409 says that there is one of that name.
func (c *Client) AddServer(ctx context.Context, backend string, fields map[string]any) error {
	return c.sendJSON(ctx, http.MethodPost, serversPath(backend), nil, fields)
}

// SetServerState makes a server of the running process ready, drain or maint.
func (c *Client) SetServerState(ctx context.Context, backend, server, state string) error {
	return c.sendJSON(ctx, http.MethodPut, serversPath(backend, server), nil, map[string]string{"admin_state": state})
}

// DeleteServer puts a server of the running process in maintenance and removes
// it; the configuration stays. It fails with status 500 while the server has
// connections, and then leaves it in maintenance.
func (c *Client) DeleteServer(ctx context.Context, backend, server string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: serversPath(backend, server)})
	return err
}

func serversPath(backend string, server ...string) []string {
	return append([]string{"services", "haproxy", "runtime", "backends", backend, "servers"}, server...)
}

func (c *Client) sendJSON(ctx context.Context, method string, path []string, query map[string][]string, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = c.do(ctx, call{method: method, path: path, query: query, contentType: "application/json", body: body})
	return err
}
