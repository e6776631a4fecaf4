package settings

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/filewatch"
	"github.com/hapticsdk/haptic/k8swatch"
)

// settle is how long a file must have been left alone before it is read: an editor
// may write it in pieces.
const settle = 50 * time.Millisecond

// source names what is followed: a Secret, a ConfigMap or, without a kind, a file.
type source struct{ kind, namespace, name string }

// String gives "Secret haproxy/credentials", and a file as it is.
func (s source) String() string {
	if s.kind == "" {
		return s.name
	}
	return s.kind + " " + s.object()
}

// object is namespace/name, "" for a file.
func (s source) object() string {
	if s.kind == "" {
		return ""
	}
	return s.namespace + "/" + s.name
}

// followed is a source that is followed.
type followed struct {
	stop  context.CancelFunc
	state func() k8swatch.State // nil for a file

	// get returns its data, that of a file under "", and its version. The error is
	// an unreadError while that is not known.
	get func() (data map[string][]byte, version string, err error)
}

// unreadError says that something has not been read yet.
type unreadError struct {
	what source
	err  error // why, where that is known
}

func (e *unreadError) Error() string {
	if e.err == nil {
		return "could not be read yet"
	}
	return "could not be read yet: " + e.err.Error()
}

func (e *unreadError) Unwrap() error { return e.err }

// follow follows a source until ctx ends or it is stopped; wg waits for that. It
// signals on changed when there is something to read, and at each change.
func (l *Live) follow(ctx context.Context, wg *sync.WaitGroup, s source, changed chan<- struct{}) (*followed, error) {
	var run func(context.Context)
	var f *followed
	var err error
	switch s.kind {
	case "Secret":
		f, run, err = followObject(l, s, "secrets", changed, func(s *corev1.Secret) map[string][]byte { return s.Data })
	case "ConfigMap":
		f, run, err = followObject(l, s, "configmaps", changed, configMapData)
	default:
		f, run, err = followFile(s, changed)
	}
	if err != nil {
		return nil, err
	}
	ctx, f.stop = context.WithCancel(ctx)
	wg.Go(func() { run(ctx) })
	return f, nil
}

func followFile(s source, changed chan<- struct{}) (*followed, func(context.Context), error) {
	watcher, err := filewatch.New(filepath.Dir(s.name))
	if err != nil {
		return nil, nil, err
	}
	run := func(ctx context.Context) {
		watcher.Run(ctx, settle, func(settled bool) {
			if settled {
				signal(changed)
			}
		})
	}
	return &followed{get: func() (map[string][]byte, string, error) {
		text, err := os.ReadFile(s.name)
		return map[string][]byte{"": text}, "", err
	}}, run, nil
}

func followObject[T k8swatch.Object](l *Live, s source, resource string, changed chan<- struct{}, data func(T) map[string][]byte) (*followed, func(context.Context), error) {
	single, err := k8swatch.NewSingle(l.opts.Source, corev1.SchemeGroupVersion.WithResource(resource), s.namespace, s.name,
		&k8swatch.SingleOptions[T]{Logger: l.log, OnChange: func(context.Context, k8swatch.SingleChange[T]) error {
			signal(changed)
			return nil
		}})
	if err != nil {
		return nil, nil, err
	}
	run := func(ctx context.Context) { _ = single.Run(ctx) } // ErrStarted alone
	return &followed{state: single.State, get: func() (map[string][]byte, string, error) {
		if state := single.State(); !state.Synced {
			return nil, "", &unreadError{s, state.Err}
		}
		obj, ok := single.Get()
		if !ok {
			return nil, "", errors.New("it does not exist")
		}
		return data(obj), obj.GetResourceVersion(), nil
	}}, run, nil
}

// configMapData are all keys of a ConfigMap.
func configMapData(c *corev1.ConfigMap) map[string][]byte {
	data := make(map[string][]byte, len(c.Data)+len(c.BinaryData))
	for key, text := range c.Data {
		data[key] = []byte(text)
	}
	for key, text := range c.BinaryData {
		data[key] = text
	}
	return data
}

// signal notes on a channel of size 1 that there is something to do.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is known
	}
}

// FollowFile applies the settings in a file, now and whenever it changes, until
// ctx ends. A file that is missing or wrong is reported as [Invalid]; the settings
// before stay in use. What failed because of the resources of the moment is tried
// again, after 1 s doubling to 60 s. The error says that the folder of the file
// cannot be watched.
func (l *Live) FollowFile(ctx context.Context, file string) error {
	return l.followSettings(ctx, source{name: file})
}

// FollowConfigMap applies the settings in a ConfigMap of the source, as
// [Live.FollowFile] does. The error is that of [k8swatch.NewSingle].
func (l *Live) FollowConfigMap(ctx context.Context, namespace, name string) error {
	return l.followSettings(ctx, source{"ConfigMap", namespace, name})
}

func (l *Live) followSettings(ctx context.Context, s source) error {
	ctx, stop := context.WithCancel(ctx)
	changed, wg := make(chan struct{}, 1), sync.WaitGroup{}
	defer wg.Wait()
	defer stop()
	f, err := l.follow(ctx, &wg, s, changed)
	if err != nil {
		return fmt.Errorf("settings %s: %w", s, err)
	}
	last, end := "", func() {}
	defer func() { end() }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		name, text, err := f.settings(s)
		var unread *unreadError
		now := fmt.Sprintf("%s %v", text, err)
		if errors.As(err, &unread) || now == last {
			continue
		}
		last = now
		end() // or it might come later, and take effect instead
		end = retry(ctx, func(ctx context.Context) error {
			if err != nil {
				return l.refuseUnread(s.String(), err)
			}
			return l.ApplyYAML(ctx, name, text)
		})
	}
}

// settings are those in a source.
func (f *followed) settings(s source) (name string, text []byte, err error) {
	data, _, err := f.get()
	if err == nil && s.kind != "" {
		text, err = only(s.String(), data)
		return s.String() + " " + ConfigMapKey, text, err
	}
	return s.name, data[""], err
}

// retry applies settings, and again those that failed for a reason that may pass.
// end stops it and waits.
func retry(ctx context.Context, apply func(context.Context) error) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait := time.Second; ; wait = min(2*wait, time.Minute) {
			err := apply(ctx)
			if err == nil || isWrong(err) {
				return
			}
			again := time.NewTimer(wait)
			select {
			case <-again.C:
			case <-ctx.Done():
				again.Stop()
				return
			}
		}
	}()
	return func() { stop(); <-done }
}

// refuseUnread reports settings that are not there.
func (l *Live) refuseUnread(name string, err error) error {
	var errs Errors
	if !errors.As(err, &errs) {
		errs = Errors{{File: name, Message: err.Error(), Err: err}}
	}
	c := &candidate{name: name, version: unreadable}
	l.begin(c)
	eventbus.Publish(l.opts.Bus, Parsed{Name: c.name, Version: c.version})
	return l.refuse(c, errs, time.Now())
}
