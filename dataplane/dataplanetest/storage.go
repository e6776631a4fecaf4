package dataplanetest

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

func (s *Server) storage(w http.ResponseWriter, r *http.Request, storage string, rest []string) {
	if len(rest) == 0 {
		switch r.Method {
		case http.MethodGet:
			s.listFiles(w, storage)
		case http.MethodPost:
			s.createFile(w, r, storage)
		default:
			failf(w, http.StatusMethodNotAllowed, "method %s is not allowed", r.Method)
		}
		return
	}
	name, err := url.PathUnescape(rest[0])
	if err != nil || len(rest) > 1 {
		fail(w, http.StatusNotFound, "path was not found")
		return
	}
	name = sanitise(name)
	content, ok := s.files[storage][name]
	if !ok {
		failf(w, http.StatusNotFound, "file %s doesn't exist in dir: %s", name, path.Dir(s.pathOf(storage, name)))
		return
	}
	switch {
	case r.Method == http.MethodGet && storage == "ssl_certificates":
		reply(w, http.StatusOK, s.certificateInfo(name, content))
	case r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(content)
	case r.Method == http.MethodPut:
		s.replaceFile(w, r, storage, name)
	case r.Method == http.MethodDelete:
		s.deleteFile(w, r, storage, name)
	default:
		failf(w, http.StatusMethodNotAllowed, "method %s is not allowed", r.Method)
	}
}

func (s *Server) listFiles(w http.ResponseWriter, storage string) {
	list := []map[string]any{}
	var names []string
	for name := range s.files[storage] {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		list = append(list, map[string]any{"file": s.pathOf(storage, name), "storage_name": name})
	}
	reply(w, http.StatusOK, list)
}

func (s *Server) certificateInfo(name string, content []byte) map[string]any {
	info := map[string]any{"file": s.pathOf("ssl_certificates", name), "storage_name": name, "size": len(content)}
	if cert := firstCertificate(content); cert != nil {
		info["serial"] = cert.SerialNumber.String()
		info["subject"] = cert.Subject.CommonName
	}
	return info
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

func (s *Server) createFile(w http.ResponseWriter, r *http.Request, storage string) {
	name, content, err := uploaded(r)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	name = sanitise(name)
	if storage == "maps" && !strings.HasSuffix(name, ".map") {
		name += ".map"
	}
	if _, ok := s.files[storage][name]; ok {
		failf(w, http.StatusConflict, "file %s already exists", s.pathOf(storage, name))
		return
	}
	if storage == "ssl_certificates" {
		if err := checkPEM(content); err != nil {
			fail(w, http.StatusInternalServerError, err.Error())
			return
		}
	}
	s.store(storage, name, content)
	info := map[string]any{"file": s.pathOf(storage, name), "storage_name": name, "size": len(content)}
	status := http.StatusCreated
	if storage == "ssl_certificates" && !flag(r, "skip_reload") {
		status = s.afterCertificate(w, r, status)
	}
	reply(w, status, info)
}

func (s *Server) replaceFile(w http.ResponseWriter, r *http.Request, storage, name string) {
	var content []byte
	var err error
	if storage == "general" {
		_, content, err = uploaded(r)
	} else {
		content, err = io.ReadAll(r.Body)
	}
	switch {
	case err != nil:
		fail(w, http.StatusBadRequest, err.Error())
		return
	case len(content) == 0 && storage != "general":
		fail(w, http.StatusUnprocessableEntity, "data in body is required")
		return
	}
	if storage == "ssl_certificates" {
		if err := checkPEM(content); err != nil {
			fail(w, http.StatusInternalServerError, err.Error())
			return
		}
	}
	s.store(storage, name, content)
	if storage != "ssl_certificates" {
		w.WriteHeader(s.afterFile(w, r, http.StatusNoContent))
		return
	}
	status := http.StatusOK
	if !flag(r, "skip_reload") && !flag(r, "force_reload") {
		if s.swapsCertificates() && s.proc.swap(s.pathOf(storage, name), content) == nil {
			s.actions = append(s.actions, "set ssl cert "+name)
		} else {
			status = s.afterCertificate(w, r, status)
		}
	}
	reply(w, status, s.certificateInfo(name, content))
}

// swapsCertificates reports whether the API is one of 3.2 or later.
func (s *Server) swapsCertificates() bool {
	return !strings.HasPrefix(s.opts.APIVersion, "v3.0") && !strings.HasPrefix(s.opts.APIVersion, "v3.1")
}

func (s *Server) afterCertificate(w http.ResponseWriter, r *http.Request, status int) int {
	if flag(r, "force_reload") {
		s.reload("")
		return status
	}
	w.Header().Set("Reload-ID", s.schedule())
	return http.StatusAccepted
}

func (s *Server) afterFile(w http.ResponseWriter, r *http.Request, status int) int {
	switch {
	case flag(r, "skip_reload"):
	case flag(r, "force_reload"):
		if _, ok := s.reload(""); !ok {
			return http.StatusBadRequest
		}
	default:
		w.Header().Set("Reload-ID", s.schedule())
		return http.StatusAccepted
	}
	return status
}

// deleteFile refuses where the path stands in the configuration, but does not
// look into crt-lists.
func (s *Server) deleteFile(w http.ResponseWriter, r *http.Request, storage, name string) {
	file := s.pathOf(storage, name)
	line := 0
	for text := range strings.Lines(s.memory) {
		line++
		if strings.Contains(text, file) && !strings.HasPrefix(strings.TrimSpace(text), "#") {
			failf(w, http.StatusConflict, "rejecting attempt to delete file %s referenced in haproxy conf at line %d", file, line)
			return
		}
	}
	s.remove(storage, name)
	if storage == "ssl_certificates" && !flag(r, "skip_reload") {
		w.WriteHeader(s.afterCertificate(w, r, http.StatusNoContent))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func uploaded(r *http.Request) (name string, content []byte, err error) {
	file, header, err := r.FormFile("file_upload")
	if err != nil {
		return "", nil, errors.New("No file_upload form param specified")
	}
	defer func() { _ = file.Close() }()
	content, err = io.ReadAll(file)
	return header.Filename, content, err
}

// sanitise renames a file as the storages do.
func sanitise(name string) string {
	ext := path.Ext(name)
	clean := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
				return r
			}
			return '_'
		}, s)
	}
	stem := clean(strings.TrimSuffix(name, ext))
	if ext == "" {
		return stem
	}
	return stem + "." + clean(ext[1:])
}

// checkPEM refuses what the certificate storage refuses.
func checkPEM(content []byte) error {
	var cert, key bool
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			_, err := x509.ParseCertificate(block.Bytes)
			cert = cert || err == nil
			continue
		}
		if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			key = true
		}
		if _, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
			key = true
		}
		parsed, _ := x509.ParsePKCS8PrivateKey(block.Bytes)
		switch parsed.(type) {
		case *rsa.PrivateKey, *ecdsa.PrivateKey:
			key = true
		}
	}
	switch {
	case !cert:
		return errors.New("failed to parse certificate")
	case !key:
		return errors.New("file should contain both certificate and private key")
	}
	return nil
}
