package dataplanetest

import (
	"fmt"
	"net/http"
	"strings"
)

// pattern is an entry of a map or an ACL of the running process.
type pattern struct {
	ID    string `json:"id,omitempty"`
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
}

// mapPath is what the API takes a name of a map for: an identifier, or a file
// of its storage.
func (s *Server) mapPath(name string) string {
	if strings.HasPrefix(name, "#") {
		return name
	}
	st := s.store("maps")
	return st.path(st.fileName(name))
}

func (s *Server) listMap(q *request) (answer, error) {
	out, err := s.execAs("show map "+s.mapPath(q.args[0]), errNotFound)
	if err != nil || out == "" {
		return answer{status: http.StatusNotFound}, err
	}
	list := []pattern{}
	for _, f := range rows(out, 3) {
		list = append(list, pattern{ID: f[0], Key: f[1], Value: f[2]})
	}
	return answer{status: http.StatusOK, body: list}, nil
}

// findMapEntry reads the answer to "get map", in which HAProxy tells what it
// finds for a key, which need not be that key.
func (s *Server) findMapEntry(path, key string) (*pattern, error) {
	out, err := s.execAs("get map "+path+" "+key, errNotFound)
	if err != nil {
		return nil, err
	}
	found := facts(out)
	if found["key"] != key || found["value"] == "" {
		return nil, s.runtimeError(key, errNotFound)
	}
	return &pattern{Key: key, Value: found["value"]}, nil
}

// facts reads `name=value, name="value"`.
func facts(out string) map[string]string {
	found := map[string]string{}
	for part := range strings.SplitSeq(out, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		found[name] = strings.Trim(value, `"`)
	}
	return found
}

func (s *Server) addMapEntry(q *request) (answer, error) {
	var data pattern
	if err := q.decode(&data); err != nil {
		return answer{}, err
	}
	path := s.mapPath(q.args[0])
	if e, _ := s.findMapEntry(path, data.Key); e != nil {
		return answer{}, fmt.Errorf("%s %w", s.socket(), errExists)
	}
	// The API pastes key and value into a command line.
	if _, err := s.execAs("add map "+path+" "+data.Key+" "+data.Value, errGeneral); err != nil {
		return answer{}, err
	}
	return s.did(http.StatusCreated, data, "add map", q.args[0], data.Key, data.Value)
}

func (s *Server) getMapEntry(q *request) (answer, error) {
	e, err := s.findMapEntry(s.mapPath(q.args[0]), q.args[1])
	return answer{status: http.StatusOK, body: e}, err
}

func (s *Server) setMapEntry(q *request) (answer, error) {
	var data pattern
	if err := q.decode(&data); err != nil {
		return answer{}, err
	}
	path, key := s.mapPath(q.args[0]), q.args[1]
	if _, err := s.execAs("set map "+path+" "+key+" "+data.Value, errNotFound); err != nil {
		return answer{}, err
	}
	e, err := s.findMapEntry(path, key)
	if err != nil {
		return answer{status: http.StatusNotFound}, nil
	}
	return s.did(http.StatusOK, e, "set map", q.args[0], key, data.Value)
}

func (s *Server) deleteMapEntry(q *request) (answer, error) {
	if _, err := s.execAs("del map "+s.mapPath(q.args[0])+" "+q.args[1], errNotFound); err != nil {
		return answer{}, err
	}
	return s.did(http.StatusNoContent, nil, "del map", q.args[0], q.args[1])
}

// aclError is an error about ACLs, in which the API leaves out the socket.
func (s *Server) aclError(what string, err error) error {
	text := strings.TrimSuffix(strings.TrimPrefix(err.Error(), s.socket()+" "), errNotFound.Error())
	return fmt.Errorf("cannot %s: %s%w", what, text, errNotFound)
}

// listACLs lists the ACLs of the running process, which are named by an
// identifier that each reload changes.
func (s *Server) listACLs(*request) (answer, error) {
	out, err := s.execAs("show acl", errNotFound)
	if err != nil {
		return answer{}, s.aclError("retrieve ACL files", err)
	}
	list := []map[string]string{}
	for _, f := range rows(out, 3) {
		name, description := strings.Trim(f[1], "()"), strings.Join(f[2:], " ")
		if _, of, ok := strings.Cut(description, "acl '"); ok && name == "" { // of no file: what it looks at
			name, _, _ = strings.Cut(of, "' file")
		}
		list = append(list, map[string]string{"id": f[0], "storage_name": name, "description": description})
	}
	return answer{status: http.StatusOK, body: list}, nil
}

// listACL lists an ACL. One without entries is not found.
func (s *Server) listACL(q *request) (answer, error) {
	out, err := s.execAs("show acl #"+q.args[0], errNotFound)
	if err == nil && (out == "" || strings.HasPrefix(out, "Unknown ACL identifier.")) {
		err = errNotFound
	}
	if err != nil {
		return answer{}, s.aclError("retrieve ACL files entries for "+q.args[0], err)
	}
	list := []pattern{}
	for _, f := range rows(out, 2) {
		list = append(list, pattern{ID: f[0], Value: f[1]})
	}
	return answer{status: http.StatusOK, body: list}, nil
}

// findACLEntry asks HAProxy what matches a value.
func (s *Server) findACLEntry(id, value string) (*pattern, error) {
	out, err := s.execAs("get acl #"+id+" "+value, errNotFound)
	if err != nil {
		return nil, err
	}
	found := facts(out)
	if _, matched := found["match"]; !matched || found["pattern"] == "" {
		return nil, s.runtimeError(value, errNotFound)
	}
	return &pattern{Value: found["pattern"]}, nil
}

func (s *Server) addACLEntry(q *request) (answer, error) {
	var data pattern
	if err := q.decode(&data); err != nil {
		return answer{}, err
	}
	id := q.args[0]
	if e, _ := s.findACLEntry(id, data.Value); e != nil {
		return answer{}, fmt.Errorf("cannot add ACL files entry for %s: %w", id, errExists)
	}
	if _, err := s.execAs("add acl #"+id+" "+data.Value, errGeneral); err != nil {
		return answer{}, fmt.Errorf("cannot add ACL files entry for %s: %s", id, strings.TrimPrefix(err.Error(), s.socket()+" "))
	}
	e, err := s.findACLEntry(id, data.Value)
	if err != nil {
		return answer{}, s.aclError("retrieve ACL file entry for "+id, err)
	}
	return s.did(http.StatusCreated, e, "add acl", "#"+id, data.Value)
}

func (s *Server) deleteACLEntry(q *request) (answer, error) {
	id, entry := q.args[0], q.args[1]
	if _, err := s.execAs("del acl #"+id+" #"+entry, errNotFound); err != nil {
		return answer{}, s.aclError("delete ACL files entry for "+id, err)
	}
	return s.did(http.StatusNoContent, nil, "del acl", "#"+id, "#"+entry)
}
