package dataplanetest

import (
	"errors"
	"net/http"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
)

// pattern is an entry of a map or an ACL of the running process.
type pattern struct {
	ID    string `json:"id,omitempty"`
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
}

var errNotFound error = &problem{http.StatusNotFound, "not found"}

func (s *Server) loadedMap(q *request) string {
	return s.opts.Layout.Path(dataplane.Map, mapName(q.PathValue("map")))
}

func (s *Server) listMap(q *request) (int, any, error) {
	out, err := s.exec("show map " + s.loadedMap(q))
	if err != nil || out == "" {
		return 0, nil, errNotFound
	}
	list := []pattern{}
	for _, f := range rows(out, 3) {
		list = append(list, pattern{ID: f[0], Key: f[1], Value: f[2]})
	}
	return http.StatusOK, list, nil
}

// find reads the answer to "get map" or "get acl": `name=value, name="value"`. HAProxy
// answers with the entry that it finds for a key, and that entry may have a different key.
func (s *Server) find(command string) (pattern, error) {
	out, err := s.exec(command)
	found := map[string]string{}
	for part := range strings.SplitSeq(out, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		found[name] = strings.Trim(value, `"`)
	}
	if err != nil || found["key"]+found["pattern"] == "" {
		return pattern{}, errNotFound
	}
	return pattern{Key: found["key"], Value: found["value"] + found["pattern"]}, nil
}

func (s *Server) addMapEntry(q *request) (int, any, error) {
	var data pattern
	if err := q.decode(&data); err != nil {
		return 0, nil, err
	}
	path := s.loadedMap(q)
	if e, _ := s.find("get map " + path + " " + data.Key); e.Key == data.Key {
		return 0, nil, problemf(http.StatusConflict, "already exists")
	}
	// The API pastes key and value into a command line.
	if _, err := s.exec("add map " + path + " " + data.Key + " " + data.Value); err != nil {
		return 0, nil, as(http.StatusBadRequest, err)
	}
	return s.did(http.StatusCreated, data, "add map", q.PathValue("map"), data.Key, data.Value)
}

func (s *Server) setMapEntry(q *request) (int, any, error) {
	var data pattern
	if err := q.decode(&data); err != nil {
		return 0, nil, err
	}
	path, key := s.loadedMap(q), q.PathValue("key")
	if _, err := s.exec("set map " + path + " " + key + " " + data.Value); err != nil {
		return 0, nil, errNotFound
	}
	e, _ := s.find("get map " + path + " " + key)
	if e.Key != key {
		return 0, nil, errNotFound
	}
	return s.did(http.StatusOK, e, "set map", q.PathValue("map"), key, data.Value)
}

func (s *Server) deleteMapEntry(q *request) (int, any, error) {
	if _, err := s.exec("del map " + s.loadedMap(q) + " " + q.PathValue("key")); err != nil {
		return 0, nil, errNotFound
	}
	return s.did(http.StatusNoContent, nil, "del map", q.PathValue("map"), q.PathValue("key"))
}

// listACLs lists the ACLs of the running process. Their names are identifiers that change at
// each reload.
func (s *Server) listACLs(*request) (int, any, error) {
	out, err := s.exec("show acl")
	if err != nil {
		return 0, nil, errNotFound
	}
	list := []map[string]string{}
	for _, f := range rows(out, 3) {
		list = append(list, map[string]string{"id": f[0], "storage_name": strings.Trim(f[1], "()")})
	}
	return http.StatusOK, list, nil
}

// listACL lists the entries of an ACL. Like the API, it does not find an ACL without entries.
func (s *Server) listACL(q *request) (int, any, error) {
	out, err := s.exec("show acl #" + q.PathValue("acl"))
	if err != nil || out == "" || strings.HasPrefix(out, "Unknown ACL identifier.") {
		return 0, nil, errNotFound
	}
	list := []pattern{}
	for _, f := range rows(out, 2) {
		list = append(list, pattern{ID: f[0], Value: f[1]})
	}
	return http.StatusOK, list, nil
}

