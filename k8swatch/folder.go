package k8swatch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	yamlnode "go.yaml.in/yaml/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/internal/filewatch"
	"github.com/hapticsdk/haptic/internal/printable"
	"github.com/hapticsdk/haptic/k8swatch/internal/manifest"
	"github.com/hapticsdk/haptic/k8swatch/internal/memapi"
)

// settle is how long a file must be left alone before it counts that it is empty,
// broken or gone: an editor may not have finished. A file that is whole is never held
// back, and none is because of another.
const settle = 100 * time.Millisecond

// FolderOptions of a [Folder].
type FolderOptions struct {
	// MaxFile bounds a file, in bytes; zero means 64 MiB. A larger one is an error,
	// and its last good objects stay in use. One object has 3 MiB as JSON at most,
	// as with an API server.
	MaxFile int64

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
	maxFile int64
	onError func(error)
	server  *memapi.Server
	settle  time.Duration
	ran     atomic.Bool

	// Only NewFolder and then Run use these, one after the other.
	files      map[string]*manifestFile
	unfinished map[string]unfinished
	shown      map[objectKey]shownObject
	away       string // why the folder could not be read the last time

	mu     sync.Mutex
	errors []error // current ones
}

// manifestFile is what a file says.
type manifestFile struct {
	text []byte            // that was read last, good or bad
	good []manifest.Object // of the last text that was good
	errs []error           // of the last text
}

// unfinished is a file that may not be what its editor means.
type unfinished struct {
	fileText
	since time.Time
}

type objectKey struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

// shownObject is an object that the server has, and the file that defines it.
type shownObject struct {
	manifest.Object
	file string
}

func (o shownObject) where() string { return fmt.Sprintf("%s:%d", o.file, o.Line) }

// NewFolder reads the folder once. Errors in manifests do not make it fail: they
// go to OnError and to [Folder.Errors]. A folder that cannot be read does.
func NewFolder(dir string, opts *FolderOptions) (*Folder, error) {
	if opts == nil {
		opts = &FolderOptions{}
	}
	f := &Folder{
		dir: filepath.Clean(dir), maxFile: cmp.Or(opts.MaxFile, 64<<20), onError: opts.OnError, server: memapi.New(), settle: settle,
		files: map[string]*manifestFile{}, unfinished: map[string]unfinished{}, shown: map[objectKey]shownObject{},
	}
	if f.onError == nil {
		f.onError = func(error) {}
	}
	texts, err := f.readAll()
	if err != nil {
		return nil, fmt.Errorf("k8swatch: manifests: %w", err)
	}
	f.take(texts, true)
	return f, nil
}

// Run follows the folder until ctx ends: a saved file is taken in within
// milliseconds, one that is deleted takes its objects with it. It returns an
// error when the folder cannot be watched, and [ErrStarted] when it ran before.
func (f *Folder) Run(ctx context.Context) error {
	if !f.ran.CompareAndSwap(false, true) {
		return ErrStarted
	}
	watch, err := filewatch.New(f.dir)
	if err != nil {
		return fmt.Errorf("k8swatch: manifests: %w", err)
	}
	watch.Run(ctx, f.settle, func(settled bool) {
		switch texts, err := f.readAll(); {
		case err == nil:
			f.away = ""
			f.take(texts, settled)
		case err.Error() != f.away:
			f.away = err.Error()
			f.onError(fmt.Errorf("k8swatch: manifests: %w; what was read stays in use until it is back", err))
		}
	})
	return nil
}

// Errors returns what is wrong in the folder now: [*ManifestError] values by
// file and line. It is empty once everything is good again.
func (f *Folder) Errors() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.errors)
}

// ListWatch implements [Source].
func (f *Folder) ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	return f.server.ListWatch(gvr, namespace, tweak), nil
}

// fileText is the content of a file, or why it cannot be read; zero where it is gone.
type fileText struct {
	data []byte
	err  error
}

// readAll reads the files of the folder. The error says that it is not there, or
// that another took its place meanwhile: what is missing then was not deleted.
func (f *Folder) readAll() (map[string]fileText, error) {
	before, err := os.Stat(f.dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, err
	}
	texts := map[string]fileText{}
	for _, e := range entries {
		if isManifest(e.Name()) && !e.IsDir() {
			name := filepath.Join(f.dir, e.Name())
			data, err := f.readFile(name)
			texts[name] = fileText{data, err}
		}
	}
	after, err := os.Stat(f.dir)
	if err == nil && !os.SameFile(before, after) {
		err = fmt.Errorf("%s was replaced while it was read", f.dir)
	}
	return texts, err
}

func (f *Folder) readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, f.maxFile+1))
	if int64(len(data)) > f.maxFile {
		return nil, fmt.Errorf("it has more than %d bytes (FolderOptions.MaxFile)", f.maxFile)
	}
	return data, err
}

func isManifest(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false // editors keep swap files and locks under such names
	}
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// leftAlone reports whether a file that may not be finished has been so for long
// enough.
func (f *Folder) leftAlone(name string, t fileText) bool {
	u, ok := f.unfinished[name]
	if !ok || fmt.Sprint(u.err) != fmt.Sprint(t.err) || !bytes.Equal(u.data, t.data) {
		u = unfinished{t, time.Now()}
		f.unfinished[name] = u
	}
	return time.Since(u.since) >= f.settle
}

