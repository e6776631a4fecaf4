package k8swatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// ElectionOptions of an [Election]. Client, Namespace and Name are required.
type ElectionOptions struct {
	Client    coordinationv1.LeasesGetter // such as cluster.Clientset().CoordinationV1()
	Namespace string                      // of the Lease
	Name      string                      // of the Lease

	// Identity names this candidate. "" means the host name and a random part, so that
	// a restarted process is another candidate.
	Identity string

	// Zero means 15, 10 and 2 s, as in Kubernetes' own components. The leader gives up
	// if its last renewal is older than RenewDeadline. Others take over LeaseDuration
	// after the last renewal that they saw. A released or expired Lease is taken within
	// 2.2 times RetryPeriod.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	// OnLeader gets each new leader, this candidate included. Calls come in order and
	// do not overlap.
	OnLeader func(identity string)

	Logger *slog.Logger // nil means slog.Default()
}

// Election takes part in the election of a leader by a Lease. All methods may be
// called concurrently.
type Election struct {
	opts    ElectionOptions
	log     *slog.Logger
	running atomic.Bool
	wake    chan struct{} // of size 1: there is news; made by Run

	mu      sync.Mutex
	leader  string
	news    []string  // leaders for OnLeader
	renewed time.Time // when the last successful renewal was sent; zero outside terms
}

// NewElection checks the options. It sends no request before Run.
func NewElection(opts *ElectionOptions) (*Election, error) {
	if opts == nil || opts.Client == nil {
		return nil, errors.New("k8swatch: ElectionOptions.Client is missing: want one such as Clientset().CoordinationV1()")
	}
	o := *opts
	if len(validation.IsDNS1123Label(o.Namespace)) > 0 {
		return nil, fmt.Errorf("k8swatch: ElectionOptions.Namespace %q: want the namespace of the Lease", o.Namespace)
	}
	if len(validation.IsDNS1123Subdomain(o.Name)) > 0 {
		return nil, fmt.Errorf("k8swatch: ElectionOptions.Name %q: want the name of the Lease", o.Name)
	}
	for _, d := range []struct {
		value *time.Duration
		zero  time.Duration
	}{{&o.LeaseDuration, 15 * time.Second}, {&o.RenewDeadline, 10 * time.Second}, {&o.RetryPeriod, 2 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	if o.RetryPeriod < 0 || o.RenewDeadline <= o.RetryPeriod*6/5 || o.LeaseDuration <= o.RenewDeadline {
		return nil, fmt.Errorf(
			"k8swatch: ElectionOptions.LeaseDuration %s, RenewDeadline %s, RetryPeriod %s: want each shorter than the one before, and the last one by a fifth",
			o.LeaseDuration,
			o.RenewDeadline,
			o.RetryPeriod,
		)
	}
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, err
		}
		o.Identity = host + "_" + string(uuid.NewUUID())
	}
	e := &Election{opts: o, log: logger(opts.Logger).With("lease", o.Namespace+"/"+o.Name)}
	if _, err := e.elector(e.newTerm(func() {}), func(context.Context) {}); err != nil { // NewLeaderElector checks how the times fit together
		return nil, err
	}
	return e, nil
}

// Identity is the name of this candidate.
func (e *Election) Identity() string { return e.opts.Identity }

// Leader is the last leader that this process saw, or "".
func (e *Election) Leader() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader
}

// Leading reports whether this candidate leads now. It also checks the clock: it is false
// once the last successful renewal is older than the renew deadline. Ask it before each call
// that changes something. A frozen process sees false as soon as it runs again.
func (e *Election) Leading() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.renewed.IsZero() {
		return false
	}
	// The monotonic clock stands still while a machine is suspended, and the wall clock
	// can be set. The longer time counts.
	now := time.Now()
	age := max(now.Sub(e.renewed), now.Round(0).Sub(e.renewed.Round(0)))
	return age < e.opts.RenewDeadline
}

