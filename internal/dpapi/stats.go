package dpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Stat is what the statistics of the running process say of a server (management
// manual, section 9.1).
type Stat struct {
	Name    string
	Backend string
	Address string // with its port; "" where the process does not tell
	Status  string // "UP", "MAINT", "no check", ...
	Weight  *int64 // effective weight; nil where the process does not tell
}

// ServerStats reads the statistics of the servers of a backend, or of all
// backends if that is "". HAProxy counts them all either way.
func (c *Client) ServerStats(ctx context.Context, backend string) ([]Stat, error) {
	query := url.Values{"type": {"server"}}
	if backend != "" {
		query.Set("parent", backend)
	}
	a, err := c.do(ctx, call{method: http.MethodGet, path: []string{"services", "haproxy", "stats", "native"}, query: query, large: true})
	if err != nil {
		return nil, err
	}
	type native struct {
		Stats []struct {
			Name    string `json:"name"`
			Backend string `json:"backend_name"`
			Stats   struct {
				Address string `json:"addr"`
				Status  string `json:"status"`
				Weight  *int64 `json:"weight"`
			} `json:"stats"`
		} `json:"stats"`
	}
	// As with [Client.Process], older versions answer with a list.
	var one native
	if json.Unmarshal(a.body, &one) != nil {
		var many []native
		if err := a.json(&many); err != nil || len(many) == 0 {
			return nil, err
		}
		one = many[0]
	}
	stats := make([]Stat, 0, len(one.Stats))
	for _, s := range one.Stats {
		stats = append(stats, Stat{s.Name, s.Backend, s.Stats.Address, s.Stats.Status, s.Stats.Weight})
	}
	return stats, nil
}
