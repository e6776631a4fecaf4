package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/event"
)

// CredentialsUpdated says that credentials came, or changed. They are used from
// the next call on.
type CredentialsUpdated struct {
	Secret  string // namespace/name; of a ConfigMap where that has the CAs
	Version string // metadata.resourceVersion
}

// Report implements [event.Event].
func (e CredentialsUpdated) Report() event.Report {
	return event.Report{Name: "credentials.updated", Level: slog.LevelInfo, Sentence: "credentials are in use",
		Fields: []slog.Attr{slog.String("secret", e.Secret), slog.String("version", e.Version)}}
}

// CredentialsInvalid says why the credentials of the settings cannot be used.
// Those before stay in use.
type CredentialsInvalid struct {
	Secret string // namespace/name; "" where the settings name none, or a file
	Err    error
}

// Report implements [event.Event].
func (e CredentialsInvalid) Report() event.Report {
	return event.Report{Name: "credentials.invalid", Level: slog.LevelError, Sentence: fmt.Sprintf("no HAProxy can be reached: %v", e.Err), Err: e.Err,
		Fields: []slog.Attr{slog.String("secret", e.Secret)}}
}

// FollowPods finds the HAProxys that the settings in use select with
// dataplane.podSelector, now and whenever pods, settings or the Secret of the
// credentials change, and gives them to the loop of [Live.NewLoop] as its targets,
// until ctx ends. namespace is that of the controller, where a Secret is looked for
// that the settings name without one. A Secret that is missing or wrong, or what
// dataplane.tls names, is reported as [CredentialsInvalid], and so is one that has
// not been read within 10 s; the HAProxys that the loop has stay its targets
// meanwhile. An instance that refuses the credentials has the Secret read once more,
// past the watch. How what is read does stands in [Live.State] beside what the
// settings watch. The error says that there is no loop.
func (l *Live) FollowPods(ctx context.Context, namespace string) error {
	l.mu.Lock()
	loop := l.loop
	l.mu.Unlock()
	if loop == nil {
		return errors.New("reconcile: FollowPods needs a loop, made with NewLoop")
	}
	f := &podFollower{live: l, loop: loop, namespace: namespace, tls: &tlsFollower{live: l}}
	defer f.wg.Wait()
	defer f.tls.end()
	defer f.unfollow()
	defer l.readFor(nil)
	for ctx.Err() == nil {
		f.look(ctx)
	}
	return nil
}

// podFollower is what FollowPods knows.
type podFollower struct {
	live      *Live
	loop      *reconcile.Loop
	namespace string

	clients *discover.Clients
	targets bool // the loop has some from here

	ref  SecretRef // that is watched
	stop context.CancelFunc
	wg   sync.WaitGroup

	secret  *k8swatch.Single[*corev1.Secret]
	version string // of the credentials in use
	said    string // what is wrong

	unread      string // what could not be read yet
	unreadSince time.Time

	tls *tlsFollower
}

// readTime is how long what FollowPods reads may take before somebody is told. A
// request that fails is made again within 2 s.
const readTime = 10 * time.Second

// unreadError says that something has not been read yet.
type unreadError struct {
	what string
	err  error // why, where that is known
}

func (e *unreadError) Error() string {
	if e.err == nil {
		return "could not be read yet"
	}
	return "could not be read yet: " + e.err.Error()
}

func (e *unreadError) Unwrap() error { return e.err }

// look finds the HAProxys of now, and waits until there may be others.
func (f *podFollower) look(ctx context.Context) {
	err := f.find(ctx)
	f.live.readFor(f)
	var overdue <-chan time.Time
	switch left := f.patience(err); {
	case left > 0:
		timer := time.NewTimer(left)
		defer timer.Stop()
		overdue = timer.C
	case err != nil && ctx.Err() == nil:
		f.refuse(err)
	}
	select {
	case <-ctx.Done():
	case <-f.live.pods:
	case <-overdue:
	}
}

// patience is how much longer what has not been read may take.
func (f *podFollower) patience(err error) time.Duration {
	var unread *unreadError
	if !errors.As(err, &unread) {
		f.unread = ""
		return 0
	}
	if f.unread != unread.what {
		f.unread, f.unreadSince = unread.what, time.Now()
	}
	return readTime - time.Since(f.unreadSince)
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
	if err := f.follow(ctx, s.Credentials); err != nil {
		return err
	}
	if state := f.secret.State(); !state.Synced {
		return fmt.Errorf("credentials: the Secret %w", &unreadError{"Secret " + f.ref.String(), state.Err})
	}
	secret, _ := f.secret.Get()
	credentials, err := credentialsIn(secret)
	if err != nil {
		return err
	}
	tlsConfig, err := f.tls.now(ctx, s.Dataplane.TLS, f.namespace)
	if err != nil {
		return err
	}
	if f.said != "" || f.version != secret.ResourceVersion {
		f.said, f.version = "", secret.ResourceVersion
		eventbus.Publish(f.live.opts.Bus, CredentialsUpdated{Secret: f.ref.String(), Version: f.version})
	}
	instances, err := s.Endpoints(ctx, f.live.Stores(), credentials)
	if err != nil {
		return err
	}
	for i := range instances {
		instances[i].TLS = tlsConfig
	}
	if opts := s.ClientOptions(); f.clients == nil || !reflect.DeepEqual(f.clients.Options, opts) {
		ref := f.ref
		f.clients = &discover.Clients{Options: opts, Reread: func(ctx context.Context) (discover.Credentials, error) { return f.reread(ctx, ref) }}
	}
	targets, err := f.clients.Targets(instances)
	f.targets = true
	return errors.Join(err, f.loop.SetTargets(targets...))
}

