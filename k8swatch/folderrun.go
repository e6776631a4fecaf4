package k8swatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Run follows the folder until ctx ends: a saved file is taken in within
// milliseconds, one that is deleted takes its objects with it. It returns an
// error when the folder cannot be watched, and [ErrStarted] when it ran before.
func (f *Folder) Run(ctx context.Context) error {
	f.mu.Lock()
	ran := f.ran
	f.ran = true
	f.mu.Unlock()
	if ran {
		return ErrStarted
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("k8swatch: manifests: %w", err)
	}
	defer watcher.Close()
	if err := watcher.Add(f.dir); err != nil {
		return fmt.Errorf("k8swatch: manifests: %s: %w", f.dir, err)
	}
	r := newFolderRun(f, watcher)
	defer r.stop()
	r.scan() // what changed since NewFolder
	for r.step(ctx) {
	}
	return nil
}

// folderRun follows a folder, all in the goroutine of Run.
type folderRun struct {
	*Folder
	watcher   *fsnotify.Watcher
	unsettled map[string]bool // files that an editor may not have finished
	quiet     *time.Timer     // what is unsettled has been left alone for long enough
	back      *time.Timer     // look whether the folder, which went, is back
}

func newFolderRun(f *Folder, watcher *fsnotify.Watcher) *folderRun {
	r := &folderRun{Folder: f, watcher: watcher, unsettled: map[string]bool{}}
	r.quiet, r.back = time.NewTimer(f.settle), time.NewTimer(lookAgain)
	r.back.Stop()
	return r
}

func (r *folderRun) stop() {
	r.quiet.Stop()
	r.back.Stop()
}

// step waits for the next thing to do and does it. It returns false at the end.
func (r *folderRun) step(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case err, ok := <-r.watcher.Errors:
		if ok {
			r.lost(err)
		}
		return ok
	case e, ok := <-r.watcher.Events:
		if ok {
			r.event(e)
		}
		return ok
	case <-r.quiet.C:
		r.conclude()
	case <-r.back.C:
		r.lookForIt()
	}
	return true
}

// lost reads everything again after events got lost.
func (r *folderRun) lost(err error) {
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		r.onError(fmt.Errorf("k8swatch: manifests: %w", err))
	}
	r.scan()
	r.quiet.Reset(r.settle)
}

func (r *folderRun) event(e fsnotify.Event) {
	if e.Name == r.dir && e.Has(fsnotify.Remove|fsnotify.Rename) {
		r.onError(fmt.Errorf("k8swatch: manifests: %s is gone; what was read stays in use until it is back", r.dir))
		_ = r.watcher.Remove(r.dir) // of the folder that was there
		r.back.Reset(0)
		return
	}
	if e.Op == fsnotify.Chmod && !r.broken(e.Name) {
		return
	}
	if !r.changed(e.Name) {
		r.quiet.Reset(r.settle) // other files do not put this one off
	}
}

// lookForIt follows the folder again where it is back.
func (r *folderRun) lookForIt() {
	if r.watcher.Add(r.dir) != nil {
		r.back.Reset(lookAgain)
		return
	}
	r.scan()
	r.quiet.Reset(r.settle)
}

// changed takes in what a file event is about; false means that it is unsettled.
func (r *folderRun) changed(name string) bool {
	if !isManifest(name) {
		// A mounted ConfigMap changes by its ..data link; its files have no events.
		if !strings.HasPrefix(filepath.Base(name), "..") {
			return true
		}
		r.scan()
		return false
	}
	if !r.read(name, false) {
		r.unsettled[name] = true
		return false
	}
	delete(r.unsettled, name)
	r.publish()
	return true
}

// conclude takes files as they are: nobody wrote to them for a while.
func (r *folderRun) conclude() {
	if len(r.unsettled) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.unsettled)) { // errors are told by file
		r.read(name, true)
	}
	clear(r.unsettled)
	r.publish()
}

// scan reads everything again.
func (r *folderRun) scan() {
	names, err := r.names()
	if err != nil {
		r.onError(fmt.Errorf("k8swatch: manifests: %w", err))
		return
	}
	for _, name := range r.known() {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if !r.read(name, false) {
			r.unsettled[name] = true
		}
	}
	r.publish()
}
