package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/follow"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
)

// FollowPods finds the instances that the settings in use select with
// dataplane.podSelector, now and whenever pods, settings, credentials or what
// dataplane.tls names change, and gives them to the loop of [Live.NewLoop] as its
// targets, until ctx ends. It needs [ProgramOptions.Namespace].
//
// It is [Live.Discovery] running: that says what is missing or wrong. How what is read
// does stands in [Live.State] beside what the settings watch. The error says that there
// is no loop, or no namespace.
func (l *Live) FollowPods(ctx context.Context) error {
	if err := l.canFollow("FollowPods"); err != nil {
		return err
	}
	return l.discovery.Run(ctx)
}

// AwaitPods waits until the pods that the first settings select are known, beside
// [Live.FollowPods] and before the loop runs: templates then see what a process before
// this one deployed as currentConfig. It returns that, nil for nothing. It waits 10 s for
// what cannot be read, and for nothing that is missing or wrong.
func (l *Live) AwaitPods(ctx context.Context) *dataplane.Config {
	select {
	case <-l.first:
	case <-ctx.Done():
		return nil
	}
	previous, _ := l.podsKnown(ctx) // events tell what is wrong
	return previous
}

// podsKnown waits until the pods are known, for [follow.ReadTime] at most, and gives
// templates what the first of them has.
func (l *Live) podsKnown(ctx context.Context) (*dataplane.Config, error) {
	bounded, cancel := context.WithTimeout(ctx, follow.ReadTime)
	defer cancel()
	err := l.discovery.Wait(bounded)
	previous, _ := l.discovery.Current(ctx) // the loop meets the error, too
	l.SetPrevious(previous)
	return previous, err
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
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { _ = l.discovery.Run(following) })
	_, err := l.podsKnown(ctx)
	return cmp.Or(ctx.Err(), err)
}

// canFollow says what the method of that name lacks.
func (l *Live) canFollow(method string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opts.Program.Namespace == "" {
		return fmt.Errorf("settings: %s needs ProgramOptions.Namespace, that of the controller", method)
	} else if l.loop == nil {
		return fmt.Errorf("settings: %s needs a loop, made with NewLoop", method)
	}
	return nil
}

// Discovery is what [Live.FollowPods] runs: it describes the credentials, and says why
// there are no instances.
func (l *Live) Discovery() *discover.Follower { return l.discovery }

// newDiscovery makes a follower of what the settings in use select.
func (l *Live) newDiscovery() (*discover.Follower, error) {
	return discover.NewFollower(discover.FollowerOptions{Source: l.opts.Source, Bus: l.opts.Bus, Logger: l.log,
		SetTargets: func(targets ...reconcile.Target) error {
			l.mu.Lock()
			loop := l.loop
			l.mu.Unlock()
			return loop.SetTargets(targets...) // canFollow found that there is one
		}})
}

// wanted says which instances a program selects: those among its own pods, also while
// another one takes effect, whose pods are for other credentials.
func (l *Live) wanted(use *inUse) discover.Wanted {
	s := use.program.settings
	d := s.Dataplane
	if len(d.PodSelector.MatchLabels) == 0 || l.opts.Program.Namespace == "" {
		return discover.Wanted{}
	}
	own := l.opts.Program.Namespace
	namespace, secret := l.secret()
	if s.Credentials.Name != "" {
		namespace, secret = cmp.Or(s.Credentials.Namespace, own), s.Credentials.Name
	}
	return discover.Wanted{
		Selector: d.PodSelector.String(),
		Pods:     discover.PodOptions{Namespace: d.PodSelector.Namespace, Container: d.Container, Port: d.Port, Scheme: d.Scheme},
		Secret:   namespace + "/" + secret,
		TLS:      d.TLS.discovery(own),
		Client:   &dataplane.ClientOptions{Layout: s.Layout(), KeepFiles: d.KeepFiles, Shared: d.Strategy == "shared"},
		List: func(ctx context.Context) (pods []*corev1.Pod, err error) {
			objs, err := l.read(use)[haproxyPods].list(ctx)
			for _, o := range objs {
				pods = append(pods, o.(*corev1.Pod))
			}
			return pods, err
		},
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
