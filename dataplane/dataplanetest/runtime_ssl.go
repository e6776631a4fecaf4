package dataplanetest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	clienterrors "github.com/haproxytech/client-native/v6/errors"
	"github.com/haproxytech/client-native/v6/models"
)

// runtimeSSL answers for certificates, CA files and crt-lists of the running
// process.
func (s *Server) runtimeSSL(w http.ResponseWriter, r *http.Request, path []string) {
	switch {
	case path[0] == "ssl_certs" && len(path) <= 2:
		s.sslObject(w, r, "cert", path[1:])
	case path[0] == "ssl_ca_files" && len(path) <= 2:
		s.sslObject(w, r, "ca-file", path[1:])
	case path[0] == "ssl_ca_files" && len(path) == 3 && path[2] == "entries" && r.Method == http.MethodPost:
		s.setSSL(w, r, "ca-file", path[1], "add ssl ca-file", http.StatusCreated)
	case path[0] == "ssl_ca_files" && len(path) == 4 && path[2] == "entries" && r.Method == http.MethodGet:
		s.sendLoaded(w, "ca-file", path[1]+":"+path[3])
	case path[0] == "ssl_crt_lists" && len(path) == 1 && r.Method == http.MethodGet:
		s.listCrtLists(w)
	case path[0] == "ssl_crt_lists" && len(path) == 2 && path[1] == "entries":
		s.crtListEntries(w, r)
	default:
		notFound(w, r)
	}
}

// sslObject answers for certificates and CA files, which differ in a few words.
func (s *Server) sslObject(w http.ResponseWriter, r *http.Request, kind string, path []string) {
	switch {
	case len(path) == 0 && r.Method == http.MethodGet:
		s.listSSL(w, kind)
	case len(path) == 0 && r.Method == http.MethodPost:
		s.newSSL(w, r, kind)
	case len(path) == 0:
		notAllowed(w, r, http.MethodGet, http.MethodPost)
	case r.Method == http.MethodGet && kind == "cert":
		s.sendLoaded(w, kind, path[0])
	case r.Method == http.MethodGet:
		s.getCAFile(w, path[0])
	case r.Method == http.MethodPut && kind == "cert":
		s.setSSL(w, r, kind, path[0], "set ssl cert", http.StatusOK)
	case r.Method == http.MethodPut:
		s.setSSL(w, r, kind, path[0], "set ssl ca-file", http.StatusCreated)
	case r.Method == http.MethodDelete:
		if err := s.expect("del ssl "+kind+" "+path[0], "deleted!"); err != nil {
			failError(w, err)
			return
		}
		s.did(w, http.StatusNoContent, nil, "del ssl", kind, path[0])
	default:
		notAllowed(w, r, http.MethodDelete, http.MethodGet, http.MethodPut)
	}
}

// loadSSL puts content into the running process, by a transaction of its own.
func (s *Server) loadSSL(kind, name, command, content string) error {
	// The payload ends at an empty line. The API adds none to a CA file that
	// replaces another, which has to end in one.
	end := "\n"
	if command == "set ssl ca-file" {
		end = ""
	}
	if err := s.expect(command+" "+name+" <<\n"+content+end, "transaction created", "transaction updated"); err != nil {
		return err
	}
	return s.expect("commit ssl "+kind+" "+name, "success!")
}

// createSSL makes an empty object in the running process.
func (s *Server) createSSL(kind, name string) error {
	return s.expect("new ssl "+kind+" "+name, "new empty certificate store", "new ca file created")
}

// swap has the running process use a certificate from now on.
func (s *Server) swap(path string, content []byte, create bool) error {
	if create {
		if err := s.createSSL("cert", path); err != nil {
			return err
		}
	}
	return s.loadSSL("cert", path, "set ssl cert", string(content))
}

func (s *Server) newSSL(w http.ResponseWriter, r *http.Request, kind string) {
	name, content, ok := uploaded(w, r)
	if !ok {
		return
	}
	err := s.createSSL(kind, name)
	if err == nil {
		err = s.loadSSL(kind, name, "set ssl "+kind, string(content))
	}
	if err != nil {
		failError(w, err)
		return
	}
	s.did(w, http.StatusCreated, nil, "new ssl", kind, name)
}

func (s *Server) setSSL(w http.ResponseWriter, r *http.Request, kind, name, command string, status int) {
	_, content, ok := uploaded(w, r)
	if !ok {
		return
	}
	if err := s.loadSSL(kind, name, command, string(content)); err != nil {
		failError(w, err)
		return
	}
	s.did(w, status, nil, command, name)
}

func (s *Server) listSSL(w http.ResponseWriter, kind string) {
	out, err := s.exec("show ssl "+kind, clienterrors.ErrNotFound)
	if err != nil {
		failError(w, err)
		return
	}
	if kind == "ca-file" {
		reply(w, http.StatusOK, readCAFiles(out))
		return
	}
	list := []*models.SslCertificate{}
	open := false
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "# transaction"):
			open = true
		case strings.HasPrefix(line, "# filename"):
			open = false
		case line != "" && line[0] != '#' && !open:
			list = append(list, &models.SslCertificate{StorageName: line, Description: line[strings.LastIndexByte(line, '/')+1:]})
		}
	}
	reply(w, http.StatusOK, list)
}

func readCAFiles(out string) models.SslCaFiles {
	list := models.SslCaFiles{}
	for line := range strings.Lines(out) {
		name, count, ok := strings.Cut(strings.TrimSpace(line), " - ")
		if ok && name[0] != '#' && name[0] != '*' {
			list = append(list, &models.SslCaFile{StorageName: name, Count: count})
		}
	}
	return list
}

