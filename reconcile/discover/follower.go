package discover

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/internal/follow"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
)

// Wanted says which instances to use, pods or URLs, and how to open them, with a Secret or
// with Credentials.
type Wanted struct {
	URLs     []string   // of Dataplane APIs
	Selector string     // labels of pods, as in kubectl -l
	Pods     PodOptions // Namespace is required with Selector

	// List returns the pods of Selector, for a program that already watches them and calls
	// [Follower.Look] when they change. If nil, the follower watches them.
	List func(context.Context) ([]*corev1.Pod, error)

	Secret      string      // namespace/name, with the keys of [ParseCredentials]
	Credentials Credentials // such as [CredentialsFromEnv]
	TLS         TLS
	Client      *dataplane.ClientOptions
}

// FollowerOptions of a [Follower]. SetTargets is required. Source is required if Wanted names
// pods or a Secret.
type FollowerOptions struct {
	Source     k8swatch.Source
	SetTargets func(...reconcile.Target) error // [reconcile.Loop.SetTargets]

	// OnFound gets all instances, and all pods with the labels, before each SetTargets. Calls
	// do not overlap.
	OnFound func(context.Context, []dataplane.Endpoint, []*corev1.Pod)

	Bus    *eventbus.Bus // gets [CredentialsUpdated] and [CredentialsInvalid]; if nil, no events are published
	Logger *slog.Logger  // nil means slog.Default()
}

// Follower finds the instances and gives them to a loop as its targets. It looks again
// whenever pods, the Secret or the sources of [TLS] change. Call Set, and run the follower
// beside the loop:
//
//	follower, err := discover.NewFollower(discover.FollowerOptions{Source: cluster, SetTargets: loop.SetTargets, Bus: bus})
//	err = follower.Set(discover.Wanted{Selector: "app=haproxy", Pods: discover.PodOptions{Namespace: own},
//		Secret: own + "/" + discover.DefaultSecret})
//	go follower.Run(ctx)
//
// The follower publishes each problem of credentials once, as a [CredentialsInvalid], and
// shows it in [Follower.Credentials]. If new credentials are invalid, the ones in use for the
// same instances stay in use, also for new pods. [Follower.Check] says why there are no
// instances. An unread source counts as a problem after 10 s. In every case, the loop keeps
// its targets until the follower has better ones. All methods may be called concurrently.
type Follower struct {
	opts FollowerOptions
	wake chan struct{} // of size 1
	wg   sync.WaitGroup

	// Only Run uses these.
	versions  map[follow.Source]string // versions in use
	reported  string                   // last published problem of credentials
	late      [2]lateness              // of credentials, and of instances
	tls       TLS
	ca        string // PEM of tlsConfig
	tlsConfig *tls.Config

	mu       sync.Mutex
	running  bool
	wanted   *Wanted
	followed map[follow.Source]*follow.Followed
	pods     *podWatch // nil: the follower watches no pods
	clients  *Clients
	opened   *opened // nil: the loop has no targets from this follower
	info     CredentialsInfo
	created  time.Time     // of the Secret
	wrong    error         // problem of credentials
	missing  error         // why there are no instances
	unready  error         // both, even while they are only slow
	known    chan struct{} // closed once everything has been read
}

// opened holds the means that opened the instances.
type opened struct {
	key         string // of [Wanted]
	credentials Credentials
	config      *tls.Config
}

// podWatch watches pods.
type podWatch struct {
	of      string // namespace and labels
	watcher *k8swatch.Watcher
	stop    context.CancelFunc
}

// sourceError says what is wrong with a Secret or a file.
type sourceError struct {
	of     string // "credentials" or "TLS"
	source follow.Source
	err    error
}

func (e *sourceError) Error() string { return fmt.Sprintf("%s: %v: %v", e.of, e.source, e.err) }
func (e *sourceError) Unwrap() error { return e.err }

