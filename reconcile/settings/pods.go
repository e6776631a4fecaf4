package settings

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
)

// FollowPods finds the instances that the settings in use select with
// dataplane.podSelector, now and whenever pods, settings, credentials or what
// dataplane.tls names change, and gives them to the loop of [Live.NewLoop] as its
// targets, until ctx ends. It needs [ProgramOptions.Namespace].
//
// What is missing or wrong is reported as [CredentialsInvalid], and so is what has
// not been read within 10 s; the loop keeps its targets meanwhile. How what is read
// does stands in [Live.State] beside what the settings watch. The error says that
// there is no loop, or no namespace.
func (l *Live) FollowPods(ctx context.Context) error {
	f, err := l.newPodFollower("FollowPods")
	if err != nil {
		return err
	}
	defer f.stop(ctx)
	for ctx.Err() == nil {
		f.look(ctx)
	}
	return nil
}

// newPodFollower makes a follower, to be stopped, for the method of that name.
func (l *Live) newPodFollower(method string) (*podFollower, error) {
	l.mu.Lock()
	loop := l.loop
	l.mu.Unlock()
	namespace := l.opts.Program.Namespace
	if namespace == "" {
		return nil, fmt.Errorf("settings: %s needs ProgramOptions.Namespace, that of the controller", method)
	} else if loop == nil {
		return nil, fmt.Errorf("settings: %s needs a loop, made with NewLoop", method)
	}
	return &podFollower{live: l, loop: loop, namespace: namespace, objects: map[source]*followed{}, versions: map[source]string{}}, nil
}

// stop follows nothing any more, and waits for that.
func (f *podFollower) stop(ctx context.Context) {
	f.live.readFor(nil)
	_ = f.follow(ctx) // of nothing: there is no error
	f.wg.Wait()
}

// podFollower is what FollowPods knows.
type podFollower struct {
	live      *Live
	loop      *reconcile.Loop
	namespace string

	wg       sync.WaitGroup
	objects  map[source]*followed
	versions map[source]string // in use

	clients *discover.Clients
	targets bool   // the loop has some from here
	said    string // what is wrong

	unread      source // what could not be read yet
	unreadSince time.Time

	tls      TLS
	material tlsMaterial
	config   *tls.Config // the same one until something changes: a target goes with it
}

// tlsMaterial is what a tls.Config is made of, in PEM.
type tlsMaterial struct{ ca, certificate, key string }

// readTime is how long what FollowPods reads may take before somebody is told. A
// request that fails is made again within 2 s.
const readTime = 10 * time.Second

// sourceError is what is wrong with something that the settings name.
type sourceError struct {
	setting string
	source  source
	err     error
}

func (e *sourceError) Error() string { return fmt.Sprintf("%s: %v: %v", e.setting, e.source, e.err) }
func (e *sourceError) Unwrap() error { return e.err }

// look finds the instances of now, and waits until there may be others.
func (f *podFollower) look(ctx context.Context) {
	err := f.find(ctx)
	f.live.readFor(f.reads())
	var overdue <-chan time.Time
	var unread *unreadError
	if errors.As(err, &unread) {
		if f.unread != unread.what {
			f.unread, f.unreadSince = unread.what, time.Now()
		}
		if left := readTime - time.Since(f.unreadSince); left > 0 {
			timer := time.NewTimer(left)
			defer timer.Stop()
			overdue, err = timer.C, nil // it may only be slow
		}
	} else {
		f.unread = source{}
	}
	if err != nil && ctx.Err() == nil {
		f.refuse(err)
	}
	select {
	case <-ctx.Done():
	case <-f.live.pods:
	case <-overdue:
	}
}

// find does everything once.
func (f *podFollower) find(ctx context.Context) error {
	program := f.live.Program()
	if program == nil {
		return nil
	}
	s := program.settings
	if len(s.Dataplane.PodSelector.MatchLabels) == 0 {
		if f.targets { // those were of other settings
			f.targets = false
			return f.loop.SetTargets()
		}
		return nil
	}
	secret := source{"Secret", cmp.Or(s.Credentials.Namespace, f.namespace), s.Credentials.Name}
	if secret.name == "" { // that of the controller
		secret.namespace, secret.name = f.live.secret()
	}
	ca, _ := s.Dataplane.TLS.ca(f.namespace)
	if err := f.follow(ctx, secret, ca, s.Dataplane.TLS.client(f.namespace)); err != nil {
		return err
	}
	now := map[source]string{}
	data, err := f.read("credentials", secret, now)
	if err != nil {
		return err
	}
	credentials, err := discover.ParseCredentials(data)
	if err != nil {
		return &sourceError{"credentials", secret, err}
	}
	config, err := f.tlsConfig(s.Dataplane.TLS, now)
	if err != nil {
		return err
	}
	for object, version := range now {
		if f.versions[object] != version || object == secret && f.said != "" {
			eventbus.Publish(f.live.opts.Bus, CredentialsUpdated{Secret: object.object(), Version: version})
		}
	}
	f.said, f.versions = "", now
	return f.setTargets(ctx, s, credentials, config)
}

