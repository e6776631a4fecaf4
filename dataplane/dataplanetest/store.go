package dataplanetest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/haproxytech/client-native/v6/storage"

	"github.com/hapticsdk/haptic/dataplane"
)

// store is one of the storages of the API, in a folder.
type store struct {
	storage.Storage
	name  string // as in the path of the API
	dir   string // where the files are
	shown string // where HAProxy finds them, by the layout
}

// openStores makes the storages below a folder; certificates and crt-lists
// share one.
func (s *Server) openStores(real dataplane.Layout) error {
	for _, kind := range []struct {
		name string
		kind dataplane.FileKind
		of   storage.FileType
	}{
		{"maps", dataplane.Map, storage.MapsType},
		{"ssl_certificates", dataplane.Certificate, storage.SSLType},
		{"ssl_crt_lists", dataplane.Certificate, storage.CrtListType},
		{"general", dataplane.General, storage.GeneralType},
	} {
		opened, err := storage.New(real.Dir(kind.kind), kind.of)
		if err != nil {
			return err
		}
		s.stores = append(s.stores, &store{opened, kind.name, real.Dir(kind.kind), s.opts.Layout.Dir(kind.kind)})
	}
	return nil
}

// store returns the storage of that name, nil if there is none.
func (s *Server) store(name string) *store {
	i := slices.IndexFunc(s.stores, func(st *store) bool { return st.name == name })
	if i < 0 {
		return nil
	}
	return s.stores[i]
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

func (st *store) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(st.dir, name))
}

// shown replaces the folders of the storages by those of the layout.
func (s *Server) shown(text string) string {
	for _, st := range s.stores {
		text = strings.ReplaceAll(text, st.dir, st.shown)
	}
	return text
}

// Files returns the names of all files of that kind, sorted. CA files and
// crt-lists are general files.
func (s *Server) Files(kind dataplane.FileKind) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, err := s.storeOf(kind).names()
	if err != nil {
		s.report(err)
	}
	return names
}

// File returns the content of a file.
func (s *Server) File(kind dataplane.FileKind, name string) (content []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, err := s.storeOf(kind).read(name)
	if err != nil && !os.IsNotExist(err) {
		s.report(err)
	}
	return content, err == nil
}

// SetFile stores a file behind the back of the API's clients, nil content
// removes it. The running process keeps what it has loaded.
func (s *Server) SetFile(kind dataplane.FileKind, name string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := filepath.Join(s.storeOf(kind).dir, name)
	var err error
	if content == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, content, 0o644)
	}
	if err != nil {
		s.report(err)
	}
}
