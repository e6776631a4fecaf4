// Package filewatch reports that something in a directory may have changed.
package filewatch

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// lookAgain is the interval at which Run looks for a missing directory.
const lookAgain = 200 * time.Millisecond

// patience bounds how long a stream of changes may delay a settled call, in settle times.
const patience = 10

// Watcher follows one directory. Make one with [New] and run it once.
type Watcher struct {
	dir    string
	notify *fsnotify.Watcher
}

// New watches the entries of a directory, without its subdirectories. To follow a file,
// watch its directory: editors replace files, and a file of a mounted ConfigMap or Secret
// changes by a link beside it. The error says why New cannot watch the directory.
// [Watcher.Run] frees the resources of New.
func New(dir string) (*Watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", dir, err)
	}
	w := &Watcher{dir: filepath.Clean(dir), notify: notify}
	if err := notify.Add(w.dir); err != nil {
		notify.Close()
		return nil, fmt.Errorf("watching %s: %w", dir, err)
	}
	return w, nil
}

// Run calls changed at the start, with settled, and then for changes until ctx ends. It
// calls changed at once without settled. It calls it with settled after a time of settle
// without changes, but at the latest after ten times that. Calls do not overlap, and
// several changes may share one call. During endless changes Run waits between calls, so
// they take about a tenth of the time. A change of the mode counts as a change, and so does
// a directory that goes or comes back.
func (w *Watcher) Run(ctx context.Context, settle time.Duration, changed func(settled bool)) {
	defer w.notify.Close()
	quiet, back := time.NewTimer(0), time.NewTimer(lookAgain)
	defer quiet.Stop()
	defer back.Stop()
	back.Stop()
	var first time.Time // of the unsettled changes; zero without one
	gone := false       // the directory is gone, and Run does not watch it
	var next time.Time  // the earliest time of the next call
	for {
		select {
		case <-ctx.Done():
			return
		case <-quiet.C:
			first = time.Time{}
			if !gone || w.notify.Add(w.dir) != nil {
				changed(true)
				continue
			}
			gone = false // it is back, and may not be complete
			back.Stop()
		case <-back.C:
			if w.notify.Add(w.dir) != nil {
				back.Reset(lookAgain)
				continue
			}
			gone = false
		case e := <-w.notify.Events:
			if w.drain(ctx, e, next) {
				_ = w.notify.Remove(w.dir) // a directory that comes back is another one
				gone = true
				back.Reset(0)
			}
		case <-w.notify.Errors: // events were lost
		}
		if first.IsZero() {
			first = time.Now()
		}
		begun := time.Now()
		changed(false)
		next = time.Now().Add(min(9*time.Since(begun), settle))
		quiet.Reset(min(settle, time.Until(first.Add(patience*settle))))
	}
}

// drain discards events until a time, and reports whether the directory is gone.
func (w *Watcher) drain(ctx context.Context, e fsnotify.Event, until time.Time) (gone bool) {
	end := time.NewTimer(time.Until(until))
	defer end.Stop()
	for {
		if e.Name == w.dir && e.Has(fsnotify.Remove|fsnotify.Rename) {
			return true
		}
		select {
		case e = <-w.notify.Events:
		case <-end.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
