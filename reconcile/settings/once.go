package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/hapticsdk/haptic/internal/follow"
	"github.com/hapticsdk/haptic/reconcile/discover"
)

// What follows is for a controller that does everything once, with Once or Preview of
// its loop: it applies settings, finds the pods, and lets the loop act.

// ApplyFile applies the settings in a file once, as [Live.ApplyYAML] does.
func (l *Live) ApplyFile(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return l.ApplyYAML(ctx, file, text)
}

// ApplyConfigMap applies the settings in a ConfigMap of the source once, as
// [Live.ApplyYAML] does. The error is also that it does not exist, or could not be read
// within 10 s.
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
	case errors.As(err, &wrong): // which name it
		return err
	case err != nil:
		return fmt.Errorf("settings %s: %w", s, err)
	}
	return l.ApplyYAML(ctx, name, text)
}

// FindPods is one look of [Live.FollowPods] with the settings in use: it gives the
// pods to the loop as its targets, and templates what the first of them has as
// currentConfig. The error says what is missing or wrong, what could not be read within
// 10 s, and that there is no pod.
func (l *Live) FindPods(ctx context.Context) error {
	if err := l.canFollow("FindPods"); err != nil {
		return err
	}
	if p := l.Program(); p == nil {
		return ErrNoSettings
	} else if len(p.settings.Dataplane.PodSelector.MatchLabels) == 0 {
		return errors.New("the settings select no pods: dataplane.podSelector is missing")
	}
	following, stop := context.WithCancel(ctx)
	bounded, cancel := context.WithTimeout(ctx, follow.ReadTime)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	defer cancel()
	wg.Go(func() { _ = l.discovery.Run(following) })
	if err := l.discovery.Wait(bounded); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	previous, _ := l.discovery.Current(ctx) // the loop meets the error, too
	l.SetPrevious(previous)
	return nil
}

// untilRead calls read, again at each change, until what it needs has been read once,
// for [follow.ReadTime] at most.
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
		case <-bounded.Done(): // read again says why
		}
	}
}

// secret is where the credentials are, where settings do not say.
func (l *Live) secret() (namespace, name string) {
	namespace, name, ok := strings.Cut(cmp.Or(l.opts.Secret, discover.DefaultSecret), "/")
	if !ok {
		namespace, name = l.opts.Program.Namespace, namespace
	}
	return namespace, name
}
