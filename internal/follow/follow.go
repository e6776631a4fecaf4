// Package follow reads one Secret, ConfigMap or file, now and after each change.
package follow

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/internal/filewatch"
	"github.com/hapticsdk/haptic/k8swatch"
)

// settle is how long a file must stay unchanged before a read: an editor may write it in
// pieces.
const settle = 50 * time.Millisecond

// ReadTime is how long a source may stay unread before the caller reports it. The watcher
// repeats a failed request within 2 s.
const ReadTime = 10 * time.Second

// Source names a Secret or a ConfigMap. Without a Kind it is the file Name.
type Source struct {
	Kind            string // "Secret" or "ConfigMap"
	Namespace, Name string
}

// String returns "Secret haproxy/credentials", or the path of a file.
func (s Source) String() string {
	if s.Kind == "" {
		return s.Name
	}
	return s.Kind + " " + s.Object()
}

// Object returns namespace/name, "" for a file.
func (s Source) Object() string {
	if s.Kind == "" {
		return ""
	}
	return s.Namespace + "/" + s.Name
}

// Content is the content of a source.
type Content struct {
	Data    map[string][]byte // the content of a file is under ""
	Version string            // metadata.resourceVersion
	Created time.Time
}

// Followed is a source that [Start] follows.
type Followed struct {
	Stop  context.CancelFunc
	State func() k8swatch.State // nil for a file

	// Get returns the content. The error is an [UnreadError] before the first read of an
	// object.
	Get func() (Content, error)
}

// UnreadError says that the watcher has not read a source yet.
type UnreadError struct {
	What string
	Err  error // why; nil if unknown
}

func (e *UnreadError) Error() string {
	if e.Err == nil {
		return "could not be read yet"
	}
	return "could not be read yet: " + e.Err.Error()
}

func (e *UnreadError) Unwrap() error { return e.Err }

// Start follows a source until ctx ends or the caller calls Stop; wg waits for the end. It
// calls changed when there is something to read, and after each change.
func Start(ctx context.Context, wg *sync.WaitGroup, from k8swatch.Source, log *slog.Logger, s Source, changed func()) (*Followed, error) {
	var run func(context.Context)
	var f *Followed
	var err error
	switch s.Kind {
	case "Secret":
		f, run, err = object(from, log, s, "secrets", changed, func(s *corev1.Secret) map[string][]byte { return s.Data })
	case "ConfigMap":
		f, run, err = object(from, log, s, "configmaps", changed, ConfigMapData)
	default:
		f, run, err = file(s, changed)
	}
	if err != nil {
		return nil, err
	}
	ctx, f.Stop = context.WithCancel(ctx)
	wg.Go(func() { run(ctx) })
	return f, nil
}

func file(s Source, changed func()) (*Followed, func(context.Context), error) {
	watcher, err := filewatch.New(filepath.Dir(s.Name))
	if err != nil {
		return nil, nil, err
	}
	run := func(ctx context.Context) {
		watcher.Run(ctx, settle, func(settled bool) {
			if settled {
				changed()
			}
		})
	}
	return &Followed{Get: func() (Content, error) {
		text, err := os.ReadFile(s.Name)
		return Content{Data: map[string][]byte{"": text}}, err
	}}, run, nil
}

func object[T k8swatch.Object](
	from k8swatch.Source,
	log *slog.Logger,
	s Source,
	resource string,
	changed func(),
	data func(T) map[string][]byte,
) (*Followed, func(context.Context), error) {
	single, err := k8swatch.NewSingle(from, corev1.SchemeGroupVersion.WithResource(resource), s.Namespace, s.Name,
		&k8swatch.SingleOptions[T]{Logger: log, OnChange: func(context.Context, k8swatch.SingleChange[T]) error {
			changed()
			return nil
		}})
	if err != nil {
		return nil, nil, err
	}
	run := func(ctx context.Context) { _ = single.Run(ctx) } // ErrStarted alone
	return &Followed{State: single.State, Get: func() (Content, error) {
		if state := single.State(); !state.Synced {
			return Content{}, &UnreadError{s.String(), state.Err}
		}
		obj, ok := single.Get()
		if !ok {
			return Content{}, errors.New("it does not exist")
		}
		return Content{data(obj), obj.GetResourceVersion(), obj.GetCreationTimestamp().Time}, nil
	}}, run, nil
}

// ConfigMapData returns all keys of a ConfigMap, data and binaryData.
func ConfigMapData(c *corev1.ConfigMap) map[string][]byte {
	data := make(map[string][]byte, len(c.Data)+len(c.BinaryData))
	for key, text := range c.Data {
		data[key] = []byte(text)
	}
	for key, text := range c.BinaryData {
		data[key] = text
	}
	return data
}
