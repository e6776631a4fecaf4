package host

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

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
//	.names.json       names of backends in a worker, see names.go
//
// If a folder has plain files in these places, the first write takes them over.
type store struct {
	dir      string
	account  *account
	attached bool // HAProxy belongs to another program: keep owner and mode of its folders

	failpoint func(step string)

	seen   *snapshot // last snapshot that was read or written
	bad    error     // why the snapshot is not a configuration
	looked time.Time // when each file was last checked
}

// lookEvery is how long a check of all files counts for Syncs that only change the process.
// There may be many files and many Syncs.
const lookEvery = time.Second

// snapshot is the content of the folder at one time. Its files have their names in HAProxy,
// such as "haproxy.cfg" and "ssl/a.pem".
type snapshot struct {
	generation string               // "" if there is none
	folders    map[string]string    // folders of the generation for maps, ssl and general
	linked     bool                 // HAProxy finds all files in the generation
	config     *config.Config       // missing files have no content in it
	stamps     map[string]fileStamp // of all existing files
	missing    bool                 // a file of the configuration does not exist
}

// manifest is the content of files.json: the files of the configuration, with their kinds.
type manifest struct {
	Files []listedFile `json:"files"`
}

type listedFile struct {
	Kind config.FileKind `json:"kind"`
	Name string          `json:"name"`
}

// fileStamp is a cheap way to notice that another program wrote a file.
type fileStamp struct {
	size, mtime int64
	inode       uint64
}

const (
	mainFile     = config.MainFile
	currentLink  = "current"
	manifestFile = currentLink + "/files.json"
)

// subfolders returns the folders of files.
func subfolders() []string { return []string{"maps", "ssl", "general"} }

// public returns the names that HAProxy uses in the folder.
func public() []string { return append(subfolders(), mainFile) }

// nameOf returns the name of a file within the folder.
func nameOf(f config.FileKind, name string) string {
	return path.Join(path.Base(config.Layout{}.Dir(f)), name)
}

func (s *store) path(elem ...string) string {
	return filepath.Join(s.dir, filepath.Join(elem...))
}

// prepare makes the folder itself and the folder of the sockets.
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
	err = errors.Join(os.Chown(s.path("run"), s.account.UID, s.account.GID), os.Chmod(s.path("run"), 0o750))
	if s.attached || err != nil {
		return err
	}
	return errors.Join(s.account.own(s.dir), s.account.Reaches(s.dir))
}

// load returns the stored configuration, or nil if there is none. It reads the files again
// only if another program changed one. An error that wraps [config.ErrInvalidConfig] says
// that another program spoilt one. Without all, it checks files other than the text at most
// once per lookEvery.
func (s *store) load(all bool) (*config.Config, error) {
	all = all || time.Since(s.looked) > lookEvery
	if s.seen == nil || s.bad != nil || s.seen.config.Size() == 0 || !s.untouched(all) {
		s.seen = s.links()
		s.bad = s.read()
		all = true
	}
	if all {
		s.looked = time.Now()
	}
	if s.bad != nil || s.seen.config.Size() == 0 {
		return nil, s.bad
	}
	return s.seen.config, nil
}

// current returns the current generation, or "" if there is none.
func (s *store) current() string {
	target, _ := os.Readlink(s.path(currentLink))
	return target
}

// links finds out where all files lie.
func (s *store) links() *snapshot {
	now := &snapshot{generation: s.current(), folders: make(map[string]string), stamps: make(map[string]fileStamp)}
	now.linked = now.generation != ""
	for _, sub := range subfolders() {
		folder, err := os.Readlink(s.path(now.generation, sub))
		now.folders[sub] = path.Base(folder)
		now.linked = now.linked && err == nil
	}
	for _, name := range public() {
		target, _ := os.Readlink(s.path(name))
		now.linked = now.linked && target == path.Join(currentLink, name)
	}
	return now
}

// read reads everything that is stored.
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

