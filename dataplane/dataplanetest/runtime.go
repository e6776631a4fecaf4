package dataplanetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	clienterrors "github.com/haproxytech/client-native/v6/errors"
	"github.com/haproxytech/client-native/v6/misc"
	"github.com/haproxytech/client-native/v6/models"
)

// process is what stands behind the API: a haproxy, or one who pretends. Both
// understand HAProxy's runtime API.
type process interface {
	// command sends a command as the Dataplane API does, which has messages
	// come with a severity: "[3]: No such server.".
	command(command string) (string, error)
	// ask sends a command for the methods of Server.
	ask(command string) (string, error)
	reload() error
	pid() int
	stop()
}

// runtime answers below runtime/.
func (s *Server) runtime(w http.ResponseWriter, r *http.Request, path []string) {
	for i := range path {
		path[i], _ = url.PathUnescape(path[i])
	}
	switch {
	case len(path) == 1 && path[0] == "info" && r.Method == http.MethodGet:
		s.processInfo(w)
	case path[0] == "maps":
		s.runtimeMaps(w, r, path[1:])
	case path[0] == "acls":
		s.runtimeACLs(w, r, path[1:])
	case path[0] == "backends" && len(path) >= 3 && path[2] == "servers":
		s.runtimeServers(w, r, path[1], path[3:])
	case strings.HasPrefix(path[0], "ssl_") && s.atLeast32():
		s.runtimeSSL(w, r, path)
	default:
		notFound(w, r)
	}
}

// socket is the path that messages about the running process begin with.
func (s *Server) socket() string {
	return filepath.Join(filepath.Dir(s.opts.Layout.ConfigPath()), "master.sock")
}

// exec sends a command and tells errors from answers by their severity, as far
// as HAProxy gives one. Kind, if not nil, is what such an error means.
func (s *Server) exec(command string, kind error) (string, error) {
	out, err := s.proc.command(command)
	if err == nil && len(out) > 4 && out[0] == '[' && strings.ContainsRune("0123", rune(out[1])) && out[2:4] == "]:" {
		err = fmt.Errorf("[%c] %s [%s]", out[1], out[4:], command)
	}
	if err != nil && kind != nil {
		err = fmt.Errorf("%s %w", err.Error(), kind)
	}
	if err != nil {
		return "", fmt.Errorf("%s %w", s.socket(), err)
	}
	return out, nil
}

// expect sends a command whose answer has to hold some words.
func (s *Server) expect(command string, words ...string) error {
	out, err := s.exec(command, clienterrors.ErrGeneral)
	if err != nil {
		return err
	}
	for _, word := range words {
		if strings.Contains(strings.ToLower(out), word) {
			return nil
		}
	}
	return fmt.Errorf("%s %s %w", s.socket(), out, clienterrors.ErrGeneral)
}

