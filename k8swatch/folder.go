package k8swatch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

// settle is how long a file that is empty, broken or gone may be so because an
// editor has not finished. A file that is whole is never held back.
const settle = 100 * time.Millisecond

// lookAgain is how often a folder that went is looked for.
const lookAgain = 200 * time.Millisecond

// FolderOptions of a [Folder].
type FolderOptions struct {
	// OnError is told of each error in a manifest, a [*ManifestError], when it
	// appears, and of a folder that cannot be read any more: from NewFolder and
	// then from Run, never concurrently.
	OnError func(error)
}

// Folder is a directory of Kubernetes manifests as a [Source]: *.yaml, *.yml and
// *.json, with several documents or a List per file; subdirectories are not
// read. All methods may be called concurrently.
//
// Objects are decoded strictly: a field that the type does not have is an error
// with its line. Kinds that client-go does not know are unstructured. As with
// the API server, a missing namespace is "default" and stringData of a Secret
// goes into data; but nothing is defaulted or validated beyond that. Each object
// has the annotation [SourceAnnotation], and a resource version that changes
// exactly when its content does.
type Folder struct {
	dir     string
	onError func(error)
	server  *memapi.Server
	settle  time.Duration

	mu     sync.Mutex
	files  map[string][]*manifest // last good content by path
	errs   map[string][]error     // current errors by path
	shown  map[objectKey]*manifest
	doubly []error // current conflicts between files
	ran    bool
}

type objectKey struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

// NewFolder reads the folder once. Errors in manifests do not make it fail: they
// go to OnError and to [Folder.Errors]. A folder that cannot be read does.
func NewFolder(dir string, opts *FolderOptions) (*Folder, error) {
	if opts == nil {
		opts = &FolderOptions{}
	}
	f := &Folder{
		dir: filepath.Clean(dir), onError: opts.OnError, server: memapi.New(), settle: settle,
		files: map[string][]*manifest{}, errs: map[string][]error{}, shown: map[objectKey]*manifest{},
	}
	if f.onError == nil {
		f.onError = func(error) {}
	}
	names, err := f.names()
	if err != nil {
		return nil, fmt.Errorf("k8swatch: manifests: %w", err)
	}
	for _, name := range names {
		f.read(name, true)
	}
	f.publish()
	return f, nil
}

func isManifest(name string) bool {
	if strings.HasPrefix(filepath.Base(name), ".") {
		return false // editors keep swap files and locks under such names
	}
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// names lists the manifest files of the folder.
func (f *Folder) names() ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if isManifest(e.Name()) && !e.IsDir() {
			names = append(names, filepath.Join(f.dir, e.Name()))
		}
	}
	return names, nil
}

// Errors returns what is wrong in the folder now: [*ManifestError] values by
// file and line. It is empty once everything is good again.
func (f *Folder) Errors() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []error
	for _, name := range slices.Sorted(maps.Keys(f.errs)) {
		all = append(all, f.errs[name]...)
	}
	return append(all, f.doubly...)
}

// ListWatch implements [Source].
func (f *Folder) ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	return f.server.ListWatch(gvr, namespace, tweak), nil
}

// read takes in one file. Without final, content that an editor may not have
// finished is left for later; read then returns false. So it does where the file
// went with the folder, which Run is about to hear of.
func (f *Folder) read(name string, final bool) bool {
	data, err := os.ReadFile(name)
	if final && errors.Is(err, fs.ErrNotExist) {
		var there bool
		if data, there, err = f.readAgain(name); !there {
			return false
		}
	}
	gone := errors.Is(err, fs.ErrNotExist)
	var found []*manifest
	var errs []error
	switch {
	case gone:
	case err != nil:
		errs = []error{&ManifestError{File: name, Err: err}}
	default:
		found, errs = parseManifests(name, data)
	}
	taken, tell := f.take(name, data, gone, found, errs, final)
	for _, err := range tell {
		f.onError(err)
	}
	return taken
}

// readAgain reads a file that was not there, and reports whether the folder was
// there all the time. It may have been away for a moment, in which another took
// its place.
func (f *Folder) readAgain(name string) (data []byte, there bool, err error) {
	before, missing := os.Stat(f.dir)
	if missing != nil {
		return nil, false, missing
	}
	if data, err = os.ReadFile(name); !errors.Is(err, fs.ErrNotExist) {
		return data, true, err
	}
	after, missing := os.Stat(f.dir)
	return nil, missing == nil && os.SameFile(before, after), err
}

// take files what was read, and returns what is to be told of it, which happens
// without the lock: OnError may ask for all errors.
func (f *Folder) take(name string, data []byte, gone bool, found []*manifest, errs []error, final bool) (taken bool, tell []error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Text may be cut at the end of a line's beginning and still parse: without
	// its last newline it counts as unfinished, and so does one with less in it.
	cut := len(data) > 0 && !bytes.HasSuffix(data, []byte("\n"))
	if !final && (gone || len(errs) > 0 || cut || len(found) == 0 || len(found) < len(f.files[name])) {
		return false, nil
	}
	switch {
	case gone:
		delete(f.files, name)
		delete(f.errs, name)
	case len(errs) > 0:
		if !sameErrors(f.errs[name], errs) {
			tell = errs
		}
		f.errs[name] = errs
	default:
		f.files[name] = found
		delete(f.errs, name)
	}
	return true, tell
}

func sameErrors(a, b []error) bool {
	return slices.EqualFunc(a, b, func(x, y error) bool { return x.Error() == y.Error() })
}

// publish makes the server hold what the files define. Where two define the same
// object the one that came first stays, and both are named.
func (f *Folder) publish() {
	for _, err := range f.publishFiles() {
		f.onError(err)
	}
}

// publishFiles returns the conflicts, where they are news.
func (f *Folder) publishFiles() (tell []error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	want := map[objectKey]*manifest{}
	var conflicts []error
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		for _, m := range f.files[name] {
			k := objectKey{m.gvr, m.obj.GetNamespace(), m.obj.GetName()}
			first := want[k]
			if first == nil {
				want[k] = m
				continue
			}
			if old := f.shown[k]; old != nil && old.file == m.file && first.file != m.file {
				want[k], first, m = m, m, first
			}
			conflicts = append(conflicts, &ManifestError{File: m.file, Line: m.line,
				Err: fmt.Errorf("%s is defined at %s already", m, first.where())})
		}
	}
	if !sameErrors(f.doubly, conflicts) {
		tell = conflicts
	}
	f.doubly = conflicts
	for k := range f.shown {
		if want[k] == nil {
			f.server.Delete(k.gvr, k.namespace, k.name)
		}
	}
	for k, m := range want {
		f.apply(k, m)
	}
	f.shown = want
	return tell
}

func (f *Folder) apply(k objectKey, m *manifest) {
	if old := f.shown[k]; old != nil {
		if old == m {
			return
		}
		m.obj.SetUID(old.obj.GetUID())
		m.obj.SetResourceVersion(old.obj.GetResourceVersion())
		if apiequality.Semantic.DeepEqual(old.obj, m.obj) {
			return
		}
	}
	sum := sha256.Sum256([]byte(k.gvr.String() + "\x00" + k.namespace + "\x00" + k.name))
	m.obj.SetUID(types.UID("manifest-" + hex.EncodeToString(sum[:8])))
	f.server.Apply(k.gvr, m.obj)
}

// broken reports whether a file has errors; a change of its mode may mend them.
func (f *Folder) broken(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.errs[name]) > 0
}

// known lists the files that were read.
func (f *Folder) known() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(f.files)), maps.Keys(f.errs))
}
