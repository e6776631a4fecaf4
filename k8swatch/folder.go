package k8swatch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/hapticsdk/haptic/internal/filewatch"
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

	// LastGood is a folder in which the last good text of each file is kept, for a
	// restart at which a file is broken. It is made where it is missing, with mode
	// 0700: the files may be Secrets. Empty means that nothing is kept.
	LastGood string

	// Scheme has Go types besides those of client-go, such as those of custom
	// resources. Their manifests are decoded as strictly. Nil: none.
	Scheme *runtime.Scheme

	// OnError is told of each error in a manifest, a [*ManifestError], when it
	// appears, and of a folder that cannot be read any more: from NewFolder and
	// then from Run, never concurrently. A resource that is watched before Run and looks
	// misspelt, for no manifest has any, is one as well.
	OnError func(error)
}

// Folder is a directory of Kubernetes manifests as a [Source]: *.yaml, *.yml and
// *.json, with several documents or a List per file; subdirectories are not
// read. All methods may be called concurrently.
//
// A file with an error, or one that became empty, keeps the objects that it had when
// it was good; one with a comment alone deletes them. A file that is removed from the
// folder deletes its objects, the last file too. A folder that cannot be read deletes
// nothing, nor does an empty one in its place, such as a mount point without its volume.
//
// Objects are decoded strictly: a field that the type does not have is an error
// with its line. Kinds that neither client-go nor FolderOptions.Scheme knows are
// unstructured. As with
// the API server, a missing namespace is "default" and stringData of a Secret
// goes into data; but nothing is defaulted or validated beyond that. Each object
// has the annotation [SourceAnnotation], and a resource version that changes
// exactly when its content does.
type Folder struct {
	dir     string
	maxFile int64
	onError func(error)
	types   memapi.Types
	server  *memapi.Server
	settle  time.Duration
	ran     atomic.Bool

	// Only NewFolder and then Run use these, one after the other.
	files      map[string]*manifestFile
	unfinished map[string]unfinished
	shown      map[objectKey]shownObject
	away       error       // why the folder could not be read the last time
	last       os.FileInfo // of the folder that was read; nil: of a process before
	copies     *manifest.Copies
	uncopied   map[string]bool // files whose copy is to be replaced
	unknown    Effect          // of errors in files without a good version
	told       []error

	mu     sync.Mutex
	errors []error       // current ones
	looked chan struct{} // closed and replaced after each look
	kinds  manifest.Kinds
	read   []schema.GroupVersionResource // that somebody watches
}

// manifestFile is what a file says.
type manifestFile struct {
	text     []byte            // that was read last, good or bad
	goodText []byte            // the last one that was good; nil: none is known
	good     []manifest.Object // in goodText
	errs     []error           // of the last text
	effect   Effect            // of errs
}

