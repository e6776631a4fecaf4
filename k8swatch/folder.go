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

// settle is how long a file must be unchanged before an empty, broken or deleted one counts:
// an editor may not have finished. A whole file is taken at once, whatever the others are.
const settle = 100 * time.Millisecond

// FolderOptions of a [Folder].
type FolderOptions struct {
	// MaxFile bounds a file, in bytes. Zero means 64 MiB. A larger file is an error,
	// and its last good objects stay in use. One object has at most 3 MiB as JSON, as
	// with an API server.
	MaxFile int64

	// LastGood is a folder for copies of the last good text of each file, in case a
	// file is broken at the next start. The Folder creates it with mode 0700: the files
	// may be Secrets. Empty means no copies.
	LastGood string

	// Scheme has Go types besides those of client-go, such as those of custom
	// resources. Their manifests are decoded just as strictly. If nil, there are none.
	Scheme *runtime.Scheme

	// OnError gets each new error in a manifest, a [*ManifestError]. It also gets the
	// error if the folder becomes unreadable. If a resource was watched before Run,
	// looks misspelt, and occurs in no manifest, that is an error too. NewFolder and
	// then Run call it, never concurrently.
	OnError func(error)
}

// Folder is a directory of Kubernetes manifests as a [Source]: *.yaml, *.yml and
// *.json, with several documents or a List per file. It does not read subdirectories.
// All methods may be called concurrently.
//
// A file that is broken or empty keeps its last good objects. A file with only a
// comment deletes them. Removing a file deletes its objects, even if it is the last
// file. A folder that cannot be read deletes nothing. Nor does an empty folder in its
// place, such as a mount point without its volume.
//
// Objects are decoded strictly: a field that the type does not have is an error with its
// line. Kinds that neither client-go nor FolderOptions.Scheme knows are unstructured. As with
// the API server, a missing namespace is "default" and stringData of a Secret goes into data.
// Folder sets no other defaults and validates nothing else. Each object has the annotation
// [SourceAnnotation], and a resource version that changes exactly when its content does.
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
	away       error       // why the last look could not read the folder
	last       os.FileInfo // of the last folder that was read; nil: an earlier process read it
	copies     *manifest.Copies
	uncopied   map[string]bool // files whose copy must be replaced
	unknown    Effect          // effect of errors in files without a good version
	reported   []error

	mu     sync.Mutex
	errors []error       // current errors
	looked chan struct{} // closed and replaced after each look
	kinds  manifest.Kinds
	read   []schema.GroupVersionResource // watched resources
}

// manifestFile is the state of one file.
type manifestFile struct {
	text     []byte            // the last text, good or bad
	goodText []byte            // the last good text; nil: none is known
	good     []manifest.Object // objects of goodText
	errs     []error           // errors of text
	effect   Effect            // effect of errs
}

// unfinished is a text that an editor may still be writing.
type unfinished struct {
	manifest.Text
	since time.Time
}

type objectKey struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

// shownObject is an object of the server, and the file that defines it.
type shownObject struct {
	manifest.Object
	file string
}

func (o shownObject) where() string { return fmt.Sprintf("%s:%d", o.file, o.Line) }

// NewFolder reads the folder once. It does not fail on errors in manifests: they go to
// OnError and to [Folder.Errors]. It fails if it cannot read the folder, unless
// FolderOptions.LastGood has copies of its files.
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
		dir: filepath.Clean(
			dir,
		), maxFile: cmp.Or(opts.MaxFile, 64<<20), onError: opts.OnError, types: memapi.Types{Own: opts.Scheme}, server: memapi.New(), settle: settle,
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
	f.unknown = NeverGood // files found from here on are new
	return f, nil
}

// openCopies reads the last good texts of the files.
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
		case len(text) == 0: // the process before waited for the file, or a power cut lost the copy
			f.files[name] = &manifestFile{
				effect: NoneKnown,
				errs:   []error{&ManifestError{File: name, Err: errors.New("its copy for a restart is empty"), Effect: NoneKnown}},
			}
		case len(errs) > 0: // another program version accepted it
			f.files[name] = &manifestFile{effect: NoneKnown, errs: manifestErrors(name, errs, NoneKnown)}
		default:
			f.files[name] = &manifestFile{text: text, goodText: text, good: found, effect: LastGood}
		}
	}
	return nil
}

// Run follows the folder until ctx ends. It takes in a saved file within milliseconds.
// A deleted file takes its objects with it. Run returns an error if it cannot watch the
// folder, and [ErrStarted] if it ran before.
func (f *Folder) Run(ctx context.Context) error {
	if f.server == nil {
		return unmade("Folder", "NewFolder")
	}
	if !f.ran.CompareAndSwap(false, true) {
		return ErrStarted
	}
	watch, err := filewatch.New(f.dir)
	for ; err != nil && f.away != nil; watch, err = filewatch.New(f.dir) {
		select { // the copies of LastGood are in use until the folder exists
		case <-ctx.Done():
			return nil
		case <-time.After(f.settle):
		}
	}
	if err != nil {
		return fmt.Errorf("k8swatch: manifests: %w", err)
	}
	f.notify() // errors for watchers that were made since NewFolder
	watch.Run(ctx, f.settle, func(settled bool) { _ = f.look(settled) })
	return nil
}

