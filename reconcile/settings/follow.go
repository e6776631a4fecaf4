package settings

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
)

// settingsSettle is how long a file of settings must have been left alone before
// it is read: an editor may write it in pieces.
const settingsSettle = 50 * time.Millisecond

// follower applies the newest settings, and tries those again that failed for a
// reason that may pass.
type follower struct {
	live *Live
	wg   sync.WaitGroup
	stop context.CancelFunc // of the newest attempt; nil before the first
	done chan struct{}      // closed when that has ended
}

// apply is called by one goroutine at a time. It does not block.
func (f *follower) apply(ctx context.Context, try func(context.Context) error) {
	if f.stop != nil {
		f.stop()
	}
	ctx, f.stop = context.WithCancel(ctx)
	before, done := f.done, make(chan struct{})
	f.done = done
	f.wg.Go(func() {
		defer close(done)
		if before != nil {
			<-before // or it might come later, and supersede this one
		}
		for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, time.Minute) {
			err := try(ctx)
			var wrong Errors
			var tried *trialError
			if err == nil || errors.Is(err, ErrSuperseded) || errors.As(err, &wrong) && !errors.As(err, &tried) {
				return
			}
			again := time.NewTimer(wait)
			select {
			case <-ctx.Done():
			case <-again.C:
			}
			again.Stop()
		}
	})
}

// end stops and waits.
func (f *follower) end() {
	if f.stop != nil {
		f.stop()
	}
	f.wg.Wait()
}

// FollowFile applies the settings in a file, now and whenever it changes, until
// ctx ends. A file that is missing or wrong is reported as [Invalid]; the
// settings before stay in use. What failed because of the resources of the moment is
// tried again, after 1 s doubling to 60 s. The error says that the folder of the
// file cannot be watched.
func (l *Live) FollowFile(ctx context.Context, file string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("settings %s: %w", file, err)
	}
	defer watcher.Close()
	// The folder: editors replace files, and a mounted ConfigMap is a link in it.
	if err := watcher.Add(filepath.Dir(file)); err != nil {
		return fmt.Errorf("settings %s: %w", file, err)
	}
	f := &follower{live: l}
	defer f.end()
	settled := time.NewTimer(0)
	defer settled.Stop()
	last, first := "", true
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-watcher.Errors:
			l.log.Warn("watching the file of settings", "file", file, "error", err)
			settled.Reset(settingsSettle)
		case <-watcher.Events:
			settled.Reset(settingsSettle)
		case <-settled.C:
			data, err := os.ReadFile(file)
			now := string(data)
			if err != nil {
				now = "error: " + err.Error()
			}
			if !first && now == last {
				continue
			}
			last, first = now, false
			f.apply(ctx, func(ctx context.Context) error {
				if err != nil {
					return l.refuseUnread(file, err)
				}
				return l.ApplyYAML(ctx, file, data)
			})
		}
	}
}

// FollowConfigMap applies the settings in a ConfigMap of the source, as
// [Live.FollowFile] does. The error is that of [k8swatch.NewSingle].
func (l *Live) FollowConfigMap(ctx context.Context, namespace, name string) error {
	f := &follower{live: l}
	defer f.end()
	single, err := k8swatch.NewSingle(l.opts.Source, corev1.SchemeGroupVersion.WithResource("configmaps"), namespace, name,
		&k8swatch.SingleOptions[*corev1.ConfigMap]{Logger: l.log, OnChange: func(_ context.Context, c k8swatch.SingleChange[*corev1.ConfigMap]) error {
			f.apply(ctx, func(ctx context.Context) error {
				if c.Deleted {
					return l.refuseUnread("ConfigMap "+namespace+"/"+name, errors.New("it does not exist"))
				}
				text, err := only("ConfigMap "+namespace+"/"+name, configMapData(c.Object))
				if err != nil {
					return l.refuseUnread("ConfigMap "+namespace+"/"+name, err)
				}
				return l.ApplyYAML(ctx, "ConfigMap "+namespace+"/"+name+" "+ConfigMapKey, text)
			})
			return nil
		}})
	if err != nil {
		return err
	}
	return single.Run(ctx)
}

// refuseUnread reports settings that are not there; trying again is for whoever
// sees them come.
func (l *Live) refuseUnread(name string, err error) error {
	var errs Errors
	if !errors.As(err, &errs) {
		errs = Errors{{File: name, Message: err.Error(), Err: err}}
	}
	c := &candidate{name: name, version: "unreadable"}
	l.begin(c)
	eventbus.Publish(l.opts.Bus, Parsed{Name: c.name, Version: c.version})
	return l.refuse(c, errs, time.Now())
}