// unfinished is a file that may not be what its editor means.
type unfinished struct {
	manifest.Text
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
// go to OnError and to [Folder.Errors]. A folder that cannot be read does, unless
// files of it are known by FolderOptions.LastGood.
func NewFolder(dir string, opts *FolderOptions) (*Folder, error) {
	if opts == nil {
		opts = &FolderOptions{}
	}
	if dir == "" {
		return nil, errors.New("k8swatch: manifests: the path is empty: want a folder")
	}
	if opts.MaxFile < 0 {
		return nil, fmt.Errorf("k8swatch: FolderOptions.MaxFile %d: want 0 or more bytes", opts.MaxFile)
	}
	f := &Folder{
		dir: filepath.Clean(dir), maxFile: cmp.Or(opts.MaxFile, 64<<20), onError: opts.OnError, types: memapi.Types{Own: opts.Scheme}, server: memapi.New(), settle: settle,
		files: map[string]*manifestFile{}, unfinished: map[string]unfinished{}, shown: map[objectKey]shownObject{},
		uncopied: map[string]bool{}, unknown: NoneKnown, looked: make(chan struct{}),
	}
	if f.onError == nil {
		f.onError = func(error) {}
	}
	if opts.LastGood != "" {
		if err := f.openCopies(opts.LastGood); err != nil {
			return nil, fmt.Errorf("k8swatch: manifests: FolderOptions.LastGood: %w", err)
		}
	}
	if err := f.look(true); err != nil && len(f.files) == 0 {
		return nil, fmt.Errorf("k8swatch: manifests: %s: %w", f.dir, err)
	}
	f.unknown = NeverGood // what is read from here on is new
	return f, nil
}

// openCopies takes what the files said when they were good.
func (f *Folder) openCopies(dir string) error {
	copies, texts, fresh, err := manifest.OpenCopies(dir, f.maxFile)
	if err != nil {
		return err
	}
	f.copies = copies
	if !fresh {
		f.unknown = NeverGood
	}
	for name, text := range texts {
		name = filepath.Join(f.dir, name)
		found, errs := manifest.Parse(name, text, f.types)
		switch {
		case len(text) == 0: // the process before waited for it, or it was lost with the power
			f.files[name] = &manifestFile{effect: NoneKnown, errs: []error{&ManifestError{File: name, Err: errors.New("its copy for a restart is empty"), Effect: NoneKnown}}}
		case len(errs) > 0: // another version accepted it
			f.files[name] = &manifestFile{effect: NoneKnown, errs: manifestErrors(name, errs, NoneKnown)}
		default:
			f.files[name] = &manifestFile{text: text, goodText: text, good: found, effect: LastGood}
		}
	}
	return nil
}

// Run follows the folder until ctx ends: a saved file is taken in within
// milliseconds, one that is deleted takes its objects with it. It returns an
// error when the folder cannot be watched, and [ErrStarted] when it ran before.
func (f *Folder) Run(ctx context.Context) error {
	if f.server == nil {
		return unmade("Folder", "NewFolder")
	}
	if !f.ran.CompareAndSwap(false, true) {
		return ErrStarted
	}
	watch, err := filewatch.New(f.dir)
	for ; err != nil && f.away != nil; watch, err = filewatch.New(f.dir) {
		select { // what LastGood has is in use until it is there
		case <-ctx.Done():
			return nil
		case <-time.After(f.settle):
		}
	}
	if err != nil {
		return fmt.Errorf("k8swatch: manifests: %w", err)
	}
	f.tell() // what is wrong for the watchers that were made meanwhile
	watch.Run(ctx, f.settle, func(settled bool) { _ = f.look(settled) })
	return nil
}

// look reads the folder and takes in what it says. The error says that it cannot be
// read; it is one of Errors, too.
func (f *Folder) look(settled bool) error {
	texts, info, err := manifest.ReadFolder(f.dir, f.maxFile)
	if err == nil && len(texts) == 0 && len(f.files) > 0 && (f.last == nil || !os.SameFile(f.last, info)) {
		err = fmt.Errorf("it is empty, as a mount point without its volume; if the %d files of before shall go, put an empty one there, such as none.yaml", len(f.files))
	}
	f.away = nil
	if err != nil {
		f.away = &ManifestError{File: f.dir, Err: err, Effect: AllKept}
	} else {
		f.last = info
		f.take(texts, settled)
	}
	f.conclude()
	return err
}

func (f *Folder) ListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	f.mu.Lock()
	if !slices.Contains(f.read, gvr) {
		f.read = append(f.read, gvr)
	}
	f.mu.Unlock()
	return f.server.ListWatch(gvr, namespace, tweak), nil
}

// leftAlone reports whether a file that may not be finished has been so for long
// enough.
func (f *Folder) leftAlone(name string, t manifest.Text) bool {
	u, ok := f.unfinished[name]
	if !ok || fmt.Sprint(u.Err) != fmt.Sprint(t.Err) || !bytes.Equal(u.Data, t.Data) {
		u = unfinished{t, time.Now()}
		f.unfinished[name] = u
	}
	return time.Since(u.since) >= f.settle
}

