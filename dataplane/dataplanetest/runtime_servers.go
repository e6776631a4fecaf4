package dataplanetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// loadedServer is a server of the running process.
type loadedServer struct {
	ID               string `json:"id,omitempty"`
	Name             string `json:"name,omitempty"`
	Address          string `json:"address,omitempty"`
	Port             *int   `json:"port,omitempty"`
	AdminState       string `json:"admin_state,omitempty"`
	OperationalState string `json:"operational_state,omitempty"`
}

func (srv *loadedServer) hostPort() string {
	port := 0
	if srv.Port != nil {
		port = *srv.Port
	}
	return net.JoinHostPort(srv.Address, strconv.Itoa(port))
}

// readServers reads the answer to "show servers state" (management manual,
// section 9.3).
func readServers(out string) []loadedServer {
	servers := []loadedServer{}
	for _, f := range rows(out, 19) {
		srv := loadedServer{ID: f[2], Name: f[3], Address: f[4]}
		if port, err := strconv.Atoi(f[18]); err == nil {
			srv.Port = &port
		}
		if flags, err := strconv.ParseUint(f[6], 16, 64); err == nil {
			srv.AdminState = adminState(flags)
		}
		switch f[5] {
		case "0":
			srv.OperationalState = "down"
		case "3":
			srv.OperationalState = "stopping"
		case "1", "2":
			srv.OperationalState = "up"
		}
		servers = append(servers, srv)
	}
	return servers
}

func adminState(flags uint64) string {
	switch {
	case flags&0x23 != 0: // forced, inherited or by its name
		return "maint"
	case flags&0x18 != 0: // forced or inherited
		return "drain"
	}
	return "ready"
}

// serversOf lists the servers of a backend. Whatever goes wrong, the API has not
// found any; so it does of all with an HAProxy before 2.7, whose answer it
// cannot read.
func (s *Server) serversOf(backend string) ([]loadedServer, error) {
	out, err := s.exec("show servers state " + backend)
	if first, _, _ := strings.Cut(out, "\n"); err != nil || strings.TrimSpace(first) != "1" {
		return nil, fmt.Errorf("no data for %s: %w", backend, errNotFound)
	}
	return readServers(out), nil
}

func (s *Server) serverOf(backend, name string) (*loadedServer, error) {
	servers, _ := s.serversOf(backend)
	for _, srv := range servers {
		if srv.Name == name {
			return &srv, nil
		}
	}
	return nil, fmt.Errorf("no data for %s/%s: %w", backend, name, errNotFound)
}

func (s *Server) listServers(q *request) (answer, error) {
	servers, err := s.serversOf(q.args[0])
	return answer{status: http.StatusOK, body: servers}, err
}

func (s *Server) getServer(q *request) (answer, error) {
	srv, err := s.serverOf(q.args[0], q.args[1])
	return answer{status: http.StatusOK, body: srv}, err
}

// setServer changes the administrative state of a server.
func (s *Server) setServer(q *request) (answer, error) {
	backend, full := q.args[0], q.args[0]+"/"+q.args[1]
	now, err := s.serverOf(backend, q.args[1])
	if err != nil {
		return answer{}, err
	}
	var data loadedServer
	if err := q.decode(&data); err != nil {
		return answer{}, err
	}
	if data.AdminState != "" && data.AdminState != now.AdminState {
		if _, err := s.exec("set server " + full + " state " + data.AdminState); err != nil {
			return answer{}, err
		}
	}
	after, err := s.serverOf(backend, now.Name)
	if err != nil {
		return answer{}, err
	}
	return s.did(http.StatusOK, after, "set server", full, data.AdminState)
}

// deleteServer puts a server into maintenance and removes it.
func (s *Server) deleteServer(q *request) (answer, error) {
	full := q.args[0] + "/" + q.args[1]
	srv, err := s.serverOf(q.args[0], q.args[1])
	if err == nil && srv.AdminState != "maint" {
		_, err = s.exec("disable server " + full)
	}
	if err == nil {
		_, err = s.exec("del server " + full)
	}
	if err != nil {
		return answer{}, err
	}
	return s.did(http.StatusNoContent, nil, "del server", full)
}

// addServer adds a server to the running process, where it starts in
// maintenance.
func (s *Server) addServer(q *request) (answer, error) {
	var fields map[string]any
	if err := q.decode(&fields); err != nil {
		return answer{}, err
	}
	if fields["name"] == nil {
		return answer{}, problemf(http.StatusBadRequest, "the new server must have a name")
	}
	full := fmt.Sprintf("%s/%v", q.args[0], fields["name"])
	_, err := s.exec("add server " + full + " " + serverWords(fields))
	switch {
	case err == nil:
		return s.did(http.StatusCreated, json.RawMessage(q.body), "add server", full)
	case strings.Contains(err.Error(), "No such backend"):
		err = problemf(http.StatusNotFound, "%s", err)
	case strings.Contains(err.Error(), "Already exists"):
		err = problemf(http.StatusConflict, "%s", err)
	}
	return answer{}, err
}

// serverWords are the words of a server line for the fields of a model.
func serverWords(fields map[string]any) string {
	words := fmt.Sprintf(" %v", fields["address"])
	if port, ok := fields["port"]; ok {
		words += fmt.Sprintf(":%v", port)
	}
	keywords := map[string]string{"ssl_cafile": "ca-file", "ssl_certificate": "crt"}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		keyword := keywords[name]
		switch {
		case name == "name" || name == "address" || name == "port":
			continue
		case keyword == "":
			keyword = strings.ReplaceAll(name, "_", "-")
		}
		words += " " + keyword
		if fields[name] != "enabled" {
			words += fmt.Sprintf(" %v", fields[name])
		}
	}
	return words
}