// statusOfRuntime is the status for an error about maps, and about ACLs that
// are replaced.
func statusOfRuntime(err error) int {
	switch {
	case errors.Is(err, clienterrors.ErrAlreadyExists):
		return http.StatusConflict
	case errors.Is(err, clienterrors.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, clienterrors.ErrGeneral):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// did records a change of the running process and answers.
func (s *Server) did(w http.ResponseWriter, status int, body any, what ...string) {
	s.actions = append(s.actions, strings.Join(what, " "))
	send(w, status, body)
}

// decode reads a JSON body, or answers that there is none.
func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	body, _ := io.ReadAll(r.Body)
	if len(body) == 0 {
		failRequired(w, "data in body")
		return false
	}
	if err := json.Unmarshal(body, into); err != nil {
		failf(w, http.StatusBadRequest, "parsing data body from %q failed, because %s", "", err)
		return false
	}
	return true
}

func (s *Server) processInfo(w http.ResponseWriter) {
	info := map[string]any{}
	out, err := s.exec("show info typed", nil)
	for line := range strings.Lines(out) {
		// 5.Pid.1:CGS:u32:1234
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.SplitN(value, ":", 3)
		name := strings.Split(key, ".")
		if len(fields) != 3 || len(name) < 2 {
			continue
		}
		switch name[1] {
		case "Version":
			info["version"] = fields[2]
		case "Pid":
			info["pid"], _ = strconv.Atoi(fields[2])
		case "Uptime_sec":
			info["uptime"], _ = strconv.Atoi(fields[2])
		}
	}
	answer := map[string]any{"info": info, "runtimeAPI": s.socket()}
	if err != nil {
		answer["error"] = err.Error()
	}
	reply(w, http.StatusOK, answer)
}

func (s *Server) runtimeServers(w http.ResponseWriter, r *http.Request, backend string, rest []string) {
	switch {
	case len(rest) == 0 && r.Method == http.MethodGet:
		servers, err := s.serversOf(backend)
		if err != nil {
			failError(w, err)
			return
		}
		reply(w, http.StatusOK, servers)
	case len(rest) == 0 && r.Method == http.MethodPost:
		s.addServer(w, r, backend)
	case len(rest) == 0:
		notAllowed(w, r, http.MethodGet, http.MethodPost)
	case len(rest) > 1:
		notFound(w, r)
	case r.Method == http.MethodGet || r.Method == http.MethodPut || r.Method == http.MethodDelete:
		srv, err := s.serverOf(backend, rest[0])
		if err != nil {
			failError(w, err)
			return
		}
		switch r.Method {
		case http.MethodGet:
			reply(w, http.StatusOK, srv)
		case http.MethodPut:
			s.setServer(w, r, backend, srv)
		default:
			s.deleteServer(w, backend, srv)
		}
	default:
		notAllowed(w, r, http.MethodDelete, http.MethodGet, http.MethodPut)
	}
}

// serversOf lists the servers of a backend. Whatever goes wrong, the API has not
// found any; so it does of all with an HAProxy before 2.7, whose answer it
// cannot read.
func (s *Server) serversOf(backend string) ([]*models.RuntimeServer, error) {
	out, err := s.exec("show servers state "+backend, nil)
	if first, _, _ := strings.Cut(out, "\n"); err != nil || strings.TrimSpace(first) != "1" {
		return nil, fmt.Errorf("no data for %s: %w", backend, clienterrors.ErrNotFound)
	}
	return parseServers(out), nil
}

func (s *Server) serverOf(backend, name string) (*models.RuntimeServer, error) {
	servers, _ := s.serversOf(backend)
	for _, srv := range servers {
		if srv.Name == name {
			return srv, nil
		}
	}
	return nil, fmt.Errorf("no data for %s/%s: %w", backend, name, clienterrors.ErrNotFound)
}

// parseServers reads the answer to "show servers state" (management manual,
// section 9.3).
func parseServers(out string) []*models.RuntimeServer {
	servers := []*models.RuntimeServer{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 19 || f[0] == "#" {
			continue
		}
		srv := &models.RuntimeServer{Name: f[3], Address: f[4], ID: f[2]}
		if port, err := strconv.ParseInt(f[18], 10, 64); err == nil {
			srv.Port = &port
		}
		srv.AdminState, _ = misc.GetServerAdminState(f[6])
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

// setServer changes the states of a server, the only things that the API of 3.2
// takes here.
func (s *Server) setServer(w http.ResponseWriter, r *http.Request, backend string, now *models.RuntimeServer) {
	var data models.RuntimeServer
	if !decode(w, r, &data) {
		return
	}
	full := backend + "/" + now.Name
	if data.OperationalState != "" && data.OperationalState != now.OperationalState {
		if _, err := s.exec("set server "+full+" health "+data.OperationalState, nil); err != nil {
			failError(w, err)
			return
		}
	}
	if data.AdminState != "" && data.AdminState != now.AdminState {
		if _, err := s.exec("set server "+full+" state "+data.AdminState, nil); err != nil {
			failError(w, err)
			return
		}
	}
	after, err := s.serverOf(backend, now.Name)
	if err != nil {
		failError(w, err)
		return
	}
	s.did(w, http.StatusOK, after, "set server", full, data.AdminState+data.OperationalState)
}

// deleteServer puts a server into maintenance and removes it.
func (s *Server) deleteServer(w http.ResponseWriter, backend string, srv *models.RuntimeServer) {
	full := backend + "/" + srv.Name
	var err error
	if srv.AdminState != "maint" {
		_, err = s.exec("disable server "+full, nil)
	}
	if err == nil {
		_, err = s.exec("del server "+full, nil)
	}
	if err != nil {
		failError(w, err)
		return
	}
	s.did(w, http.StatusNoContent, nil, "del server", full)
}
