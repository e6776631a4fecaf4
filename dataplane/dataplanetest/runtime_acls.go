package dataplanetest

import (
	"fmt"
	"net/http"
	"strings"

	clienterrors "github.com/haproxytech/client-native/v6/errors"
	"github.com/haproxytech/client-native/v6/models"
)

// runtimeACLs answers for ACLs of the running process, which are named by an
// identifier that each reload changes.
func (s *Server) runtimeACLs(w http.ResponseWriter, r *http.Request, path []string) {
	switch {
	case len(path) == 0 && r.Method == http.MethodGet:
		list, err := s.loadedACLs()
		if err != nil {
			failError(w, fmt.Errorf("cannot retrieve ACL files: %w", err))
			return
		}
		reply(w, http.StatusOK, list)
	case len(path) == 1 && r.Method == http.MethodGet:
		s.getACL(w, path[0])
	case len(path) < 2:
		notAllowed(w, r, http.MethodGet)
	case path[1] != "entries" || len(path) > 3:
		notFound(w, r)
	case len(path) == 2:
		s.aclEntries(w, r, path[0])
	default:
		s.aclEntry(w, r, path[0], path[2])
	}
}

// withoutSocket is an error of exec as the API has it for ACLs.
func (s *Server) withoutSocket(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s%w", strings.TrimSuffix(strings.TrimPrefix(err.Error(), s.socket()+" "), clienterrors.ErrNotFound.Error()), clienterrors.ErrNotFound)
}

func (s *Server) loadedACLs() (list models.ACLFiles, err error) {
	out, err := s.exec("show acl", clienterrors.ErrNotFound)
	list = models.ACLFiles{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] == "#" {
			continue
		}
		a := &models.ACLFile{ID: f[0], StorageName: strings.Trim(f[1], "()"), Description: strings.Join(f[2:], " ")}
		if _, name, ok := strings.Cut(line, "acl '"); ok && a.StorageName == "" { // of no file: what it looks at
			a.StorageName, _, _ = strings.Cut(name, "' file")
		}
		list = append(list, a)
	}
	return list, s.withoutSocket(err)
}

func (s *Server) getACL(w http.ResponseWriter, id string) {
	list, err := s.loadedACLs()
	for _, a := range list {
		if a.ID == id {
			reply(w, http.StatusOK, a)
			return
		}
	}
	if err == nil {
		err = fmt.Errorf("#%s %w", id, clienterrors.ErrNotFound)
	}
	failError(w, fmt.Errorf("cannot retrieve ACL file for %s: %w", id, err))
}

// entriesOf lists an ACL. One without entries is not found.
func (s *Server) entriesOf(id string) (models.ACLFilesEntries, error) {
	out, err := s.exec("show acl #"+id, clienterrors.ErrNotFound)
	if err != nil {
		return nil, s.withoutSocket(err)
	}
	if out == "" || strings.HasPrefix(out, "Unknown ACL identifier.") {
		return nil, clienterrors.ErrNotFound
	}
	list := models.ACLFilesEntries{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) >= 2 && !strings.HasPrefix(f[0], "#") {
			list = append(list, &models.ACLFileEntry{ID: f[0], Value: f[1]})
		}
	}
	return list, nil
}

func (s *Server) aclEntries(w http.ResponseWriter, r *http.Request, id string) {
	switch r.Method {
	case http.MethodGet:
		list, err := s.entriesOf(id)
		if err != nil {
			failError(w, fmt.Errorf("cannot retrieve ACL files entries for %s: %w", id, err))
			return
		}
		reply(w, http.StatusOK, list)
	case http.MethodPost:
		s.addACLEntry(w, r, id)
	case http.MethodPut:
		s.replaceACL(w, r, id)
	default:
		notAllowed(w, r, http.MethodGet, http.MethodPost, http.MethodPut)
	}
}

// findEntry asks HAProxy what matches a value.
func (s *Server) findEntry(id, value string) (*models.ACLFileEntry, error) {
	out, err := s.exec("get acl #"+id+" "+value, clienterrors.ErrNotFound)
	if err != nil {
		return nil, s.withoutSocket(err)
	}
	var e models.ACLFileEntry
	matched := false
	for part := range strings.SplitSeq(out, ",") {
		name, found, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "pattern":
			e.Value = strings.Trim(found, `"`)
		case "match":
			matched = true
		}
	}
	if e.Value == "" || !matched {
		return nil, fmt.Errorf("%s %w", value, clienterrors.ErrNotFound)
	}
	return &e, nil
}

func (s *Server) addACLEntry(w http.ResponseWriter, r *http.Request, id string) {
	var data models.ACLFileEntry
	if !decode(w, r, &data) {
		return
	}
	if e, _ := s.findEntry(id, data.Value); e != nil {
		failError(w, fmt.Errorf("cannot add ACL files entry for %s: %w", id, clienterrors.ErrAlreadyExists))
		return
	}
	if _, err := s.exec("add acl #"+id+" "+data.Value, clienterrors.ErrGeneral); err != nil {
		text := strings.TrimPrefix(err.Error(), s.socket()+" ")
		failError(w, fmt.Errorf("cannot add ACL files entry for %s: %s", id, text))
		return
	}
	e, err := s.findEntry(id, data.Value)
	if err != nil {
		failError(w, fmt.Errorf("cannot retrieve ACL file entry for %s: %w", id, err))
		return
	}
	s.did(w, http.StatusCreated, e, "add acl", "#"+id, data.Value)
}

// replaceACL replaces all entries at once.
func (s *Server) replaceACL(w http.ResponseWriter, r *http.Request, id string) {
	var data models.ACLFilesEntries
	if !decode(w, r, &data) {
		return
	}
	version, err := s.prepare("acl", id)
	for _, e := range data {
		if err == nil {
			_, err = s.exec("add acl @"+version+" "+id+" "+e.Value, clienterrors.ErrGeneral)
		}
	}
	if err == nil {
		_, err = s.exec("commit acl @"+version+" "+id, clienterrors.ErrGeneral)
	}
	if err != nil {
		failRuntime(w, err)
		return
	}
	s.did(w, http.StatusCreated, data, "commit acl", id, fmt.Sprintf("(%d entries)", len(data)))
}

// aclEntry answers for one entry, by its identifier, which GET takes for a
// value if there is no such one.
func (s *Server) aclEntry(w http.ResponseWriter, r *http.Request, id, key string) {
	switch r.Method {
	case http.MethodGet:
		list, err := s.entriesOf(id)
		if err != nil {
			failError(w, fmt.Errorf("cannot retrieve ACL file entries, cannot list available ACL files: %w", err))
			return
		}
		for _, e := range list {
			if e.ID == key {
				key = e.Value
				break
			}
		}
		e, err := s.findEntry(id, key)
		if err != nil {
			failError(w, fmt.Errorf("cannot retrieve ACL file entry for %s: %w", id, err))
			return
		}
		reply(w, http.StatusOK, e)
	case http.MethodDelete:
		if _, err := s.exec("del acl #"+id+" #"+key, clienterrors.ErrNotFound); err != nil {
			failError(w, fmt.Errorf("cannot delete ACL files entry for %s: %w", id, s.withoutSocket(err)))
			return
		}
		s.did(w, http.StatusNoContent, nil, "del acl", "#"+id, "#"+key)
	default:
		notAllowed(w, r, http.MethodDelete, http.MethodGet)
	}
}
