package k8swatch

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
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

	// Identity of this candidate; "" means the host name and a random part, so
	// that a restarted process is another candidate.
	Identity string

	// Zero means 15, 10 and 2 s, as in Kubernetes' own components: others take
	// over LeaseDuration after the last renewal that they saw; the leader gives
	// up RenewDeadline after its last one; tries are RetryPeriod apart. A
	// candidate that may watch Leases tries at once when the Lease is released,
	// deleted or runs out; one that may not, up to 2.2 RetryPeriods later.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration

	// OnLeader is told of each leader that is observed, this candidate included.
	// Calls do not overlap, and come in order.
	OnLeader func(identity string)

	Logger *slog.Logger // nil means slog.Default()
}

// Election takes part in the election of a leader by a Lease. All methods may be
// called concurrently.
type Election struct {
	opts ElectionOptions
	log  *slog.Logger
	told chan struct{} // of size 1: there are news; made by Run

	mu      sync.Mutex
	running bool
	leader  string
	news    []string  // leaders that OnLeader has not been told of
	renewed time.Time // when the last renewal that succeeded was sent; zero outside terms
	term    *term
}

// term is one time of leadership.
type term struct {
	cancel context.CancelFunc
	began  bool          // the Lease was won, so the work was started
	done   chan struct{} // closed when the work has returned
}

// NewElection checks the options; nothing is requested before Run.
func NewElection(opts *ElectionOptions) (*Election, error) {
	if opts == nil || opts.Client == nil || opts.Namespace == "" || opts.Name == "" {
		return nil, errors.New("k8swatch: an election needs a client, a namespace and the name of a Lease")
	}
	o := *opts
	for _, d := range []struct {
		value *time.Duration
		zero  time.Duration
	}{{&o.LeaseDuration, 15 * time.Second}, {&o.RenewDeadline, 10 * time.Second}, {&o.RetryPeriod, 2 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, err
		}
		o.Identity = host + "_" + string(uuid.NewUUID())
	}
	e := &Election{opts: o, log: logger(opts.Logger).With("lease", o.Namespace+"/"+o.Name)}
	if _, err := e.elector(&lock{e: e}, func(context.Context) {}); err != nil { // it checks how the times go together
		return nil, err
	}
	return e, nil
}

// Identity is the name of this candidate.
func (e *Election) Identity() string { return e.opts.Identity }

// Leader is the last leader that was observed, or "".
func (e *Election) Leader() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader
}

// Leading reports whether this candidate leads at this instant. It goes by the
// clock as well: once the last renewal that succeeded is older than the renew
// deadline it is false, even when nothing in this process could notice since.
// Ask before each call that changes something: a process that was frozen sees
// false as soon as it is thawed.
func (e *Election) Leading() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.renewed.IsZero() {
		return false
	}
	// The monotonic clock stands still while a machine is suspended, the wall
	// clock can be set: the longer time counts.
	now := time.Now()
	age := max(now.Sub(e.renewed), now.Round(0).Sub(e.renewed.Round(0)))
	return age < e.opts.RenewDeadline
}

// Run stands for election until ctx ends, and calls lead for each term. The
// context of a term ends when leadership is lost, and with ctx; lead must then
// return soon, and the next term does not begin before. When ctx ends the Lease
// is released after lead has returned, so that another candidate takes over at
// once; work that takes longer than the renew deadline to end forgoes that. When
// lead returns early the Lease is released too and, a retry period later, Run
// stands again. It returns nil, or [ErrStarted] when it runs already.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context)) error {
	e.mu.Lock()
	if e.running {
		e.mu.Unlock()
		return ErrStarted
	}
	e.running, e.told = true, make(chan struct{}, 1)
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.running = false
		e.mu.Unlock()
	}()
	var telling sync.WaitGroup
	defer telling.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx = klog.NewContext(ctx, logr.Discard())
	telling.Go(func() { e.tell(ctx) })
	rest := time.Duration(0)
	for ctx.Err() == nil {
		if err := e.stand(ctx, rest, lead); err != nil {
			return err
		}
		rest = e.opts.RetryPeriod
	}
	return nil
}