// take parses the files that changed. Unless settled, files that an editor may not
// have finished stay as they were, until they have been left alone.
func (f *Folder) take(texts map[string]manifest.Text, settled bool) {
	for name, t := range texts {
		f.takeFile(name, t, settled)
	}
	maps.DeleteFunc(f.files, func(name string, _ *manifestFile) bool {
		_, there := texts[name]
		gone := !there && (settled || f.leftAlone(name, manifest.Text{}))
		if gone {
			f.uncopied[name] = true
		}
		return gone
	})
	if settled {
		clear(f.unfinished)
	}
}

// conclude makes the server hold what all files define, keeps copies of those that
// changed, and tells of errors that are new.
func (f *Folder) conclude() {
	var errs []error
	if f.away != nil {
		errs = append(errs, f.away)
	}
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		errs = append(errs, f.files[name].errs...)
	}
	errs = append(errs, f.show()...)
	if err := f.keepCopies(); err != nil {
		errs = append(errs, err)
	}
	f.mu.Lock()
	f.errors = errs
	close(f.looked)
	f.looked = make(chan struct{})
	f.mu.Unlock()
	f.tell()
}

// keepCopies replaces the copies of what changed. Those that fail are tried again at
// the next change.
func (f *Folder) keepCopies() (failed error) {
	for name := range f.uncopied {
		var text []byte
		if file := f.files[name]; file != nil {
			text = file.goodText
		}
		if f.copies == nil {
			delete(f.uncopied, name)
		} else if err := f.copies.Keep(filepath.Base(name), text); err != nil {
			failed = &ManifestError{File: name, Err: fmt.Errorf("its copy for a restart cannot be written: %w", err), Effect: Served}
		} else {
			delete(f.uncopied, name)
		}
	}
	return failed
}

func (f *Folder) takeFile(name string, t manifest.Text, settled bool) {
	old := f.files[name]
	if old == nil {
		old = &manifestFile{effect: f.unknown}
	} else if t.Err == nil && old.text != nil && bytes.Equal(old.text, t.Data) {
		delete(f.unfinished, name)
		return
	}
	now := &manifestFile{text: t.Data, goodText: old.goodText, good: old.good, effect: old.effect}
	found, errs := manifest.Parse(name, t.Data, f.types)
	switch {
	case t.Err != nil:
		now.text, now.errs = nil, []error{&ManifestError{File: name, Err: t.Err, Effect: now.effect}}
	case len(old.good) > 0 && len(bytes.TrimSpace(t.Data)) == 0: // as a disk that is full leaves it
		now.errs = []error{&ManifestError{File: name, Effect: now.effect,
			Err: errors.New("it is empty: to delete its objects, delete it or leave a comment in it")}}
	case len(errs) > 0:
		now.errs = manifestErrors(name, errs, now.effect)
	default:
		now.goodText, now.good, now.effect = t.Data, found, LastGood
	}
	// A text that is cut may still parse. A text without its last newline, or with
	// fewer objects than before, counts as unfinished.
	whole := len(now.errs) == 0 && bytes.HasSuffix(t.Data, []byte("\n")) && len(found) > 0 && len(found) >= len(old.good)
	if settled || whole || f.leftAlone(name, t) {
		f.files[name] = now
		f.uncopied[name] = f.uncopied[name] || len(now.errs) == 0
		delete(f.unfinished, name)
	}
}

// show makes the server hold what the files define. Where two define the same
// object the one that came first stays, and the errors name both.
func (f *Folder) show() (conflicts []error) {
	want, kinds := map[objectKey]shownObject{}, manifest.Kinds{}
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		for _, m := range f.files[name].good {
			k, o := objectKey{m.Resource, m.GetNamespace(), m.GetName()}, shownObject{m, name}
			if !kinds.See(m, name, f.types) {
				continue
			}
			first, twice := want[k]
			if !twice {
				want[k] = o
				continue
			}
			if f.shown[k].file == name && first.file != name {
				want[k], first, o = o, o, first
			}
			conflicts = append(conflicts, &ManifestError{File: o.file, Line: o.Line,
				Err: fmt.Errorf("%s is defined at %s already", describe(m), first.where()), Effect: FirstServed})
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
	f.mu.Lock()
	f.kinds = kinds
	f.mu.Unlock()
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
