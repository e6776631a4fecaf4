package dataplanetest

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	clienterrors "github.com/haproxytech/client-native/v6/errors"
	"github.com/haproxytech/client-native/v6/misc"
	"github.com/haproxytech/client-native/v6/models"
)

// maxPayload is the size above which a payload replaces a map, and below which
// it adds to it.
const maxPayload = 8192

func failRuntime(w http.ResponseWriter, err error) { fail(w, statusOfRuntime(err), err.Error()) }

// mapPath is what the API takes a name of a map for: an identifier, or a file
// of its storage.
func (s *Server) mapPath(name string) string {
	if strings.HasPrefix(name, "#") {
		return name
	}
	name = misc.SanitizeFilename(name)
	if filepath.Ext(name) != ".map" {
		name += ".map"
	}
	return s.store("maps").path(name)
}

func (s *Server) runtimeMaps(w http.ResponseWriter, r *http.Request, path []string) {
	switch {
	case len(path) == 0 && r.Method == http.MethodGet:
		s.listMaps(w, r)
	case len(path) == 0:
		notAllowed(w, r, http.MethodGet)
	case len(path) == 1:
		s.runtimeMap(w, r, path[0])
	case path[1] != "entries" || len(path) > 3:
		notFound(w, r)
	case len(path) == 2 && r.Method == http.MethodGet:
		s.listMap(w, s.mapPath(path[0]))
	case len(path) == 2 && r.Method == http.MethodPost:
		s.addMapEntry(w, r, path[0])
	case len(path) == 2:
		notAllowed(w, r, http.MethodGet, http.MethodPost)
	default:
		s.mapEntry(w, r, path[0], path[2])
	}
}

// loadedMaps reads "show map".
func (s *Server) loadedMaps() (list []*models.Map, err error) {
	out, err := s.exec("show map", clienterrors.ErrNotFound)
	list = []*models.Map{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) >= 3 && f[0] != "#" {
			list = append(list, &models.Map{ID: f[0], File: strings.Trim(f[1], "()"), Description: strings.Join(f[2:], " ")})
		}
	}
	return list, err
}

func (s *Server) listMaps(w http.ResponseWriter, r *http.Request) {
	loaded, err := s.loadedMaps()
	if err != nil {
		failRuntime(w, err)
		return
	}
	list := []*models.Map{}
	for _, m := range loaded {
		managed := strings.HasPrefix(filepath.Dir(m.File), s.store("maps").shown)
		if managed {
			m.StorageName = filepath.Base(m.File)
		}
		if managed || flag(r, "include_unmanaged") {
			list = append(list, m)
		}
	}
	reply(w, http.StatusOK, list)
}

// runtimeMap answers for a map as a whole.
func (s *Server) runtimeMap(w http.ResponseWriter, r *http.Request, name string) {
	path := s.mapPath(name)
	switch r.Method {
	case http.MethodGet:
		loaded, err := s.loadedMaps()
		for _, m := range loaded {
			if m.File == path {
				reply(w, http.StatusOK, m)
				return
			}
		}
		if err == nil {
			err = fmt.Errorf("%s %s %w", s.socket(), path, clienterrors.ErrNotFound)
		}
		failRuntime(w, err)
	case http.MethodPut:
		var entries models.MapEntries
		if !decode(w, r, &entries) {
			return
		}
		var lines []string
		for _, e := range entries {
			lines = append(lines, e.Key+" "+e.Value)
		}
		if err := s.payload("map", path, lines); err != nil {
			failRuntime(w, err)
			return
		}
		s.did(w, http.StatusCreated, entries, "add map", name, fmt.Sprintf("(%d entries)", len(lines)))
	case http.MethodDelete:
		if _, err := s.exec("clear map "+path, clienterrors.ErrNotFound); err != nil {
			failRuntime(w, err)
			return
		}
		s.did(w, http.StatusNoContent, nil, "clear map", name)
	default:
		notAllowed(w, r, http.MethodDelete, http.MethodGet, http.MethodPut)
	}
}