// stand waits for one term, for which it does not try before it has rested, and
// leads it to its end.
func (e *Election) stand(ctx context.Context, rest time.Duration, lead func(context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &term{cancel: cancel, done: make(chan struct{})}
	e.mu.Lock()
	e.term = t
	e.mu.Unlock()
	c := newCandidacy(e)
	watching, stop := context.WithCancel(ctx)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer stop()
	watches.Go(func() { c.watch(watching) })
	work := func(term context.Context) {
		defer close(t.done)
		defer cancel() // lead returned early: give the Lease up
		stop()
		e.log.Info("leading", "identity", e.opts.Identity)
		lead(term)
	}
	sleep(ctx, rest)
	began := false
	for !began && c.await(ctx) {
		var err error
		if began, err = e.try(ctx, c, t, work); err != nil {
			return err
		}
	}
	if began {
		<-t.done
		e.log.Info("no longer leading", "identity", e.opts.Identity)
	}
	return nil
}

// try tries once for the Lease and, where that succeeds, leads until the end of
// the term.
func (e *Election) try(ctx context.Context, c *candidacy, t *term, work func(context.Context)) (began bool, err error) {
	once, end := context.WithCancel(ctx)
	defer end()
	elector, err := e.elector(&lock{e: e, c: c, end: end}, work)
	if err != nil {
		return false, err
	}
	elector.Run(once)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.renewed = time.Time{}
	return t.began, nil
}

func (e *Election) elector(l *lock, lead func(context.Context)) (*leaderelection.LeaderElector, error) {
	l.LeaseLock = &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: e.opts.Namespace, Name: e.opts.Name},
		Client:     e.opts.Client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: e.opts.Identity},
	}
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:          e.opts.Name,
		Lock:          l,
		LeaseDuration: e.opts.LeaseDuration, RenewDeadline: e.opts.RenewDeadline, RetryPeriod: e.opts.RetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: lead,
			OnStoppedLeading: func() {},
		},
	})
}

// observed notes who holds the Lease. client-go's own callback comes from a new
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
	case e.told <- struct{}{}:
	default:
	}
}

// tell calls OnLeader, away from the renewals: they must not wait for it.
func (e *Election) tell(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.told:
		}
		e.mu.Lock()
		news := e.news
		e.news = nil
		e.mu.Unlock()
		for _, identity := range news {
			e.opts.OnLeader(identity)
		}
	}
}

// lock notes when renewals were sent, and keeps the Lease until the work of the
// term has ended. client-go calls it from one goroutine.
type lock struct {
	*resourcelock.LeaseLock
	e *Election

	c   *candidacy
	won bool   // what follows are renewals
	end func() // ends a try that came to nothing
}

// Get implements resourcelock.Interface.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, l.e.opts.RenewDeadline/2)
	defer cancel()
	r, raw, err := l.LeaseLock.Get(ctx)
	if err == nil {
		l.e.observed(r.HolderIdentity)
	}
	switch {
	case l.won || apierrors.IsNotFound(err): // in which case it is created
	case err != nil:
		l.failed()
	default:
		seen := *r
		switch free := l.c.saw(&seen); {
		case free:
			// client-go has only just begun to look, so it would wait once more
			// for the Lease to run out. That it is still this one when it is
			// written, its resource version tells.
			r.HolderIdentity = ""
		case r.HolderIdentity != l.e.opts.Identity:
			l.end() // it is held
		}
	}
	return r, raw, err
}

// failed ends a try that is not to be repeated at once.
func (l *lock) failed() {
	l.c.failed()
	l.end()
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, r, l.LeaseLock.Create)
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == l.e.opts.Identity {
		return l.write(ctx, r, l.LeaseLock.Update)
	}
	if err := l.e.workEnded(ctx); err != nil {
		return err
	}
	return l.LeaseLock.Update(ctx, r)
}

func (l *lock) write(ctx context.Context, r resourcelock.LeaderElectionRecord, f func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	sent := time.Now() // others count from the time within the record, which is not later
	ctx, cancel := context.WithTimeout(ctx, l.e.opts.RenewDeadline/2)
	defer cancel()
	if err := f(ctx, r); err != nil {
		if !l.won {
			l.failed()
		}
		return err
	}
	l.won = true
	l.e.observed(r.HolderIdentity)
	l.e.mu.Lock()
	if l.e.term != nil { // nil once the term is being given up
		l.e.renewed, l.e.term.began = sent, true
	}
	l.e.mu.Unlock()
	return nil
}

// workEnded stops the work of the term and waits for it: releasing the Lease
// earlier would let two lead.
func (e *Election) workEnded(ctx context.Context) error {
	e.mu.Lock()
	t := e.term
	e.renewed, e.term = time.Time{}, nil
	e.mu.Unlock()
	if t == nil {
		return nil
	}
	t.cancel()
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