// Run stands for election until ctx ends, and calls lead for each term. The context of
// a term ends with ctx and when leadership is lost. Then lead must return soon: the
// next term does not begin before that.
//
// When ctx ends, Run waits for lead and releases the Lease, so that another candidate takes
// over soon. If lead takes longer than the renew deadline, Run cannot release the Lease, and
// it has to expire. When lead returns early, Run releases the Lease too, and stands again a
// retry period later. Run returns nil, or [ErrStarted] if it runs already.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context)) error {
	if !e.running.CompareAndSwap(false, true) {
		return ErrStarted
	}
	defer e.running.Store(false)
	if lead == nil {
		return errors.New("k8swatch: Election.Run: lead is missing: want the work of a term")
	}
	e.wake = make(chan struct{}, 1)
	var notifying sync.WaitGroup
	defer notifying.Wait()
	defer close(e.wake)
	notifying.Go(e.notify)
	ctx = klog.NewContext(ctx, logr.Discard())
	for ctx.Err() == nil {
		if err := e.stand(ctx, lead); err != nil {
			return err
		}
		sleep(ctx, e.opts.RetryPeriod)
	}
	return nil
}

// stand waits for one term and runs it to its end.
func (e *Election) stand(ctx context.Context, lead func(context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := e.newTerm(cancel)
	elector, err := e.elector(t, func(ctx context.Context) {
		defer close(t.done)
		defer cancel() // lead returned early: give the Lease up
		e.log.Info("leading", "identity", e.opts.Identity)
		lead(ctx)
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	e.setRenewed(time.Time{})
	if t.won {
		<-t.done
		e.log.Info("no longer leading", "identity", e.opts.Identity)
	}
	return nil
}

func (e *Election) elector(t *term, lead func(context.Context)) (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:          e.opts.Name,
		Lock:          t,
		LeaseDuration: e.opts.LeaseDuration, RenewDeadline: e.opts.RenewDeadline, RetryPeriod: e.opts.RetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lead,
			OnStoppedLeading: func() {},
		},
	})
}

func (e *Election) setRenewed(sent time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.renewed = sent
}

// observed notes the holder of the Lease. client-go's own callback runs in a new
// goroutine each time, in any order.
func (e *Election) observed(identity string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if identity == "" || identity == e.leader {
		return
	}
	e.leader = identity
	if e.opts.OnLeader == nil {
		return
	}
	e.news = append(e.news, identity)
	select {
	case e.wake <- struct{}{}:
	default: // it is awake already
	}
}

// notify calls OnLeader until wake is closed. Renewals do not wait for it.
func (e *Election) notify() {
	for range e.wake {
		e.mu.Lock()
		news := e.news
		e.news = nil
		e.mu.Unlock()
		for _, identity := range news {
			e.opts.OnLeader(identity)
		}
	}
}

// term is one term of leadership. As the lock of the Lease it notes when renewals were
// sent, and keeps the Lease until the work of the term has ended. client-go calls it
// from one goroutine.
type term struct {
	*resourcelock.LeaseLock
	e      *Election
	won    bool          // the work has begun
	holder string        // of the Lease, when it was last read
	stop   func()        // ends the work
	done   chan struct{} // closed when the work has returned
}

func (e *Election) newTerm(stop func()) *term {
	return &term{e: e, stop: stop, done: make(chan struct{}), LeaseLock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: e.opts.Namespace, Name: e.opts.Name},
		Client:     e.opts.Client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: e.opts.Identity},
	}}
}

// Get implements resourcelock.Interface.
func (t *term) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, t.e.opts.RenewDeadline/2)
	defer cancel()
	r, raw, err := t.LeaseLock.Get(ctx)
	if err == nil {
		t.holder = r.HolderIdentity
		t.e.observed(r.HolderIdentity)
	}
	return r, raw, err
}

// Create implements resourcelock.Interface.
func (t *term) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return t.hold(ctx, r, t.LeaseLock.Create)
}

// Update implements resourcelock.Interface. It does not release the Lease before the work of
// the term has ended, or two candidates would lead. For the same reason it does not release
// another's Lease. client-go tries that if it could not read the Lease for a while.
func (t *term) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == t.e.opts.Identity {
		return t.hold(ctx, r, t.LeaseLock.Update)
	}
	t.e.setRenewed(time.Time{})
	t.stop()
	if t.holder != t.e.opts.Identity {
		return errors.New("another holds the Lease")
	}
	select {
	case <-t.done:
		return t.LeaseLock.Update(ctx, r)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *term) hold(ctx context.Context, r resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	sent := time.Now() // the time in the record, from which others count, is not later
	ctx, cancel := context.WithTimeout(ctx, t.e.opts.RenewDeadline/2)
	defer cancel()
	if err := write(ctx, r); err != nil {
		return err
	}
	t.won = true
	t.e.setRenewed(sent)
	t.e.observed(r.HolderIdentity)
	return nil
}
