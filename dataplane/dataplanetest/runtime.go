package dataplanetest

import (
	"crypto/sha1" //nolint:gosec // the fingerprint that HAProxy shows
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/url"
	"strings"

	"github.com/haproxytech/client-native/v6/misc"
)

// process is what stands behind the API: a haproxy, or one who pretends.
type process interface {
	reload() error
	pid() int
	stop()

	action(words []string) error
	servers(backend string) ([]loadedServer, error)
	entries(path string) ([]entry, error)
	addEntry(path, key, value string) error
	setEntry(path, key, value string) error
	deleteEntry(path, key string) error
	swap(path string, content []byte, create bool) error
	fingerprint(path string) (sha1 string, err error)
}

type loadedServer struct {
	Name        string `json:"name"`
	Address     string `json:"address"`
	Port        int    `json:"port"`
	AdminState  string `json:"admin_state"`
	Operational string `json:"operational_state"`
}

type entry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func (s *Server) runtime(w http.ResponseWriter, r *http.Request, path []string) {
	for i := range path {
		path[i], _ = url.PathUnescape(path[i])
	}
	switch {
	case len(path) == 1 && path[0] == "info" && r.Method == http.MethodGet:
		reply(w, http.StatusOK, map[string]any{"info": map[string]any{"pid": s.proc.pid(), "version": "0"}})
	case len(path) >= 3 && path[0] == "maps" && path[2] == "entries":
		s.mapEntries(w, r, s.store("maps").path(misc.SanitizeFilename(path[1])), path[1], path[3:])
	case len(path) == 2 && path[0] == "ssl_certs" && r.Method == http.MethodGet:
		sum, err := s.proc.fingerprint(path[1])
		if err != nil {
			fail(w, http.StatusNotFound, err.Error())
			return
		}
		reply(w, http.StatusOK, map[string]any{"storage_name": path[1], "sha1_finger_print": sum})
	case len(path) == 3 && path[0] == "backends" && path[2] == "servers" && r.Method == http.MethodGet:
		servers, err := s.proc.servers(path[1])
		if err != nil {
			failf(w, http.StatusNotFound, "no data for %s: not found", path[1])
			return
		}
		reply(w, http.StatusOK, servers)
	default:
		failf(w, http.StatusNotFound, "path %s was not found", r.URL.Path)
	}
}

func (s *Server) mapEntries(w http.ResponseWriter, r *http.Request, file, name string, rest []string) {
	entries, err := s.proc.entries(file)
	if err != nil {
		fail(w, http.StatusNotFound, err.Error())
		return
	}
	find := func(key string) bool {
		for _, e := range entries {
			if e.Key == key {
				return true
			}
		}
		return false
	}
	var body entry
	_ = json.NewDecoder(r.Body).Decode(&body)
	// The API pastes key and value into a command line.
	body.Value, _, _ = strings.Cut(body.Value, " ")
	done := func(err error, status int, what string) {
		s.actions = append(s.actions, what)
		switch {
		case err != nil:
			fail(w, http.StatusInternalServerError, err.Error())
		case status == http.StatusNoContent:
			w.WriteHeader(status)
		default:
			reply(w, status, body)
		}
	}
	switch {
	case len(rest) == 0 && r.Method == http.MethodGet:
		reply(w, http.StatusOK, entries)
	case len(rest) == 0 && r.Method == http.MethodPost:
		if find(body.Key) {
			fail(w, http.StatusConflict, "already exists")
			return
		}
		done(s.proc.addEntry(file, body.Key, body.Value), http.StatusCreated, "add map "+name+" "+body.Key+" "+body.Value)
	case len(rest) == 1 && !find(rest[0]):
		failf(w, http.StatusNotFound, "%s not found", rest[0])
	case len(rest) == 1 && r.Method == http.MethodPut:
		body.Key = rest[0]
		done(s.proc.setEntry(file, body.Key, body.Value), http.StatusOK, "set map "+name+" "+body.Key+" "+body.Value)
	case len(rest) == 1 && r.Method == http.MethodDelete:
		done(s.proc.deleteEntry(file, rest[0]), http.StatusNoContent, "del map "+name+" "+rest[0])
	default:
		failf(w, http.StatusMethodNotAllowed, "method %s is not allowed", r.Method)
	}
}

func sha1Of(content []byte) string {
	cert := firstCertificate(content)
	if cert == nil {
		return ""
	}
	sum := sha1.Sum(cert.Raw) //nolint:gosec // see the import
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

func firstCertificate(content []byte) *x509.Certificate {
	block, _ := pem.Decode(content)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return cert
}
