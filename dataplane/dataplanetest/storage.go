package dataplanetest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/haproxytech/client-native/v6/configuration"
	"github.com/haproxytech/client-native/v6/models"
)

// storage answers below storage/.
func (s *Server) storage(w http.ResponseWriter, r *http.Request, name string, rest []string) {
	st := s.store(name)
	if st == nil || len(rest) > 1 || name == "ssl_crt_lists" && !s.atLeast32() {
		notFound(w, r)
		return
	}
	defer func() {
		if p := recover(); p != nil { // client-native's storage, of an empty crt-list
			w.WriteHeader(http.StatusInternalServerError)
		}
	}()
	if len(rest) == 0 {
		switch r.Method {
		case http.MethodGet:
			s.listFiles(w, st)
		case http.MethodPost:
			s.createFile(w, r, st)
		default:
			notAllowed(w, r, http.MethodGet, http.MethodPost)
		}
		return
	}
	file, err := url.PathUnescape(rest[0])
	if err != nil {
		notFound(w, r)
		return
	}
	switch r.Method {
	case http.MethodGet:
		s.getFile(w, st, file)
	case http.MethodPut:
		s.replaceFile(w, r, st, file)
	case http.MethodDelete:
		s.deleteFile(w, r, st, file)
	default:
		notAllowed(w, r, http.MethodDelete, http.MethodGet, http.MethodPut)
	}
}

// failStorage answers with an error of a storage.
func (s *Server) failStorage(w http.ResponseWriter, err error) {
	fail(w, statusOf(err), s.shown(err.Error()))
}

// description is what the API writes to each file.
func (st *store) description() string {
	switch st.name {
	case "maps":
		return "managed map file"
	case "ssl_certificates":
		return "managed SSL file"
	case "ssl_crt_lists":
		return "managed certificate list"
	}
	return "managed general use file"
}

// info is what the API tells of a file, whatever its kind: the fields are the
// same in all models.
func (st *store) info(name string, size *int64) models.GeneralFile {
	return models.GeneralFile{Description: st.description(), File: st.path(name), StorageName: name, Size: size}
}

func (s *Server) listFiles(w http.ResponseWriter, st *store) {
	files, err := st.GetAll()
	if err != nil {
		s.failStorage(w, err)
		return
	}
	list := []models.GeneralFile{}
	for _, file := range files {
		list = append(list, st.info(filepath.Base(file), nil))
	}
	reply(w, http.StatusOK, list)
}