// payload adds lines to a map, or replaces it by them if they are many.
func (s *Server) payload(kind, path string, lines []string) error {
	text := strings.Join(lines, "\n") + "\n"
	if len(text) <= maxPayload {
		_, err := s.exec("add "+kind+" "+path+" <<\n"+text+"\n", clienterrors.ErrGeneral)
		return err
	}
	version, err := s.prepare(kind, path)
	if err != nil {
		return err
	}
	for len(lines) > 0 {
		n, size := 0, 0
		for n < len(lines) && (n == 0 || size+len(lines[n]) < maxPayload) {
			size += len(lines[n]) + 1
			n++
		}
		if _, err := s.exec("add "+kind+" @"+version+" "+path+" <<\n"+strings.Join(lines[:n], "\n")+"\n\n", clienterrors.ErrGeneral); err != nil {
			return err
		}
		lines = lines[n:]
	}
	_, err = s.exec("commit "+kind+" @"+version+" "+path, clienterrors.ErrGeneral)
	return err
}

// prepare begins a new version of a map or an ACL.
func (s *Server) prepare(kind, path string) (version string, err error) {
	out, err := s.exec("prepare "+kind+" "+path, clienterrors.ErrGeneral)
	if err != nil {
		return "", err
	}
	i := strings.LastIndexByte(out, ':')
	if i < 0 {
		return "", fmt.Errorf("%s parsing error %w", s.socket(), clienterrors.ErrGeneral)
	}
	return strings.TrimSpace(out[i+1:]), nil
}

func (s *Server) listMap(w http.ResponseWriter, path string) {
	out, err := s.exec("show map "+path, clienterrors.ErrNotFound)
	if err != nil {
		failRuntime(w, err)
		return
	}
	if out == "" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	list := models.MapEntries{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) >= 3 && !strings.HasPrefix(f[0], "#") {
			list = append(list, &models.MapEntry{ID: f[0], Key: f[1], Value: f[2]})
		}
	}
	reply(w, http.StatusOK, list)
}

// getMapEntry reads the answer to "get map", in which HAProxy tells what it
// finds for a key, which need not be that key.
func (s *Server) getMapEntry(path, key string) (*models.MapEntry, error) {
	out, err := s.exec("get map "+path+" "+key, clienterrors.ErrNotFound)
	if err != nil {
		return nil, err
	}
	var e models.MapEntry
	for part := range strings.SplitSeq(out, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "key":
			e.Key = strings.Trim(value, `"`)
		case "value":
			e.Value = strings.Trim(value, `"`)
		}
	}
	if e.Key != key || e.Value == "" {
		return nil, fmt.Errorf("%s %s %w", s.socket(), key, clienterrors.ErrNotFound)
	}
	return &e, nil
}

func (s *Server) addMapEntry(w http.ResponseWriter, r *http.Request, name string) {
	var data models.MapEntry
	if !decode(w, r, &data) {
		return
	}
	path := s.mapPath(name)
	if e, _ := s.getMapEntry(path, data.Key); e != nil {
		failRuntime(w, fmt.Errorf("%s %w", s.socket(), clienterrors.ErrAlreadyExists))
		return
	}
	// The API pastes key and value into a command line.
	if _, err := s.exec("add map "+path+" "+data.Key+" "+data.Value, clienterrors.ErrGeneral); err != nil {
		failRuntime(w, err)
		return
	}
	s.did(w, http.StatusCreated, data, "add map", name, data.Key, data.Value)
}

func (s *Server) mapEntry(w http.ResponseWriter, r *http.Request, name, key string) {
	path := s.mapPath(name)
	switch r.Method {
	case http.MethodGet:
		e, err := s.getMapEntry(path, key)
		if err != nil {
			failRuntime(w, err)
			return
		}
		reply(w, http.StatusOK, e)
	case http.MethodPut:
		var data models.MapEntry
		if !decode(w, r, &data) {
			return
		}
		if _, err := s.exec("set map "+path+" "+key+" "+data.Value, clienterrors.ErrNotFound); err != nil {
			failRuntime(w, err)
			return
		}
		e, err := s.getMapEntry(path, key)
		if err != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		s.did(w, http.StatusOK, e, "set map", name, key, data.Value)
	case http.MethodDelete:
		if _, err := s.exec("del map "+path+" "+key, clienterrors.ErrNotFound); err != nil {
			failRuntime(w, err)
			return
		}
		s.did(w, http.StatusNoContent, nil, "del map", name, key)
	default:
		notAllowed(w, r, http.MethodDelete, http.MethodGet, http.MethodPut)
	}
}