// NewFollower returns a follower that looks for nothing until Set.
func NewFollower(opts FollowerOptions) (*Follower, error) {
	if opts.SetTargets == nil {
		return nil, errors.New("discover: FollowerOptions.SetTargets is missing")
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	return &Follower{opts: opts, wake: make(chan struct{}, 1), known: make(chan struct{}), followed: map[follow.Source]*follow.Followed{}}, nil
}

// Set replaces the wanted instances. If a field is wrong, the error names it and nothing
// changes.
func (f *Follower) Set(w Wanted) error {
	if err := w.check(f.opts.Source != nil); err != nil {
		return err
	}
	f.mu.Lock()
	f.wanted = &w
	f.forget() // until now, Wait was for another Wanted
	f.mu.Unlock()
	f.Look()
	return nil
}

// Look makes the follower look again soon. It never blocks.
func (f *Follower) Look() {
	select {
	case f.wake <- struct{}{}:
	default: // a look is already due
	}
}

// Run follows until ctx ends. It returns nil when everything that it started has ended. A
// second Run at the same time is an error.
func (f *Follower) Run(ctx context.Context) error {
	f.mu.Lock()
	again := f.running
	f.running = true
	f.mu.Unlock()
	if again {
		return errors.New("discover: the follower is already running")
	}
	for ctx.Err() == nil {
		f.look(ctx)
	}
	_ = f.follow(ctx)
	f.stopPods()
	f.wg.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = false
	f.forget()
	return nil
}

// forget makes Wait wait for the next look.
func (f *Follower) forget() {
	select {
	case <-f.known:
		f.known = make(chan struct{})
	default:
	}
}

// Wait returns once everything that Set names has been read, or when ctx ends. The error says
// what is wrong with credentials, and why there are no instances.
func (f *Follower) Wait(ctx context.Context) error {
	f.mu.Lock()
	known := f.known
	f.mu.Unlock()
	select {
	case <-known:
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return cmp.Or(f.unready, ctx.Err())
}

// Current calls [Clients.Current] for the current instances.
func (f *Follower) Current(ctx context.Context) (*dataplane.Config, error) {
	f.mu.Lock()
	clients := f.clients
	f.mu.Unlock()
	if clients == nil {
		return nil, nil
	}
	return clients.Current(ctx)
}

// look finds the current instances, then waits until they may have changed.
func (f *Follower) look(ctx context.Context) {
	f.mu.Lock()
	w := f.wanted
	f.mu.Unlock()
	var again <-chan time.Time
	if w != nil {
		wrong, missing := f.find(ctx, w)
		if ctx.Err() != nil {
			return
		}
		if after := f.report(w, wrong, missing); after > 0 {
			timer := time.NewTimer(after)
			defer timer.Stop()
			again = timer.C
		}
	}
	select {
	case <-ctx.Done():
	case <-f.wake:
	case <-again:
	}
}

// find looks once. wrong is the error of the credentials, missing the error of the instances.
func (f *Follower) find(ctx context.Context, w *Wanted) (wrong, missing error) {
	if len(w.URLs) == 0 && w.Selector == "" {
		if f.opened != nil { // the targets belong to the Wanted before
			missing = f.opts.SetTargets()
		}
		f.mu.Lock()
		f.opened = nil
		f.mu.Unlock()
		f.stopPods()
		return f.follow(ctx), cmp.Or(missing, errors.New("no instance is named: neither pods by their labels nor URLs"))
	}
	pods, missing := f.list(ctx, w)
	use, wrong := f.open(ctx, w)
	if wrong != nil && f.opened != nil && f.opened.key == w.key() {
		use = f.opened
	}
	switch {
	case missing != nil: // the pods are unknown
		return wrong, missing
	case use == nil:
		_, none := w.endpoints(pods, Credentials{})
		return wrong, none
	}
	return wrong, f.give(ctx, w, use, pods)
}

// endpoints returns the wanted endpoints. If a selector finds none, that is an error.
func (w *Wanted) endpoints(pods []*corev1.Pod, c Credentials) (endpoints []dataplane.Endpoint, err error) {
	for _, url := range w.URLs {
		endpoints = append(endpoints, dataplane.Endpoint{URL: url, Username: c.DataplaneUsername, Password: c.DataplanePassword})
	}
	if w.Selector == "" {
		return endpoints, nil
	}
	if endpoints, err = Pods(pods, c, w.Pods); len(endpoints) == 0 && err == nil {
		err = fmt.Errorf(
			"no HAProxy is found: no pod of namespace %s with the labels %s has a container %s that is ready",
			w.Pods.Namespace,
			w.Selector,
			cmp.Or(w.Pods.Container, "dataplane"),
		)
	}
	return endpoints, err
}

// give gives the targets to the loop.
func (f *Follower) give(ctx context.Context, w *Wanted, use *opened, pods []*corev1.Pod) error {
	endpoints, err := w.endpoints(pods, use.credentials)
	for i := range endpoints {
		endpoints[i].TLS = use.config
	}
	if f.opts.OnFound != nil {
		f.opts.OnFound(ctx, endpoints, pods)
	}
	before := f.clients
	clients := before
	if clients == nil || !reflect.DeepEqual(clients.Options, w.Client) {
		clients = &Clients{Options: w.Client}
	}
	targets, unusable := clients.Targets(endpoints)
	err = errors.Join(err, unusable, f.opts.SetTargets(targets...))
	if before != nil && before != clients {
		_, _ = before.Targets(nil) // closes connections
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clients, f.opened = clients, use
	return err
}

// list returns the pods with the wanted labels.
func (f *Follower) list(ctx context.Context, w *Wanted) ([]*corev1.Pod, error) {
	if w.Selector == "" || w.List != nil {
		f.stopPods()
	}
	switch {
	case w.Selector == "":
		return nil, nil
	case w.List != nil:
		pods, err := w.List(ctx)
		if err != nil {
			err = fmt.Errorf("pods: %w", &follow.UnreadError{What: "pods", Err: err})
		}
		return pods, err
	}
	if f.pods == nil || f.pods.of != w.Pods.Namespace+" "+w.Selector {
		f.stopPods()
		if err := f.startPods(ctx, w); err != nil {
			return nil, err
		}
	}
	if state := f.pods.watcher.State(); !state.Synced {
		return nil, fmt.Errorf("pods: %w", &follow.UnreadError{What: "pods", Err: state.Err})
	}
	return k8swatch.Read[*corev1.Pod](f.pods.watcher.Snapshot()).List(), nil
}

func (f *Follower) startPods(ctx context.Context, w *Wanted) (err error) {
	p := &podWatch{of: w.Pods.Namespace + " " + w.Selector}
	opts := &k8swatch.Options{Namespace: w.Pods.Namespace, LabelSelector: w.Selector, Logger: f.opts.Logger,
		OnSyncComplete: func(int) { f.Look() }, OnChange: func(context.Context, k8swatch.Changes) error { f.Look(); return nil }}
	if opts.Namespace == AllNamespaces {
		opts.Namespace = ""
	}
	if p.watcher, err = k8swatch.New(f.opts.Source, corev1.SchemeGroupVersion.WithResource("pods"), opts); err != nil {
		return err
	}
	ctx, p.stop = context.WithCancel(ctx)
	f.wg.Go(func() { _ = p.watcher.Run(ctx) }) // the only error is ErrStarted
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pods = p
	return nil
}

func (f *Follower) stopPods() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pods != nil {
		f.pods.stop()
	}
	f.pods = nil
}