func (s *Server) addACLEntry(q *request) (int, any, error) {
	var data pattern
	if err := q.decode(&data); err != nil {
		return 0, nil, err
	}
	acl := "#" + q.PathValue("acl") + " "
	if _, err := s.find("get acl " + acl + data.Value); err == nil {
		return 0, nil, errors.New("cannot add ACL files entry: already exists")
	}
	if _, err := s.exec("add acl " + acl + data.Value); err != nil {
		return 0, nil, err
	}
	e, err := s.find("get acl " + acl + data.Value)
	if err != nil {
		return 0, nil, err
	}
	return s.did(http.StatusCreated, e, "add acl", acl+data.Value)
}

func (s *Server) deleteACLEntry(q *request) (int, any, error) {
	entry := "#" + q.PathValue("acl") + " #" + q.PathValue("entry")
	if _, err := s.exec("del acl " + entry); err != nil {
		return 0, nil, errNotFound
	}
	return s.did(http.StatusNoContent, nil, "del acl", entry)
}

// fingerprint reads the fingerprint in HAProxy's description of a certificate.
func fingerprint(out string) string {
	_, rest, _ := strings.Cut(out, "SHA1 FingerPrint: ")
	sum, _, _ := strings.Cut(rest, "\n")
	return sum
}

func (s *Server) getCertificate(q *request) (int, any, error) {
	out, err := s.exec("show ssl cert " + q.PathValue("file"))
	if err != nil || out == "" {
		return 0, nil, errNotFound
	}
	return http.StatusOK, map[string]string{"storage_name": q.PathValue("file"), "sha1_finger_print": fingerprint(out)}, nil
}

// load loads content into the running process, in its own transaction. The last line feed of
// content makes the empty line that ends a payload.
func (s *Server) load(object, content string) error {
	if err := s.expect("set ssl "+object+" <<\n"+content, "transaction"); err != nil {
		return err
	}
	return s.expect("commit ssl "+object, "success!")
}

// loadCertificate makes the running process use a certificate.
func (s *Server) loadCertificate(path string, content []byte, create bool) error {
	if create {
		if err := s.expect("new ssl cert "+path, "new empty certificate store"); err != nil {
			return err
		}
	}
	return s.load("cert "+path, string(content)+"\n")
}

func (s *Server) deleteCertificate(q *request) (int, any, error) {
	if err := s.expect("del ssl cert "+q.PathValue("file"), "deleted!"); err != nil {
		return 0, nil, err
	}
	return s.did(http.StatusNoContent, nil, "del ssl cert", q.PathValue("file"))
}

// setCAFile adds no empty line, unlike loadCertificate: the content has to end in one.
func (s *Server) setCAFile(q *request) (int, any, error) {
	_, content, err := q.uploaded()
	if err == nil {
		err = s.load("ca-file "+q.PathValue("file"), string(content))
	}
	if err != nil {
		return 0, nil, err
	}
	return s.did(http.StatusCreated, nil, "set ssl ca-file", q.PathValue("file"))
}

// addToCrtList forgets the empty line that ends a payload, as the API does.
func (s *Server) addToCrtList(q *request) (int, any, error) {
	var data struct {
		File    string   `json:"file"`
		Options string   `json:"ssl_bind_config"`
		Names   []string `json:"sni_filter"`
	}
	if err := q.decode(&data); err != nil {
		return 0, nil, err
	}
	entry := data.File
	if data.Options != "" {
		entry += " [" + data.Options + "]"
	}
	if len(data.Names) > 0 {
		entry += " " + strings.Join(data.Names, " ")
	}
	list := q.URL.Query().Get("name")
	command := "add ssl crt-list " + list + " "
	if entry != data.File {
		command += "<<\n"
	}
	if err := s.expect(command+entry+"\n", "success"); err != nil {
		return 0, nil, err
	}
	return s.did(http.StatusCreated, nil, "add ssl crt-list", list, entry)
}

func (s *Server) dropFromCrtList(q *request) (int, any, error) {
	entry := q.URL.Query().Get("name") + " " + q.URL.Query().Get("cert_file")
	if err := s.expect("del ssl crt-list "+entry, "deleted in crtlist"); err != nil {
		return 0, nil, errNotFound
	}
	return s.did(http.StatusNoContent, nil, "del ssl crt-list", entry)
}
