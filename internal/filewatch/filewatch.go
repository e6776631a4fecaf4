// Package filewatch tells that something in a directory may have changed.
package filewatch

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// lookAgain is how often a directory that is gone is looked for.
const lookAgain = 200 * time.Millisecond

// patience is how many settle times a stream of changes may put off a call that
// waits for its end.
const patience = 10

// Watcher follows one directory. Make one with [New] and run it once.
type Watcher struct {
	dir    string
	notify *fsnotify.Watcher
}

// New watches the entries of a directory, not those of its subdirectories. To
// follow a file, watch its directory: editors replace files, and a file of a
// mounted ConfigMap or Secret changes by a link beside it. The error says that the
// directory cannot be watched. [Watcher.Run] frees what New takes.
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

// Run calls changed at the start, with settled, and then for changes until ctx
// ends: at once without settled, and with it once nothing has happened for settle,
// or after ten times that. Calls do not overlap, and several changes may be one
// call: where changes do not end, calls take a tenth of the time.
// A change of the mode counts, and so does a directory that goes or is back.
func (w *Watcher) Run(ctx context.Context, settle time.Duration, changed func(settled bool)) {
	defer w.notify.Close()
	quiet, back := time.NewTimer(0), time.NewTimer(lookAgain)
	defer quiet.Stop()
	defer back.Stop()
	back.Stop()
	var first time.Time // of the changes that are not settled; zero without one
	gone := false       // and not followed
	var next time.Time  // call, at the earliest
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
				_ = w.notify.Remove(w.dir) // it is another one that will be back
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

// drain takes the events that come until a time, and reports whether the directory
// went.
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