// String gives namespace/name.
func (r SecretRef) String() string { return r.Namespace + "/" + r.Name }

// follow watches the Secret that the settings name.
func (f *podFollower) follow(ctx context.Context, ref SecretRef) error {
	if ref.Name == "" {
		f.unfollow()
		return errors.New("the settings select pods, and have no credentialsSecretRef")
	}
	ref.Namespace = cmp.Or(ref.Namespace, f.namespace)
	if ref == f.ref {
		return nil
	}
	f.unfollow()
	secret, err := k8swatch.NewSingle(f.live.opts.Source, secretResource, ref.Namespace, ref.Name,
		&k8swatch.SingleOptions[*corev1.Secret]{Logger: f.live.log, OnChange: func(context.Context, k8swatch.SingleChange[*corev1.Secret]) error {
			f.live.wakePods()
			return nil
		}})
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	f.ref, f.secret, f.version = ref, secret, ""
	ctx, f.stop = context.WithCancel(ctx)
	f.wg.Go(func() { _ = secret.Run(ctx) }) // ErrStarted alone
	return nil
}

func (f *podFollower) unfollow() {
	if f.stop != nil {
		f.stop()
	}
	f.ref, f.secret, f.stop = SecretRef{}, nil, nil
}

// refuse reports what is wrong, but not twice the same in a row.
func (f *podFollower) refuse(err error) {
	said := err.Error()
	var unread *unreadError
	if errors.As(err, &unread) { // the words for why change from one request to the next
		said = "unread: " + unread.what
	}
	if f.said == said {
		return
	}
	f.said = said
	invalid := CredentialsInvalid{Err: err}
	var tls *objectError
	switch {
	case errors.As(err, &tls):
		if tls.ref != (objectRef{}) {
			invalid.Secret = tls.ref.namespace + "/" + tls.ref.name
		}
	case f.ref.Name != "":
		invalid.Secret = f.ref.String()
	}
	eventbus.Publish(f.live.opts.Bus, invalid)
}

var secretResource = corev1.SchemeGroupVersion.WithResource("secrets")

// credentialsIn reads a Secret, nil for one that does not exist.
func credentialsIn(secret *corev1.Secret) (discover.Credentials, error) {
	if secret == nil {
		return discover.Credentials{}, errors.New("credentials: the Secret does not exist")
	}
	return discover.ParseCredentials(secret.Data)
}

// reread asks the source for the Secret, since a watch may lag behind.
func (f *podFollower) reread(ctx context.Context, ref SecretRef) (discover.Credentials, error) {
	lister, err := f.live.opts.Source.ListWatch(secretResource, ref.Namespace, func(o *metav1.ListOptions) {
		o.FieldSelector = "metadata.name=" + ref.Name
	})
	if err != nil {
		return discover.Credentials{}, err
	}
	list, err := lister.ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return discover.Credentials{}, err
	}
	var found *corev1.Secret
	err = meta.EachListItem(list, func(o runtime.Object) error {
		if secret, ok := o.(*corev1.Secret); ok && secret.Name == ref.Name {
			found = secret
		}
		return nil
	})
	if err != nil {
		return discover.Credentials{}, err
	}
	return credentialsIn(found)
}

// reads are what FollowPods watches beside what the settings name, by kind and
// name. What it found before stays in use, and what does not come then keeps
// nobody from being ready.
func (f *podFollower) reads() map[string]func() k8swatch.State {
	reads := map[string]func() k8swatch.State{}
	found := f.targets
	add := func(name string, state func() k8swatch.State) {
		reads[name] = func() k8swatch.State {
			s := state()
			s.Synced = s.Synced || found
			return s
		}
	}
	if f.secret != nil {
		add("Secret "+f.ref.String(), f.secret.State)
	}
	for ref, o := range f.tls.objects {
		add(ref.String(), o.state)
	}
	return reads
}

// readFor has the state tell what a follower reads; nil: nothing any more.
func (l *Live) readFor(f *podFollower) {
	var reads map[string]func() k8swatch.State
	if f != nil {
		reads = f.reads()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads = reads
}

// wakePods has FollowPods look again.
func (l *Live) wakePods() {
	select {
	case l.pods <- struct{}{}:
	default: // it will
	}
}
