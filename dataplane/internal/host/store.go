package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
)

// store keeps one configuration in a folder, as generations:
//
//	haproxy.cfg    -> current/haproxy.cfg
//	maps           -> current/maps           as are ssl and general
//	current        -> .gen-000017
//	.gen-000017/      haproxy.cfg, files.json, maps -> ../.maps-000012, ...
//	.maps-000012/     never changes; later generations may share it
//
// The first write takes over a folder that has plain files in these places.
type store struct {
	dir      string
	account  *account
	attached bool // HAProxy belongs to another program: keep owner and mode of its folders

	failpoint func(step string)

	seen *snapshot // what was read or written last
	bad  error     // why that is no configuration
}

// snapshot is the content of the folder at one time. Its files have the names by
// which HAProxy knows them, such as "haproxy.cfg" and "ssl/a.pem".
type snapshot struct {
	at     map[string]string    // where haproxy.cfg, files.json, the folders and current really lie
	config *config.Config       // of files that are missing it has no content
	stamps map[string]fileStamp // of all that is there
}

// manifest is the content of files.json: which files belong to the configuration,
// and of which kind.
type manifest struct {
	Files []listedFile `json:"files"`
}

type listedFile struct {
	Kind config.FileKind `json:"kind"`
	Name string          `json:"name"`
}

// fileStamp tells cheaply whether another program wrote a file.
type fileStamp struct {
	size, mtime int64
	inode       uint64
}

const (
	mainFile     = config.MainFile
	manifestFile = "files.json"
	currentLink  = "current"
)

// subfolders returns the folders of files.
func subfolders() []string { return []string{"maps", "ssl", "general"} }

// public returns what HAProxy finds in the folder by its name.
func public() []string { return append(subfolders(), mainFile) }

// nameOf returns the name of a file within the folder.
func nameOf(f config.FileKind, name string) string {
	return path.Join(path.Base(config.Layout{}.Dir(f)), name)
}

func (s *store) path(elem ...string) string {
	return filepath.Join(s.dir, filepath.Join(elem...))
}

// exists reports whether a configuration is stored. It needs no turn.
func (s *store) exists() bool {
	_, err := os.Stat(s.path(mainFile))
	return err == nil
}

// prepare makes the folder itself and the one of the sockets.
func (s *store) prepare() error {
	if err := os.MkdirAll(s.dir, 0o750); err != nil {
		return err
	}
	err := os.Mkdir(s.path("run"), 0o750)
	switch {
	case err != nil && !errors.Is(err, fs.ErrExist):
		return err
	case s.account == nil, s.attached && err != nil:
		return nil
	}
	// HAProxy makes its sockets in run.
	err = errors.Join(os.Chown(s.path("run"), s.account.uid, s.account.gid), os.Chmod(s.path("run"), 0o750))
	if s.attached || err != nil {
		return err
	}
	return errors.Join(s.account.own(s.dir), s.account.reaches(s.dir))
}

// load returns the stored configuration, or nil if there is none. It reads the
// files again only if another program changed one. An error that wraps
// [config.ErrInvalidConfig] says that another program spoilt one.
func (s *store) load() (*config.Config, error) {
	if s.seen == nil || s.bad != nil || !s.untouched() {
		s.seen = &snapshot{at: s.places(), stamps: make(map[string]fileStamp)}
		s.bad = s.read()
	}
	if s.bad != nil || s.seen.config.Main == "" {
		return nil, s.bad
	}
	return s.seen.config, nil
}

// current returns the current generation, or "" if there is none.
func (s *store) current() string {
	target, _ := os.Readlink(s.path(currentLink))
	return target
}

// places returns where everything really lies.
func (s *store) places() map[string]string {
	generation := s.current()
	at := map[string]string{currentLink: generation, manifestFile: path.Join(generation, manifestFile)}
	for _, name := range public() {
		at[name] = name
		target, _ := os.Readlink(s.path(name))
		folder, err := os.Readlink(s.path(generation, name))
		switch {
		case generation == "" || target != path.Join(currentLink, name):
		case name == mainFile:
			at[name] = path.Join(generation, name)
		case err == nil:
			at[name] = path.Join(generation, folder)
		}
	}
	return at
}

// plain reports whether something is not a link into the current generation.
func (s *snapshot) plain(name string) bool { return s.at[name] == name }

// resolve returns where a file really lies.
func (s *snapshot) resolve(name string) string {
	if at, ok := s.at[name]; ok {
		return at
	}
	return s.at[path.Dir(name)] + "/" + path.Base(name)
}

// read reads all that is stored.
func (s *store) read() error {
	main, err1 := s.readFile(mainFile)
	list, err2 := s.readFile(manifestFile)
	s.seen.config = config.Empty().With(string(main))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var m manifest
	if err := json.Unmarshal(list, &m); list != nil && err != nil {
		delete(s.seen.stamps, manifestFile)
		return fmt.Errorf("%w: %s: %w", config.ErrInvalidConfig, manifestFile, err)
	}
	var files []config.File
	for _, f := range m.Files {
		content, err := s.readFile(nameOf(f.Kind, f.Name))
		if err != nil {
			return err
		}
		files = append(files, config.File{Kind: f.Kind, Name: f.Name, Content: content})
	}
	slices.SortFunc(files, config.CompareFiles)
	s.seen.config = s.seen.config.WithFiles(files)
	if len(main) == 0 {
		return nil
	}
	_, err := config.New(string(main), files...)
	return err
}

// readFile returns nil if there is no such file.
func (s *store) readFile(name string) ([]byte, error) {
	at := s.path(s.seen.resolve(name))
	stamp := stampOf(at)
	content, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	s.seen.stamps[name] = stamp
	return content, err
}

// untouched looks at each file: the time of a folder tells of files that come
// and go, but not of one that another program writes in its place.
func (s *store) untouched() bool {
	if !maps.Equal(s.seen.at, s.places()) {
		return false
	}
	for name, stamp := range s.seen.stamps {
		if stampOf(s.dir+"/"+s.seen.resolve(name)) != stamp {
			return false
		}
	}
	return true
}

func stampOf(at string) fileStamp {
	var info unix.Stat_t
	if err := unix.Stat(at, &info); err != nil {
		return fileStamp{}
	}
	return fileStamp{size: info.Size, mtime: info.Mtim.Nano(), inode: info.Ino}
}
