package dataplanetest

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// severity matches the start of an answer of HAProxy that is an error.
var severity = regexp.MustCompile(`^\[[0-3]\]:`)

// exec sends a command. An answer is an error if it has a severity; HAProxy does not give one
// to every error.
func (s *Server) exec(command string) (string, error) {
	out, err := s.proc.Command(command)
	if err == nil && severity.MatchString(out) {
		err = fmt.Errorf("%s [%s]", out, command)
	}
	return out, err
}

// expect sends a command and returns an error if the answer does not contain words.
func (s *Server) expect(command, words string) error {
	out, err := s.exec(command)
	if err == nil && !strings.Contains(strings.ToLower(out), words) {
		err = fmt.Errorf("%s [%s]", out, command)
	}
	return err
}

// did records a change of the running process and returns the answer to the request.
func (s *Server) did(status int, body any, what ...string) (int, any, error) {
	s.actions = append(s.actions, strings.Join(what, " "))
	return status, body, nil
}

// rows returns the words of each line that has at least that many, without headers.
func rows(out string, least int) (list [][]string) {
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) >= least && !strings.HasPrefix(f[0], "#") {
			list = append(list, f)
		}
	}
	return list
}

func (s *Server) processInfo(*request) (int, any, error) {
	info := map[string]any{}
	out, _ := s.exec("show info typed") // the API ignores a failure, and then knows nothing
	for line := range strings.Lines(out) {
		// 6.Pid.1:CGS:u32:1234
		fields := strings.SplitN(strings.TrimSpace(line), ":", 4)
		switch {
		case len(fields) < 4:
		case strings.Contains(fields[0], ".Version."):
			info["version"] = fields[3]
		case strings.Contains(fields[0], ".Pid."):
			info["pid"], _ = strconv.Atoi(fields[3])
		}
	}
	return http.StatusOK, map[string]any{"info": info}, nil
}

// stat is an element of the answer of stats/native.
type stat struct {
	Name    string         `json:"name,omitempty"`
	Type    string         `json:"type,omitempty"`
	Backend string         `json:"backend_name,omitempty"`
	Stats   map[string]any `json:"stats"`
}

// stats lists servers. The API also lists frontends and backends.
func (s *Server) stats(q *request) (int, any, error) {
	out, err := s.exec("show stat")
	parent := q.URL.Query().Get("parent")
	stats := slices.DeleteFunc(readStats(out), func(st stat) bool {
		return st.Type != "server" || parent != "" && st.Backend != parent
	})
	return http.StatusOK, struct {
		Stats []stat `json:"stats,omitempty"`
	}{stats}, err
}

// readStats reads the answer to "show stat" as the API does: it always takes the first line
// as the names of the columns. Before HAProxy 2.7 that line is an error on the master socket,
// and readStats can use nothing of the rest.
func readStats(out string) (stats []stat) {
	header, rest, _ := strings.Cut(out, "\n")
	keys := strings.Split(strings.TrimPrefix(header, "# "), ",")
	for line := range strings.Lines(rest) {
		fields := strings.Split(strings.TrimRight(line, "\n"), ",")
		if len(fields) < len(keys) {
			continue
		}
		st := stat{Stats: map[string]any{}}
		for i, key := range keys {
			switch n, err := strconv.ParseInt(fields[i], 10, 64); {
			case key == "type" && n == 2:
				st.Name, st.Type, st.Backend = fields[1], "server", fields[0]
			case key == "weight" && err == nil:
				st.Stats[key] = n
			case (key == "addr" || key == "status") && fields[i] != "":
				st.Stats[key] = fields[i]
			}
		}
		stats = append(stats, st)
	}
	return stats
}

type loadedServer struct {
	Name       string `json:"name"`
	Address    string `json:"address"`
	Port       int    `json:"port"`
	AdminState string `json:"admin_state"`
}

// readServers reads the answer to "show servers state" (management manual,
// section 9.3).
func readServers(out string) []loadedServer {
	servers := []loadedServer{}
	for _, f := range rows(out, 19) {
		srv := loadedServer{Name: f[3], Address: f[4], AdminState: "ready"}
		srv.Port, _ = strconv.Atoi(f[18])
		switch flags, _ := strconv.ParseUint(f[6], 16, 64); {
		case flags&0x23 != 0: // forced, inherited or by its name
			srv.AdminState = "maint"
		case flags&0x18 != 0: // forced or inherited
			srv.AdminState = "drain"
		}
		servers = append(servers, srv)
	}
	return servers
}