// look reads the folder and takes in its files. It returns an error if it cannot read
// the folder; Errors has that error too.
func (f *Folder) look(settled bool) error {
	texts, info, err := manifest.ReadFolder(f.dir, f.maxFile)
	if err == nil && len(texts) == 0 && len(f.files) > 0 && (f.last == nil || !os.SameFile(f.last, info)) {
		err = fmt.Errorf(
			"the folder is empty, like a mount point without its volume: to remove all %d files, put an empty one there, such as none.yaml",
			len(f.files),
		)
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

func (f *Folder) MetadataListWatch(gvr schema.GroupVersionResource, namespace string, tweak func(*metav1.ListOptions)) (cache.ListerWatcherWithContext, error) {
	if _, err := f.ListWatch(gvr, namespace, tweak); err != nil {
		return nil, err
	}
	return f.server.MetadataListWatch(gvr, namespace, tweak), nil
}

func (f *Folder) Fetch(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (Object, error) {
	return f.server.Fetch(ctx, gvr, namespace, name)
}

// leftAlone reports whether a file that may be unfinished has not changed for long enough.
func (f *Folder) leftAlone(name string, t manifest.Text) bool {
	u, ok := f.unfinished[name]
	if !ok || fmt.Sprint(u.Err) != fmt.Sprint(t.Err) || !bytes.Equal(u.Data, t.Data) {
		u = unfinished{t, time.Now()}
		f.unfinished[name] = u
	}
	return time.Since(u.since) >= f.settle
}

// take parses the changed files. Unless settled is true, files that may be unfinished
// keep their old state until they are left alone.
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

// conclude brings the objects of all files to the server, copies the changed files, and
// reports new errors.
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
	f.notify()
}

// keepCopies replaces the copies of changed files. The next look tries failed ones again.
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
	case len(old.good) > 0 && len(bytes.TrimSpace(t.Data)) == 0: // a full disk leaves such a file
		now.errs = []error{&ManifestError{File: name, Effect: now.effect,
			Err: errors.New("it is empty: to delete its objects, delete it or leave a comment in it")}}
	case len(errs) > 0:
		now.errs = manifestErrors(name, errs, now.effect)
	default:
		now.goodText, now.good, now.effect = t.Data, found, LastGood
	}
	// A truncated text may still parse. A text without its last newline, or with fewer
	// objects than before, counts as unfinished.
	whole := len(now.errs) == 0 && bytes.HasSuffix(t.Data, []byte("\n")) && len(found) > 0 && len(found) >= len(old.good)
	if settled || whole || f.leftAlone(name, t) {
		f.files[name] = now
		f.uncopied[name] = f.uncopied[name] || len(now.errs) == 0
		delete(f.unfinished, name)
	}
}

// show brings the objects of the files to the server. If two files define the same
// object, the one that came first stays, and the errors name both.
func (f *Folder) show() (conflicts []error) {
	want, kinds := map[objectKey]shownObject{}, manifest.Kinds{}
	types := memapi.Types{Own: f.types.Own}
	for _, file := range f.files {
		for _, m := range file.good {
			types.Learn(m.Object)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		for _, m := range f.files[name].good {
			m.Resource = types.Resource(m.GetObjectKind().GroupVersionKind())
			k, o := objectKey{m.Resource, m.GetNamespace(), m.GetName()}, shownObject{m, name}
			if !kinds.See(m, name, types) {
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
	var changed []objectKey
	for k, o := range want {
		if old, ok := f.shown[k]; !ok || old.Object.Object != o.Object.Object {
			changed = append(changed, k)
		}
	}
	// Services and Secrets come first, then EndpointSlices, and then what names them: by their
	// groups. A reader that is faster than the rest then sees nothing that leads nowhere.
	slices.SortFunc(changed, func(a, b objectKey) int { return cmp.Compare(a.gvr.Group, b.gvr.Group) })
	for _, k := range changed {
		f.apply(k, want[k])
	}
	f.shown = want
	f.mu.Lock()
	f.kinds, f.types.Learned = kinds, types.Learned
	f.mu.Unlock()
	return conflicts
}

func (f *Folder) apply(k objectKey, o shownObject) {
	if old, ok := f.shown[k]; ok {
		o.SetUID(old.GetUID())
		o.SetResourceVersion(old.GetResourceVersion())
		if apiequality.Semantic.DeepEqual(old.Object.Object, o.Object.Object) {
			return
		}
	}
	o.SetUID(uidOf("manifest-", k))
	f.server.Apply(k.gvr, o.Object.Object)
}
