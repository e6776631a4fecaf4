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
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
)

// FollowPods finds the instances that dataplane.podSelector of the settings in use selects. It
// gives them to the loop of [Live.NewLoop] as its targets, until ctx ends. It looks again
// whenever pods, settings, credentials or the sources of dataplane.tls change. It needs
// [ProgramOptions.Namespace].
//
// FollowPods runs [Live.Discovery], which says what is missing or wrong. [Live.State] has the
// states of its watches. FollowPods returns an error if there is no loop or no namespace.
func (l *Live) FollowPods(ctx context.Context) error {
	if err := l.canFollow("FollowPods"); err != nil {
		return err
	}
	return l.discovery.Run(ctx)
}

// AwaitPods waits until the pods of the first settings are known. Call it beside
// [Live.FollowPods] and before the loop runs. As currentConfig, templates then see the
// configuration that an earlier process deployed. AwaitPods returns that configuration, or nil
// if there is none. It waits at most 10 s for a source that cannot be read, and not for one
// that is missing or wrong.
func (l *Live) AwaitPods(ctx context.Context) *dataplane.Config {
	select {
	case <-l.first:
	case <-ctx.Done():
		return nil
	}
	previous, _ := l.podsKnown(ctx) // events report the error
	return previous
}

// podsKnown waits until the pods are known, at most [follow.ReadTime]. It then sets the
// currentConfig of templates to the configuration of the first pod that has one.
func (l *Live) podsKnown(ctx context.Context) (*dataplane.Config, error) {
	bounded, cancel := context.WithTimeout(ctx, follow.ReadTime)
	defer cancel()
	err := l.discovery.Wait(bounded)
	previous, _ := l.discovery.Current(ctx) // the loop will meet the same error
	l.SetPrevious(previous)
	return previous, err
}

// FindPods is one look of [Live.FollowPods] with the settings in use. It gives the pods to the
// loop as its targets. As currentConfig, templates get the configuration of the first pod that
// has one. The error says what is missing or wrong, what could not be read within 10 s,
// or that there is no pod.
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

// canFollow returns an error that names what the method needs.
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

// Discovery returns the follower that [Live.FollowPods] runs. It describes the credentials,
// and says why there are no instances.
func (l *Live) Discovery() *discover.Follower { return l.discovery }

// newDiscovery returns the follower that finds the instances for the loop.
func (l *Live) newDiscovery() (*discover.Follower, error) {
	return discover.NewFollower(discover.FollowerOptions{Source: l.opts.Source, Bus: l.opts.Bus, Logger: l.log,
		SetTargets: func(targets ...reconcile.Target) error {
			l.mu.Lock()
			loop := l.loop
			l.mu.Unlock()
			return loop.SetTargets(targets...) // canFollow has checked that there is a loop
		}})
}

// wanted returns the instances that a program selects. Its List reads the program's own pods
// as they are now, even while another program takes effect: the other pods are for other
// credentials.
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
		List: func(context.Context) ([]*corev1.Pod, error) {
			w := use.watchers[haproxyPods]
			if w == nil || w.full == nil {
				return nil, nil
			}
			return k8swatch.Read[*corev1.Pod](w.full.Snapshot()).List(), nil
		},
	}
}

// secret returns the Secret with the credentials for settings that name none.
func (l *Live) secret() (namespace, name string) {
	namespace, name, ok := strings.Cut(cmp.Or(l.opts.Secret, discover.DefaultSecret), "/")
	if !ok {
		namespace, name = l.opts.Program.Namespace, namespace
	}
	return namespace, name
}