func (f *podFollower) setTargets(ctx context.Context, s *Settings, credentials discover.Credentials, config *tls.Config) error {
	endpoints, err := s.endpoints(ctx, f.live.stores(), credentials)
	if err != nil {
		return err
	}
	for i := range endpoints {
		endpoints[i].TLS = config
	}
	if opts := s.clientOptions(); f.clients == nil || !reflect.DeepEqual(f.clients.Options, opts) {
		f.clients = &discover.Clients{Options: opts}
	}
	targets, err := f.clients.Targets(endpoints)
	f.targets = true
	return errors.Join(err, f.loop.SetTargets(targets...))
}

// endpoints are the Dataplane APIs of the pods that podSelector selects.
func (s *Settings) endpoints(ctx context.Context, stores Stores, credentials discover.Credentials) ([]dataplane.Endpoint, error) {
	objs, err := stores[haproxyPods].list(ctx)
	if err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	for _, o := range objs {
		pods = append(pods, o.(*corev1.Pod))
	}
	d := s.Dataplane
	return discover.Pods(pods, credentials, discover.PodOptions{Namespace: d.PodSelector.Namespace, Container: d.Container, Port: d.Port, Scheme: d.Scheme})
}

func (s *Settings) clientOptions() *dataplane.ClientOptions {
	d := s.Dataplane
	return &dataplane.ClientOptions{Layout: s.Layout(), KeepFiles: d.KeepFiles, Shared: d.Strategy == "shared"}
}

// follow follows these sources and nothing else.
func (f *podFollower) follow(ctx context.Context, sources ...source) error {
	wanted := map[source]bool{}
	for _, s := range sources {
		wanted[s] = s != source{}
	}
	for s, object := range f.objects {
		if !wanted[s] {
			object.stop()
			delete(f.objects, s)
		}
	}
	for _, s := range sources {
		if !wanted[s] || f.objects[s] != nil {
			continue
		}
		object, err := f.live.follow(ctx, &f.wg, s, f.live.pods)
		if err != nil {
			return &sourceError{"dataplane", s, err}
		}
		f.objects[s] = object
	}
	return nil
}

// read returns what a source has, and notes its version in now.
func (f *podFollower) read(setting string, s source, now map[source]string) (map[string][]byte, error) {
	data, version, err := f.objects[s].get()
	if err != nil {
		return nil, &sourceError{setting, s, err}
	}
	if s.kind != "" {
		now[s] = version
	}
	return data, nil
}

// tlsConfig returns the configuration for these settings.
func (f *podFollower) tlsConfig(t TLS, now map[source]string) (*tls.Config, error) {
	const setting = "dataplane.tls"
	var m tlsMaterial
	ca, key := t.ca(f.namespace)
	client := t.client(f.namespace)
	for _, part := range []struct {
		source source
		key    string
		to     *string
	}{{ca, key, &m.ca}, {client, corev1.TLSCertKey, &m.certificate}, {client, corev1.TLSPrivateKeyKey, &m.key}} {
		if part.source == (source{}) {
			continue
		}
		data, err := f.read(setting, part.source, now)
		if err != nil {
			return nil, err
		}
		if *part.to = string(data[part.key]); *part.to == "" && part.key != "" {
			return nil, &sourceError{setting, part.source, fmt.Errorf("the key %s is missing or empty", part.key)}
		}
	}
	if t == f.tls && m == f.material {
		return f.config, nil
	}
	config, err := t.Config([]byte(m.ca), []byte(m.certificate), []byte(m.key))
	if err != nil {
		wrong := client
		if _, err := certPool([]byte(m.ca)); err != nil && t.hasCA() {
			wrong = ca
		}
		return nil, &sourceError{setting, wrong, err}
	}
	f.tls, f.material, f.config = t, m, config
	return config, nil
}

// refuse reports what is wrong, but not twice the same in a row.
func (f *podFollower) refuse(err error) {
	said := err.Error()
	var unread *unreadError
	if errors.As(err, &unread) { // the words for why change from one request to the next
		said = "unread: " + unread.what.String()
	}
	if f.said == said {
		return
	}
	f.said = said
	invalid := CredentialsInvalid{Err: err}
	var at *sourceError
	if errors.As(err, &at) {
		invalid.Secret = at.source.object()
	}
	eventbus.Publish(f.live.opts.Bus, invalid)
}

// reads are what FollowPods watches beside what the settings name, by kind and
// name. It keeps what it read before: a source that fails later does not make the
// controller unready.
func (f *podFollower) reads() map[string]func() k8swatch.State {
	reads := map[string]func() k8swatch.State{}
	found := f.targets
	for s, object := range f.objects {
		if object.state != nil {
			reads[s.String()] = func() k8swatch.State {
				state := object.state()
				state.Synced = state.Synced || found
				return state
			}
		}
	}
	return reads
}

// readFor has the state tell what a follower reads.
func (l *Live) readFor(reads map[string]func() k8swatch.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads = reads
}
