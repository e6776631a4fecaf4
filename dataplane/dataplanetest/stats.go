package dataplanetest

import (
	"net/http"
	"strconv"
	"strings"
)

// stat is an element of the answer of stats/native.
type stat struct {
	Name    string         `json:"name,omitempty"`
	Type    string         `json:"type,omitempty"`
	Backend string         `json:"backend_name,omitempty"`
	Stats   map[string]any `json:"stats"`
}

// stats answers stats/native.
func (s *Server) stats(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	kind, name, parent := q.Get("type"), q.Get("name"), q.Get("parent")
	switch {
	case r.Method != http.MethodGet:
		notAllowed(w, r, http.MethodGet)
		return
	case name != "" && kind == "":
		failf(w, http.StatusBadRequest, "Type required when filtering by name")
		return
	case name != "" && kind == "server" && parent == "":
		failf(w, http.StatusBadRequest, "Parent backend required when filtering by server")
		return
	}
	answer := map[string]any{"runtimeAPI": s.socket() + "@1"}
	out, err := s.exec("show stat", nil)
	if err != nil {
		answer["error"] = err.Error()
		reply(w, http.StatusInternalServerError, answer)
		return
	}
	var stats []stat
	for _, st := range parseStats(out) {
		if (kind == "" || st.Type == kind) && (name == "" || st.Name == name) &&
			(kind != "server" || parent == "" || st.Backend == parent) {
			stats = append(stats, st)
		}
	}
	if len(stats) > 0 {
		answer["stats"] = stats
	}
	reply(w, http.StatusOK, answer)
}

// parseStats reads the answer to "show stat" as the API does, which takes the
// first line for the names of the columns, whatever it is: before HAProxy 2.7
// the master socket has an error there, and nothing can be told of the rest.
func parseStats(out string) []stat {
	header, rest, _ := strings.Cut(out, "\n")
	keys := strings.Split(strings.TrimPrefix(header, "# "), ",")
	var stats []stat
	for line := range strings.Lines(rest) {
		fields := strings.Split(strings.TrimRight(line, "\n"), ",")
		if len(fields) < len(keys) {
			continue
		}
		st := stat{Stats: map[string]any{}}
		for i, key := range keys {
			switch key {
			case "type":
				st.Name, st.Type, st.Backend = named(fields, fields[i])
			case "slim", "weight":
				if n, err := strconv.ParseInt(fields[i], 10, 64); err == nil {
					st.Stats[key] = n
				}
			case "addr", "mode", "status":
				if fields[i] != "" {
					st.Stats[key] = fields[i]
				}
			}
		}
		stats = append(stats, st)
	}
	return stats
}

// named tells what a line is about, by the number of its type. Of a listener the
// API does not.
func named(fields []string, number string) (name, kind, backend string) {
	switch number {
	case "0", "1":
		return fields[0], strings.ToLower(fields[1]), ""
	case "2":
		return fields[1], "server", fields[0]
	}
	return "", "", ""
}
