package dataplanetest

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest/internal/certs"
	"github.com/hapticsdk/haptic/dataplane/dataplanetest/internal/pretender"
)

// store is one of the storages of the API, in a folder.
type store struct {
	name        string // as in the path of the API
	description string // that the API writes to each file
	dir         string // where the files are
	shown       string // where HAProxy finds them, by the layout
}

// openStores makes the storages below a folder.
func (s *Server) openStores(real dataplane.Layout) error {
	for _, st := range []struct {
		kind              dataplane.FileKind
		name, description string
	}{
		{dataplane.Map, "maps", "managed map file"},
		{dataplane.Certificate, "ssl_certificates", "managed SSL file"},
		{dataplane.General, "general", "managed general use file"},
	} {
		if err := os.MkdirAll(real.Dir(st.kind), 0o750); err != nil {
			return err
		}
		s.stores = append(s.stores, &store{st.name, st.description, real.Dir(st.kind), s.opts.Layout.Dir(st.kind)})
	}
	return nil
}

// store returns the storage of that name, which exists.
func (s *Server) store(name string) *store {
	return s.stores[slices.IndexFunc(s.stores, func(st *store) bool { return st.name == name })]
}

// storeOf returns the storage for files of a kind. CA files and crt-lists are
// general files.
func (s *Server) storeOf(kind dataplane.FileKind) *store {
	switch kind {
	case dataplane.Map:
		return s.store("maps")
	case dataplane.Certificate:
		return s.store("ssl_certificates")
	default:
		return s.store("general")
	}
}

// path is where HAProxy finds a file.
func (st *store) path(name string) string { return filepath.Join(st.shown, name) }