// readFile reads a file. It returns nil if the file does not exist.
func (s *store) readFile(name string) ([]byte, error) {
	stamp := stampOf(s.path(name))
	content, err := os.ReadFile(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		s.seen.missing = true
		return nil, nil
	}
	s.seen.stamps[name] = stamp
	return content, err
}

// untouched reports whether no other program changed the files. The time of a folder would
// show files that come and go, but not a file that another program overwrites.
func (s *store) untouched(all bool) bool {
	now := s.links()
	if now.generation != s.seen.generation || now.linked != s.seen.linked || !maps.Equal(now.folders, s.seen.folders) {
		return false
	}
	same := func(name string) bool { return stampOf(s.dir+"/"+now.place(name)) == s.seen.stamps[name] }
	for name := range s.seen.stamps {
		if all && !same(name) {
			return false
		}
	}
	return same(mainFile)
}

// place returns where a file lies in the folder. The kernel follows fewer links on this path
// than on HAProxy's.
func (s *snapshot) place(name string) string {
	switch folder := s.folders[path.Dir(name)]; {
	case !s.linked, name == manifestFile:
		return name
	case folder != "":
		return folder + "/" + path.Base(name)
	}
	return s.generation + "/" + name
}

// difference has the changes of a write, by the names of files.
type difference struct {
	fresh map[string]bytesOf
	gone  map[string]bool
	was   bytesOf // former content of a fresh file
}

// bytesOf is the content of a file. One of the fields is set.
type bytesOf struct {
	textOf *config.Config
	bytes  []byte
}

// write writes the content. It writes the parts of a text one by one, without joining them.
func (c bytesOf) write(f *os.File) error {
	if c.textOf == nil {
		_, err := f.Write(c.bytes)
		return err
	}
	w := bufio.NewWriterSize(f, 128<<10)
	sections := c.textOf.Index().List
	for i := range sections {
		_, _ = w.WriteString(sections[i].Text) // Flush returns its error
	}
	return w.Flush()
}

// differs compares the stored configuration with the desired one.
func (s *store) differs(desired *config.Config) (d difference, files int) {
	d.fresh, d.gone = make(map[string]bytesOf), make(map[string]bool)
	listed := true
	have, want := s.seen.config.Files, desired.Files
	for i, j := 0, 0; i < len(have) || j < len(want); {
		order := 0
		switch {
		case i == len(have):
			order = 1
		case j == len(want):
			order = -1
		default:
			order = config.CompareFiles(have[i], want[j])
		}
		switch {
		case order < 0:
			d.gone[nameOf(have[i].Kind, have[i].Name)] = true
		case order > 0 || !bytes.Equal(have[i].Content, want[j].Content) || s.seen.missing && !s.there(have[i]):
			d.fresh[nameOf(want[j].Kind, want[j].Name)] = bytesOf{bytes: want[j].Content}
			if order == 0 {
				d.was.bytes = have[i].Content
			}
		}
		listed = listed && order == 0
		if order <= 0 {
			i++
		}
		if order >= 0 {
			j++
		}
	}
	for name := range d.fresh {
		delete(d.gone, name) // a file of another kind takes its place
	}
	if !s.seen.config.SameMain(desired) {
		d.fresh[mainFile], d.was.textOf = bytesOf{textOf: desired}, s.seen.config
	}
	files = len(d.fresh) + len(d.gone)
	if _, there := s.seen.stamps[manifestFile]; !there || !listed {
		d.fresh[manifestFile] = bytesOf{bytes: encode(desired.Files)}
	}
	return d, files
}

func (s *store) there(f config.File) bool {
	_, there := s.seen.stamps[nameOf(f.Kind, f.Name)]
	return there
}

func stampOf(at string) fileStamp {
	var info unix.Stat_t
	if err := unix.Stat(at, &info); err != nil {
		return fileStamp{}
	}
	return fileStamp{size: info.Size, mtime: info.Mtim.Nano(), inode: info.Ino}
}