func (s *Server) getCAFile(w http.ResponseWriter, name string) {
	out, err := s.exec("show ssl ca-file", clienterrors.ErrNotFound)
	for _, f := range readCAFiles(out) {
		if f.StorageName == name {
			reply(w, http.StatusOK, f)
			return
		}
	}
	if err == nil {
		err = fmt.Errorf("%s %s %w", s.socket(), name, clienterrors.ErrNotFound)
	}
	failError(w, err)
}

// sendLoaded tells what HAProxy tells of a certificate.
func (s *Server) sendLoaded(w http.ResponseWriter, kind, name string) {
	out, err := s.exec("show ssl "+kind+" "+name, clienterrors.ErrNotFound)
	if err == nil && out == "" {
		err = fmt.Errorf("%s %w", s.socket(), clienterrors.ErrNotFound)
	}
	if err != nil {
		failError(w, err)
		return
	}
	c := &models.SslCertificate{}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ": ")
		switch strings.TrimSpace(key) {
		case "Filename":
			c.StorageName = value
		case "Status":
			c.Status = value
		case "Serial":
			c.Serial = value
		case "notBefore":
			setTime(&c.NotBefore, readTime(value))
		case "notAfter":
			setTime(&c.NotAfter, readTime(value))
		case "Subject Alternative Name":
			c.SubjectAlternativeNames = value
		case "Algorithm":
			c.Algorithm = value
		case "SHA1 FingerPrint":
			c.Sha1FingerPrint = value
		case "Subject":
			c.Subject = value
		case "Issuer":
			c.Issuers = value
		case "Chain Subject":
			c.ChainSubject = value
		case "Chain Issuer":
			c.ChainIssuer = value
		}
	}
	reply(w, http.StatusOK, c)
}

const timeFormat = "Jan 2 15:04:05 2006 MST"

func readTime(text string) *time.Time {
	t, _ := time.Parse(timeFormat, strings.Join(strings.Fields(text), " "))
	return &t
}

func (s *Server) listCrtLists(w http.ResponseWriter) {
	out, err := s.exec("show ssl crt-list", clienterrors.ErrNotFound)
	if err != nil {
		failError(w, err)
		return
	}
	list := models.SslCrtLists{}
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, &models.SslCrtList{File: line})
		}
	}
	reply(w, http.StatusOK, list)
}

func (s *Server) crtListEntries(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	list, cert := query.Get("name"), query.Get("cert_file")
	switch {
	case list == "":
		failRequired(w, "name in query")
	case r.Method == http.MethodGet:
		s.listCrtList(w, list)
	case r.Method == http.MethodPost:
		s.addToCrtList(w, r, list)
	case r.Method != http.MethodDelete:
		notAllowed(w, r, http.MethodDelete, http.MethodGet, http.MethodPost)
	case cert == "":
		failRequired(w, "cert_file in query")
	default:
		entry := cert
		if line := query.Get("line_number"); line != "" {
			entry += ":" + line
		}
		out, err := s.exec("del ssl crt-list "+list+" "+entry, clienterrors.ErrNotFound)
		if err == nil && !strings.Contains(out, "deleted in crtlist") {
			err = fmt.Errorf("%s %s %w", s.socket(), out, clienterrors.ErrGeneral)
		}
		if err != nil {
			failError(w, err)
			return
		}
		s.did(w, http.StatusNoContent, nil, "del ssl crt-list", list, entry)
	}
}

func (s *Server) listCrtList(w http.ResponseWriter, name string) {
	out, err := s.exec("show ssl crt-list -n "+name, clienterrors.ErrNotFound)
	if err == nil && (out == "" || strings.HasPrefix(out, "didn't find the specified filename")) {
		err = fmt.Errorf("%s %w", s.socket(), clienterrors.ErrNotFound)
	}
	if err != nil {
		failError(w, err)
		return
	}
	list := models.SslCrtListEntries{}
	for line := range strings.Lines(out) {
		if e := readCrtListEntry(strings.TrimSpace(line)); e != nil {
			list = append(list, e)
		}
	}
	reply(w, http.StatusOK, list)
}

// readCrtListEntry reads "file:line [options] names".
func readCrtListEntry(line string) *models.SslCrtListEntry {
	first, rest, more := strings.Cut(line, " ")
	if first == "" || first[0] == '#' {
		return nil
	}
	e := &models.SslCrtListEntry{File: first}
	if file, number, ok := strings.Cut(first, ":"); ok {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil
		}
		e.File, e.LineNumber = file, n
	}
	if !more {
		return e
	}
	if strings.HasPrefix(rest, "[") {
		e.SSLBindConfig, rest, _ = strings.Cut(rest[1:], "]")
	}
	e.SNIFilter = strings.Fields(rest)
	return e
}

func (s *Server) addToCrtList(w http.ResponseWriter, r *http.Request, list string) {
	var data models.SslCrtListEntry
	if !decode(w, r, &data) {
		return
	}
	if data.File == "" {
		failError(w, fmt.Errorf("%s Filename empty %w", s.socket(), clienterrors.ErrGeneral))
		return
	}
	entry := data.File
	if data.SSLBindConfig != "" {
		entry += " [" + data.SSLBindConfig + "]"
	}
	if len(data.SNIFilter) > 0 {
		entry += " " + strings.Join(data.SNIFilter, " ")
	}
	command := "add ssl crt-list " + list + " "
	if entry != data.File {
		command += "<<\n"
	}
	if err := s.expect(command+entry+"\n", "success"); err != nil {
		failError(w, err)
		return
	}
	s.did(w, http.StatusCreated, nil, "add ssl crt-list", list, entry)
}
