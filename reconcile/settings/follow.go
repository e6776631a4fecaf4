package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/follow"
)

// FollowFile applies the settings in a file, now and whenever it changes, until ctx ends. If
// the file is missing or wrong, FollowFile publishes an [Invalid] and the settings before stay
// in use. Settings that fail because of the current resources are tried again, after 1 s
// doubling to 60 s. FollowFile returns an error if it cannot watch the folder of the file.
func (l *Live) FollowFile(ctx context.Context, file string) error {
	return l.followSettings(ctx, follow.Source{Name: file})
}

// FollowConfigMap applies the settings in a ConfigMap of the source, as [Live.FollowFile]
// does. The error comes from [k8swatch.NewSingle].
func (l *Live) FollowConfigMap(ctx context.Context, namespace, name string) error {
	return l.followSettings(ctx, follow.Source{Kind: "ConfigMap", Namespace: namespace, Name: name})
}

func (l *Live) followSettings(ctx context.Context, s follow.Source) error {
	ctx, stop := context.WithCancel(ctx)
	changed, wg := make(chan struct{}, 1), sync.WaitGroup{}
	defer wg.Wait()
	defer stop()
	f, err := follow.Start(ctx, &wg, l.opts.Source, l.log, s, signal(changed))
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
		name, text, err := textOf(f, s)
		var unread *follow.UnreadError
		now := fmt.Sprintf("%s %v", text, err)
		if errors.As(err, &unread) || now == last {
			continue
		}
		last = now
		end() // otherwise the older settings might take effect later
		end = retry(ctx, func(ctx context.Context) error {
			if err != nil {
				return l.refuseUnread(s.String(), err)
			}
			return l.ApplyYAML(ctx, name, text)
		})
	}
}

// signal returns a function that notes a change on a channel of size 1.
func signal(c chan<- struct{}) func() {
	return func() {
		select {
		case c <- struct{}{}:
		default: // already noted
		}
	}
}

// textOf returns the settings in a source.
func textOf(f *follow.Followed, s follow.Source) (name string, text []byte, err error) {
	content, err := f.Get()
	if err == nil && s.Kind != "" {
		text, err = only(s.String(), content.Data)
		return s.String() + " " + ConfigMapKey, text, err
	}
	return s.Name, content.Data[""], err
}

// retry applies settings until they take effect or are wrong as such. end stops it and waits
// for it.
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

// refuseUnread reports settings that could not be read.
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

// ApplyFile applies the settings in a file once, as [Live.ApplyYAML] does.
func (l *Live) ApplyFile(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return l.ApplyYAML(ctx, file, text)
}

// ApplyConfigMap applies the settings in a ConfigMap of the source once, as [Live.ApplyYAML]
// does. It is also an error if the ConfigMap does not exist or cannot be read within 10 s.
func (l *Live) ApplyConfigMap(ctx context.Context, namespace, name string) error {
	s := follow.Source{Kind: "ConfigMap", Namespace: namespace, Name: name}
	following, stop := context.WithCancel(ctx)
	changed, wg := make(chan struct{}, 1), sync.WaitGroup{}
	defer wg.Wait()
	defer stop()
	f, err := follow.Start(following, &wg, l.opts.Source, l.log, s, signal(changed))
	if err != nil {
		return fmt.Errorf("settings %s: %w", s, err)
	}
	var text []byte
	err = untilRead(ctx, changed, func() (err error) {
		name, text, err = textOf(f, s)
		return err
	})
	var wrong Errors
	switch {
	case errors.As(err, &wrong): // wrong already names the ConfigMap
		return err
	case err != nil:
		return fmt.Errorf("settings %s: %w", s, err)
	}
	return l.ApplyYAML(ctx, name, text)
}

// untilRead calls read, and again at each change, until the source has been read once. It
// waits at most [follow.ReadTime].
func untilRead(ctx context.Context, changed <-chan struct{}, read func() error) error {
	bounded, stop := context.WithTimeout(ctx, follow.ReadTime)
	defer stop()
	for {
		err := read()
		var unread *follow.UnreadError
		if !errors.As(err, &unread) || bounded.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
		select {
		case <-changed:
		case <-bounded.Done(): // one more read says why
		}
	}
}