// serversOf lists the servers of a backend. The API answers every failure with "not found".
// It does so for all backends with HAProxy before 2.7, whose answer it cannot read.
func (s *Server) serversOf(backend string) ([]loadedServer, error) {
	out, err := s.exec("show servers state " + backend)
	if first, _, _ := strings.Cut(out, "\n"); err != nil || strings.TrimSpace(first) != "1" {
		return nil, problemf(http.StatusNotFound, "no data for %s: not found", backend)
	}
	return readServers(out), nil
}

// serverOf finds the server that the path names.
func (s *Server) serverOf(q *request) (srv loadedServer, full string, err error) {
	full = q.PathValue("backend") + "/" + q.PathValue("name")
	servers, _ := s.serversOf(q.PathValue("backend"))
	at := slices.IndexFunc(servers, func(srv loadedServer) bool { return srv.Name == q.PathValue("name") })
	if at < 0 {
		return srv, full, problemf(http.StatusNotFound, "no data for %s: not found", full)
	}
	return servers[at], full, nil
}

func (s *Server) listServers(q *request) (int, any, error) {
	servers, err := s.serversOf(q.PathValue("backend"))
	return http.StatusOK, servers, err
}

// setServer changes the administrative state of a server and, from version 3.4 of the API
// on, its weight and its address.
func (s *Server) setServer(q *request) (int, any, error) {
	now, full, err := s.serverOf(q)
	if err != nil {
		return 0, nil, err
	}
	data := struct {
		loadedServer
		Weight *int `json:"weight"`
	}{loadedServer: now}
	if err := q.decode(&data); err != nil {
		return 0, nil, err
	}
	var sets []string
	if data.AdminState != now.AdminState {
		sets = append(sets, "state "+data.AdminState)
	}
	if data.Weight != nil && !s.before34() {
		sets = append(sets, "weight "+strconv.Itoa(*data.Weight))
	}
	if (data.Address != now.Address || data.Port != now.Port) && !s.before34() {
		sets = append(sets, "addr "+data.Address+" port "+strconv.Itoa(data.Port))
	}
	for _, set := range sets {
		if _, err := s.exec("set server " + full + " " + set); err != nil {
			return 0, nil, err
		}
	}
	after, _, err := s.serverOf(q)
	if err != nil {
		return 0, nil, err
	}
	return s.did(http.StatusOK, after, "set server", full, data.AdminState)
}

// deleteServer puts a server into maintenance and removes it.
func (s *Server) deleteServer(q *request) (int, any, error) {
	srv, full, err := s.serverOf(q)
	if err == nil && srv.AdminState != "maint" {
		_, err = s.exec("disable server " + full)
	}
	if err == nil {
		_, err = s.exec("del server " + full)
	}
	if err != nil {
		return 0, nil, err
	}
	return s.did(http.StatusNoContent, nil, "del server", full)
}

// addServer adds a server to the running process, where it starts in
// maintenance.
func (s *Server) addServer(q *request) (int, any, error) {
	var fields map[string]any
	if err := q.decode(&fields); err != nil {
		return 0, nil, err
	}
	full := fmt.Sprintf("%s/%v", q.PathValue("backend"), fields["name"])
	_, err := s.exec("add server " + full + " " + serverWords(fields))
	switch {
	case err == nil:
		return s.did(http.StatusCreated, fields, "add server", full)
	case strings.Contains(err.Error(), "No such backend"):
		err = as(http.StatusNotFound, err)
	case strings.Contains(err.Error(), "Already exists"):
		err = as(http.StatusConflict, err)
	}
	return 0, nil, err
}

// serverWords returns the words of a server line for the fields of a model.
func serverWords(fields map[string]any) string {
	words := fmt.Sprint(fields["address"])
	if port, ok := fields["port"]; ok {
		words += fmt.Sprintf(":%v", port)
	}
	keywords := map[string]string{"ssl_cafile": "ca-file", "ssl_certificate": "crt"}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name == "name" || name == "address" || name == "port" {
			continue
		}
		keyword := keywords[name]
		if keyword == "" {
			keyword = strings.ReplaceAll(name, "_", "-")
		}
		words += " " + keyword
		if fields[name] != "enabled" {
			words += fmt.Sprintf(" %v", fields[name])
		}
	}
	return words
}