// names returns the names of all files, sorted.
func (st *store) names() (names []string, err error) {
	entries, err := os.ReadDir(st.dir)
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// toLoad is what a process that starts finds.
func (s *Server) toLoad() pretender.Load {
	l := pretender.Load{Text: s.diskText()}
	for _, st := range s.stores {
		names, err := st.names()
		for _, name := range names {
			var content []byte
			if content, err = os.ReadFile(filepath.Join(st.dir, name)); err != nil {
				break
			}
			l.Files = append(l.Files, pretender.File{Path: st.path(name), Content: content})
		}
		if err != nil {
			s.report(err)
		}
	}
	return l
}

var unsafeInName = regexp.MustCompile(`[^a-zA-Z0-9_\\-]+`)

// sanitised is the name that a storage gives to a file.
func sanitised(name string) string {
	extension := filepath.Ext(name)
	stem := strings.TrimSuffix(name, extension)
	if stem != "" {
		stem = unsafeInName.ReplaceAllString(filepath.Clean(stem), "_")
	}
	switch {
	case extension == "":
		return stem
	case stem == "":
		return "_" + unsafeInName.ReplaceAllString(extension[1:], "_")
	}
	return stem + "." + unsafeInName.ReplaceAllString(extension[1:], "_")
}

// fileName is the name that a new file gets.
func (st *store) fileName(name string) string {
	name = sanitised(name)
	if st.name == "maps" && !strings.HasSuffix(name, ".map") {
		name += ".map"
	}
	return name
}

// read finds a file that a request names.
func (st *store) read(name string) (file string, content []byte, err error) {
	file = sanitised(name)
	content, err = os.ReadFile(filepath.Join(st.dir, file))
	if os.IsNotExist(err) {
		err = problemf(http.StatusNotFound, "missing object: file %s doesn't exist in dir: %s", file, st.shown)
	}
	return file, content, err
}

// fileInfo is what the API tells of a file; of a certificate there is more.
type fileInfo struct {
	Description string     `json:"description,omitempty"`
	File        string     `json:"file,omitempty"`
	StorageName string     `json:"storage_name,omitempty"`
	Size        *int       `json:"size,omitempty"`
	NotBefore   *timestamp `json:"not_before,omitempty"`
	NotAfter    *timestamp `json:"not_after,omitempty"`
	Issuers     string     `json:"issuers,omitempty"`
	Domains     string     `json:"domains,omitempty"`
	IPAddresses string     `json:"ip_addresses,omitempty"`
	Subject     string     `json:"subject,omitempty"`
	Serial      string     `json:"serial,omitempty"`
}

// info is what the API tells of a file whose content it has at hand.
func (st *store) info(name string, content []byte) fileInfo {
	size := len(content)
	info := fileInfo{Description: st.description, File: st.path(name), StorageName: name, Size: &size}
	list := certs.Read(content)
	if st.name != "ssl_certificates" || len(list) == 0 {
		return info
	}
	var issuers, domains, addresses []string
	var begin, end time.Time // when all are valid
	for _, c := range list {
		if end.IsZero() || c.NotAfter.Before(end) {
			end = c.NotAfter
		}
		if c.NotBefore.After(begin) {
			begin = c.NotBefore
		}
		issuers = append(issuers, c.Issuer.CommonName)
		if c.IsCA {
			continue
		}
		domains = append(append(domains, c.Subject.CommonName), c.DNSNames...)
		for _, ip := range c.IPAddresses {
			addresses = append(addresses, ip.String())
		}
	}
	info.NotBefore, info.NotAfter = (*timestamp)(&begin), (*timestamp)(&end)
	info.Issuers, info.Domains, info.IPAddresses = listed(issuers), listed(domains), listed(addresses)
	if leaf := certs.Leaf(list); leaf != nil {
		info.Subject, info.Serial = leaf.Subject.CommonName, leaf.SerialNumber.String()
	}
	return info
}

// listed joins words, each once. The API has them in any order.
func listed(words []string) string {
	seen := map[string]bool{}
	var once []string
	for _, word := range words {
		if !seen[word] {
			once = append(once, word)
		}
		seen[word] = true
	}
	return strings.Join(once, ", ")
}

// listFiles leaves out what is no certificate with its key where there are
// only such.
func (s *Server) listFiles(_ *request, st *store) (answer, error) {
	names, err := st.names()
	list := []fileInfo{}
	for _, name := range names {
		if st.name == "ssl_certificates" {
			if content, err := os.ReadFile(filepath.Join(st.dir, name)); err != nil || certs.Check(content) != nil {
				continue
			}
		}
		list = append(list, fileInfo{Description: st.description, File: st.path(name), StorageName: name})
	}
	return answer{status: http.StatusOK, body: list}, err
}

// getFile sends the content; of a certificate it tells only what is in it.
func (s *Server) getFile(q *request, st *store) (answer, error) {
	name, content, err := st.read(q.args[0])
	if err == nil && st.name == "ssl_certificates" {
		return answer{status: http.StatusOK, body: st.info(name, content)}, nil
	}
	return answer{status: http.StatusOK, body: content}, err
}

func (s *Server) createFile(q *request, st *store) (answer, error) {
	name, content, err := q.uploaded()
	if err != nil {
		return answer{}, err
	}
	name = st.fileName(name)
	if _, err := os.Stat(filepath.Join(st.dir, name)); err == nil {
		return answer{}, problemf(http.StatusConflict, "object already exists: file %s already exists", st.path(name))
	}
	if err := st.write(name, content); err != nil {
		return answer{}, err
	}
	info := st.info(name, content)
	switch st.name {
	case "ssl_certificates":
		return s.certificateStored(q, info, content, true)
	case "maps":
		info.Description = "managed but not loaded map file (no runtime ID)"
	}
	return answer{status: http.StatusCreated, body: info}, nil
}

func (st *store) write(name string, content []byte) error {
	if st.name == "ssl_certificates" {
		if err := certs.Check(content); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(st.dir, name), content, 0o644)
}

// certificateStored has the running process use a certificate, by a reload
// where there is no other way.
func (s *Server) certificateStored(q *request, info fileInfo, content []byte, created bool) (answer, error) {
	status, what := http.StatusOK, "set ssl cert"
	if created {
		status, what = http.StatusCreated, "new ssl cert"
	}
	switch {
	case q.flag("skip_reload"):
		return answer{status: status, body: info}, nil
	case !q.flag("force_reload") && s.atLeast32() && s.loadCertificate(info.File, content, created) == nil:
		return s.did(status, info, what, info.StorageName)
	}
	return s.reloaded(q, status, info)
}

func (s *Server) replaceFile(q *request, st *store) (answer, error) {
	content := q.body
	if st.name == "general" {
		var err error
		if _, content, err = q.uploaded(); err != nil {
			return answer{}, err
		}
	} else if len(content) == 0 {
		return answer{}, invalid(codeRequired, "data in body is required")
	}
	name, _, err := st.read(q.args[0])
	if err == nil {
		err = st.write(name, content)
	}
	switch {
	case err != nil:
		return answer{}, err
	case st.name == "ssl_certificates":
		return s.certificateStored(q, st.info(name, content), content, false)
	case q.flag("skip_reload"):
		return answer{status: http.StatusNoContent}, nil
	}
	return s.reloaded(q, http.StatusNoContent, nil)
}

// deleteFile refuses where the path stands in the configuration, but does not
// look into crt-lists.
func (s *Server) deleteFile(q *request, st *store) (answer, error) {
	name, _, err := st.read(q.args[0])
	if err != nil {
		return answer{}, err
	}
	number := -1
	for line := range strings.Lines(s.config.memory) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, st.path(name)) && !strings.HasPrefix(line, "#") {
			return answer{}, problemf(http.StatusConflict, "rejecting attempt to delete file %s referenced in haproxy conf at line %d: %s", st.path(name), number, line)
		}
		number++
	}
	if err := os.Remove(filepath.Join(st.dir, name)); err != nil {
		return answer{}, err
	}
	if st.name == "ssl_certificates" && !q.flag("skip_reload") {
		return s.reloaded(q, http.StatusNoContent, nil)
	}
	return answer{status: http.StatusNoContent}, nil
}
