package dataplanetest

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest/internal/pretender"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// kinds returns the kinds of files that have a storage. CA files and crt-lists are general
// files.
func kinds() []dataplane.FileKind {
	return []dataplane.FileKind{dataplane.Map, dataplane.Certificate, dataplane.General}
}

// names returns the names of all files, sorted.
func (s *Server) names(kind dataplane.FileKind) (names []string, err error) {
	entries, err := os.ReadDir(s.disk.Dir(kind))
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// toLoad returns what a starting process finds.
func (s *Server) toLoad() pretender.Load {
	l := pretender.Load{Text: s.diskText(), Files: map[string][]byte{}}
	for _, kind := range kinds() {
		names, err := s.names(kind)
		for _, name := range names {
			content, failed := os.ReadFile(s.disk.Path(kind, name))
			l.Files[s.opts.Layout.Path(kind, name)] = content
			err = errors.Join(err, failed)
		}
		if err != nil {
			s.report(err)
		}
	}
	return l
}

var unsafeInName = regexp.MustCompile(`[^a-zA-Z0-9_\\-]+`)

// sanitised returns the name that a storage gives to a file.
func sanitised(name string) string {
	extension := filepath.Ext(name)
	name = unsafeInName.ReplaceAllString(filepath.Clean(strings.TrimSuffix(name, extension)), "_")
	if extension == "" {
		return name
	}
	return name + "." + unsafeInName.ReplaceAllString(extension[1:], "_")
}

// mapName returns the name that the storage gives to a map.
func mapName(name string) string { return strings.TrimSuffix(sanitised(name), ".map") + ".map" }

// read reads the file that a request names.
func (s *Server) read(q *request, kind dataplane.FileKind) (name string, content []byte, err error) {
	name = sanitised(q.PathValue("file"))
	content, err = os.ReadFile(s.disk.Path(kind, name))
	if os.IsNotExist(err) {
		err = problemf(http.StatusNotFound, "missing object: file %s doesn't exist in dir: %s", name, s.opts.Layout.Dir(kind))
	}
	return name, content, err
}

// fileInfo is the description of a file by the API. For a certificate it has more fields.
type fileInfo struct {
	StorageName string `json:"storage_name"`
	Size        *int   `json:"size,omitempty"`
	NotAfter    string `json:"not_after,omitempty"`
	Serial      string `json:"serial,omitempty"`
}

// infoOf returns the description of a file by the API.
func infoOf(kind dataplane.FileKind, name string, content []byte) fileInfo {
	size := len(content)
	info := fileInfo{StorageName: name, Size: &size}
	if kind != dataplane.Certificate {
		return info
	}
	var end time.Time // of the certificate that ends first
	for block := range haproxycfg.Blocks(content) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		if end.IsZero() || c.NotAfter.Before(end) {
			end = c.NotAfter
		}
		if info.Serial == "" {
			info.Serial = c.SerialNumber.String()
		}
	}
	info.NotAfter = end.UTC().Format("2006-01-02T15:04:05.000Z")
	return info
}

// checkCertificate refuses a file without a certificate, or without a key of a
// kind that the storage knows.
func checkCertificate(content []byte) error {
	pair, err := tls.X509KeyPair(content, content)
	if _, edwards := pair.PrivateKey.(ed25519.PrivateKey); edwards {
		err = errors.New("file should contain both certificate and private key")
	}
	return err
}

// listFiles lists the files of a storage. The storage of certificates skips files that are
// not a certificate with its key.
func (s *Server) listFiles(_ *request, kind dataplane.FileKind) (int, any, error) {
	names, err := s.names(kind)
	list := []fileInfo{}
	for _, name := range names {
		if kind == dataplane.Certificate {
			if content, err := os.ReadFile(s.disk.Path(kind, name)); err != nil || checkCertificate(content) != nil {
				continue
			}
		}
		list = append(list, fileInfo{StorageName: name})
	}
	return http.StatusOK, list, err
}

// getFile sends the content of a file. For a certificate it sends only a description.
func (s *Server) getFile(q *request, kind dataplane.FileKind) (int, any, error) {
	name, content, err := s.read(q, kind)
	if kind == dataplane.Certificate {
		return http.StatusOK, infoOf(kind, name, content), err
	}
	return http.StatusOK, content, err
}

func (s *Server) createFile(q *request, kind dataplane.FileKind) (int, any, error) {
	name, content, err := q.uploaded()
	if err != nil {
		return 0, nil, err
	}
	name = sanitised(name)
	if kind == dataplane.Map {
		name = mapName(name)
	}
	if _, err := os.Stat(s.disk.Path(kind, name)); err == nil {
		return 0, nil, problemf(http.StatusConflict, "object already exists: file %s already exists", name)
	}
	err = s.writeFile(kind, name, content)
	if err != nil || kind != dataplane.Certificate {
		return http.StatusCreated, infoOf(kind, name, content), err
	}
	return s.certificateStored(q, name, content, http.StatusCreated)
}

func (s *Server) writeFile(kind dataplane.FileKind, name string, content []byte) error {
	if kind == dataplane.Certificate {
		if err := checkCertificate(content); err != nil {
			return err
		}
	}
	return os.WriteFile(s.disk.Path(kind, name), content, 0o644)
}

// certificateStored makes the running process use a certificate, by a reload if there is no
// other way.
func (s *Server) certificateStored(q *request, name string, content []byte, status int) (int, any, error) {
	info, created := infoOf(dataplane.Certificate, name, content), status == http.StatusCreated
	if q.flag("skip_reload") {
		return status, info, nil
	}
	if q.flag("force_reload") || !s.atLeast32() || s.loadCertificate(s.opts.Layout.Path(dataplane.Certificate, name), content, created) != nil {
		return s.reloaded(q, status, info)
	}
	if created {
		return s.did(status, info, "new ssl cert", name)
	}
	return s.did(status, info, "set ssl cert", name)
}

func (s *Server) replaceFile(q *request, kind dataplane.FileKind) (int, any, error) {
	var content []byte
	var err error
	if kind == dataplane.General {
		_, content, err = q.uploaded()
	} else {
		content, err = q.content()
	}
	if err != nil {
		return 0, nil, err
	}
	name, _, err := s.read(q, kind)
	if err == nil {
		err = s.writeFile(kind, name, content)
	}
	switch {
	case err != nil:
		return 0, nil, err
	case kind == dataplane.Certificate:
		return s.certificateStored(q, name, content, http.StatusOK)
	case q.flag("skip_reload"):
		return http.StatusNoContent, nil, nil
	}
	return s.reloaded(q, http.StatusNoContent, nil)
}

// deleteFile refuses to delete a file whose path stands in the configuration. It does not
// look into crt-lists.
func (s *Server) deleteFile(q *request, kind dataplane.FileKind) (int, any, error) {
	name, _, err := s.read(q, kind)
	if err != nil {
		return 0, nil, err
	}
	path := s.opts.Layout.Path(kind, name)
	for line := range strings.Lines(s.memory) {
		if strings.Contains(line, path) && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			return 0, nil, problemf(http.StatusConflict, "rejecting attempt to delete file %s referenced in haproxy conf: %s", path, line)
		}
	}
	if err := os.Remove(s.disk.Path(kind, name)); err != nil {
		return 0, nil, err
	}
	if kind == dataplane.Certificate && !q.flag("skip_reload") {
		return s.reloaded(q, http.StatusNoContent, nil)
	}
	return http.StatusNoContent, nil, nil
}