// getFile sends the content; of a certificate it tells only what is in it.
func (s *Server) getFile(w http.ResponseWriter, st *store, name string) {
	path, size, err := st.Get(name)
	if err != nil {
		s.failStorage(w, err)
		return
	}
	if st.name == "ssl_certificates" {
		s.sendCertificate(w, http.StatusOK, st, filepath.Base(path), size)
		return
	}
	content, err := st.read(filepath.Base(path))
	if err != nil {
		s.failStorage(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(content)
}

func (s *Server) sendCertificate(w http.ResponseWriter, status int, st *store, name string, size int64) {
	info, err := st.certificateInfo(name, size)
	if err != nil {
		s.failStorage(w, err)
		return
	}
	reply(w, status, info)
}

func (st *store) certificateInfo(name string, size int64) (*models.SslCertificate, error) {
	info, err := st.GetCertificatesInfo(name)
	if err != nil {
		return nil, err
	}
	cert := &models.SslCertificate{
		File: st.path(name), Description: st.description(), StorageName: name, Size: &size,
		Issuers: info.Issuers, Domains: info.DNS, IPAddresses: info.IPs, Subject: info.Subject, Serial: info.Serial,
	}
	setTime(&cert.NotAfter, info.NotAfter)
	setTime(&cert.NotBefore, info.NotBefore)
	return cert, nil
}

// setTime sets a field to a time that it has a type of its own for.
func setTime(field any, t *time.Time) {
	f := reflect.ValueOf(field).Elem()
	f.Set(reflect.ValueOf(t).Convert(f.Type()))
}

func (s *Server) createFile(w http.ResponseWriter, r *http.Request, st *store) {
	name, content, ok := uploaded(w, r)
	if !ok {
		return
	}
	path, size, err := st.Create(name, io.NopCloser(bytes.NewReader(content)))
	if err != nil {
		s.failStorage(w, err)
		return
	}
	name = filepath.Base(path)
	info := st.info(name, &size)
	switch st.name {
	case "ssl_certificates":
		s.certificateStored(w, r, st, name, content, true)
	case "ssl_crt_lists":
		s.finish(w, r, http.StatusCreated, info)
	case "maps":
		info.Description = "managed but not loaded map file (no runtime ID)"
		reply(w, http.StatusCreated, info)
	default:
		reply(w, http.StatusCreated, info)
	}
}

// certificateStored has the running process use a certificate, by a reload
// where there is no other way.
func (s *Server) certificateStored(w http.ResponseWriter, r *http.Request, st *store, name string, content []byte, created bool) {
	status, what := http.StatusOK, "set ssl cert "+name
	if created {
		status, what = http.StatusCreated, "new ssl cert "+name
	}
	info, err := st.certificateInfo(name, int64(len(content)))
	switch {
	case err != nil:
		s.failStorage(w, err)
	case flag(r, "skip_reload"):
		reply(w, status, info)
	case !flag(r, "force_reload") && s.atLeast32() && s.swap(st.path(name), content, created) == nil:
		s.actions = append(s.actions, what)
		reply(w, status, info)
	default:
		s.finish(w, r, status, info)
	}
}

func (s *Server) replaceFile(w http.ResponseWriter, r *http.Request, st *store, name string) {
	var content []byte
	if st.name == "general" {
		var ok bool
		if _, content, ok = uploaded(w, r); !ok {
			return
		}
	} else if content, _ = io.ReadAll(r.Body); len(content) == 0 {
		failRequired(w, "data in body")
		return
	}
	path, err := st.Replace(name, string(content))
	if err != nil {
		s.failStorage(w, err)
		return
	}
	name = filepath.Base(path)
	size := int64(len(content))
	skip := flag(r, "skip_reload")
	switch {
	case st.name == "ssl_certificates":
		s.certificateStored(w, r, st, name, content, false)
	case st.name == "ssl_crt_lists" && skip:
		reply(w, http.StatusOK, st.info(name, &size))
	case st.name == "ssl_crt_lists":
		s.finish(w, r, http.StatusOK, st.info(name, &size))
	case skip:
		w.WriteHeader(http.StatusNoContent)
	default:
		s.finish(w, r, http.StatusNoContent, nil)
	}
}

// deleteFile refuses where the path stands in the configuration, but does not
// look into crt-lists.
func (s *Server) deleteFile(w http.ResponseWriter, r *http.Request, st *store, name string) {
	path, _, err := st.Get(name)
	if err != nil {
		s.failStorage(w, err)
		return
	}
	file := st.path(filepath.Base(path))
	line := -1
	for text := range strings.Lines(s.engine.memory()) {
		text = strings.TrimSpace(text)
		if strings.Contains(text, file) && !strings.HasPrefix(text, "#") {
			failf(w, http.StatusConflict, "rejecting attempt to delete file %s referenced in haproxy conf at line %d: %s", file, line, text)
			return
		}
		line++
	}
	if err := st.Delete(name); err != nil {
		s.failStorage(w, err)
		return
	}
	if strings.HasPrefix(st.name, "ssl_") && !flag(r, "skip_reload") {
		s.finish(w, r, http.StatusNoContent, nil)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// uploaded reads the file of a form, or answers that there is none.
func uploaded(w http.ResponseWriter, r *http.Request) (name string, content []byte, ok bool) {
	file, header, err := r.FormFile("file_upload")
	if err != nil {
		fail(w, http.StatusBadRequest, fmt.Sprintf("parsing file_upload formData from %q failed, because %s", "", err))
		return "", nil, false
	}
	defer func() { _ = file.Close() }()
	content, err = io.ReadAll(file)
	if err != nil {
		failError(w, configuration.NewConfError(configuration.ErrGeneralError, err.Error()))
		return "", nil, false
	}
	return header.Filename, content, true
}

// atLeast32 reports whether the API is one of 3.2 or later.
func (s *Server) atLeast32() bool {
	return !strings.HasPrefix(s.opts.APIVersion, "v3.0") && !strings.HasPrefix(s.opts.APIVersion, "v3.1")
}