// take parses the files that changed, and makes the server hold what all of them
// define. Unless settled, files that an editor may not have finished stay as they
// were, until they have been left alone.
func (f *Folder) take(texts map[string]fileText, settled bool) {
	told := f.errors
	for name, t := range texts {
		f.takeFile(name, t, settled)
	}
	maps.DeleteFunc(f.files, func(name string, _ *manifestFile) bool {
		_, there := texts[name]
		return !there && (settled || f.leftAlone(name, fileText{}))
	})
	if settled {
		clear(f.unfinished)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		errs = append(errs, f.files[name].errs...)
	}
	errs = append(errs, f.show()...)
	f.mu.Lock()
	f.errors = errs
	f.mu.Unlock()
	for _, err := range errs {
		if !slices.ContainsFunc(told, func(old error) bool { return old.Error() == err.Error() }) {
			f.onError(err)
		}
	}
}

func (f *Folder) takeFile(name string, t fileText, settled bool) {
	old := f.files[name]
	if old == nil {
		old = &manifestFile{}
	} else if t.err == nil && old.text != nil && bytes.Equal(old.text, t.data) {
		delete(f.unfinished, name)
		return
	}
	now := &manifestFile{text: t.data, good: old.good}
	found, errs := manifest.Parse(name, t.data)
	switch {
	case t.err != nil:
		now.text, now.errs = nil, []error{&ManifestError{File: name, Err: t.err}}
	case len(errs) > 0:
		now.errs = manifestErrors(name, errs)
	default:
		now.good = found
	}
	// A text that is cut may still parse. A text without its last newline, or with
	// fewer objects than before, counts as unfinished.
	whole := len(now.errs) == 0 && bytes.HasSuffix(t.data, []byte("\n")) && len(found) > 0 && len(found) >= len(old.good)
	if settled || whole || f.leftAlone(name, t) {
		f.files[name] = now
		delete(f.unfinished, name)
	}
}

// show makes the server hold what the files define. Where two define the same
// object the one that came first stays, and the errors name both.
func (f *Folder) show() (conflicts []error) {
	want := map[objectKey]shownObject{}
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		for _, m := range f.files[name].good {
			k, o := objectKey{m.Resource, m.GetNamespace(), m.GetName()}, shownObject{m, name}
			first, twice := want[k]
			if !twice {
				want[k] = o
				continue
			}
			if f.shown[k].file == name && first.file != name {
				want[k], first, o = o, o, first
			}
			conflicts = append(conflicts, &ManifestError{File: o.file, Line: o.Line,
				Err: fmt.Errorf("%s is defined at %s already", describe(m), first.where())})
		}
	}
	for k := range f.shown {
		if _, ok := want[k]; !ok {
			f.server.Delete(k.gvr, k.namespace, k.name)
		}
	}
	for k, o := range want {
		f.apply(k, o)
	}
	f.shown = want
	return conflicts
}

func (f *Folder) apply(k objectKey, o shownObject) {
	if old, ok := f.shown[k]; ok {
		if old.Object.Object == o.Object.Object {
			return
		}
		o.SetUID(old.GetUID())
		o.SetResourceVersion(old.GetResourceVersion())
		if apiequality.Semantic.DeepEqual(old.Object.Object, o.Object.Object) {
			return
		}
	}
	o.SetUID(uidOf("manifest-", k))
	f.server.Apply(k.gvr, o.Object.Object)
}

// SourceAnnotation is set on the objects of a [Folder] to "file:line", so that a
// later error about an object can name its manifest. Of objects of a cluster it is
// dropped: there it would name a file that whoever wrote the object chose.
const SourceAnnotation = manifest.SourceAnnotation

// ManifestError is an error in a file of a [Folder]. The last good objects of
// that file stay in use.
type ManifestError struct {
	File string // path, as the folder was given
	Line int    // 1-based; 0 where the whole file is meant
	Err  error
}

// Error implements error.
func (e *ManifestError) Error() string {
	place := e.File
	if e.Line > 0 {
		place = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return printable.Line(place + ": " + e.Err.Error())
}

// Unwrap implements errors.Is and errors.As.
func (e *ManifestError) Unwrap() error { return e.Err }

func manifestErrors(file string, errs []manifest.Error) []error {
	var all []error
	for _, e := range errs {
		all = append(all, &ManifestError{File: file, Line: e.Line, Err: e.Err})
	}
	return all
}

// ParseManifests decodes the manifests in a text as a [Folder] does: several
// documents, Lists, strictly, each object with [SourceAnnotation]. name is that
// of the file. The error joins a [*ManifestError] for each mistake; there are no
// objects then.
func ParseManifests(name string, data []byte) ([]Object, error) {
	found, errs := manifest.Parse(name, data)
	return objectsOf(name, found, errs)
}

// DecodeManifest decodes one manifest, or a List of them, that stands within a
// YAML file of another kind, as [ParseManifests] does; node says where.
func DecodeManifest(name string, node *yamlnode.Node) ([]Object, error) {
	found, errs := manifest.Decode(name, node)
	return objectsOf(name, found, errs)
}

func objectsOf(file string, found []manifest.Object, errs []manifest.Error) ([]Object, error) {
	if len(errs) > 0 {
		return nil, errors.Join(manifestErrors(file, errs)...)
	}
	objs := make([]Object, len(found))
	for i, m := range found {
		objs[i] = m.Object
	}
	return objs, nil
}

// describe names an object as messages do: Service shop/web.
func describe(o Object) string {
	name := o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return o.GetObjectKind().GroupVersionKind().Kind + " " + name
}
