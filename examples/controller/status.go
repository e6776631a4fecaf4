package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientv1 "k8s.io/client-go/kubernetes/typed/networking/v1"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/examples/controller/ingress"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/command"
)

// status writes where clients reach HAProxy into status.loadBalancer of the Ingresses
// that a HAProxy serves. An Ingress keeps it as long as it is of our classes, so that a
// bad edit does not cost it its DNS record. One that becomes another controller's while
// this process leads loses it, unless somebody else wrote it. At the end all stay as they
// are. One goroutine writes: many Ingresses delay nothing else.
type status struct {
	client    clientv1.IngressesGetter
	namespace string        // whose Ingresses count; "": all
	leads     func() uint64 // the number of the term in which this process leads; 0: it does not
	look      func() finder // at the Ingresses of now
	log       *slog.Logger
	wake      chan struct{}                     // of size 1
	service   *k8swatch.Single[*corev1.Service] // that has the addresses; nil: they are given

	mu       sync.Mutex
	rendered []revision // the newest is the last
	count    int        // of all that were rendered
	deployed revision   // that a HAProxy has
	publish  addresses  // nil: not known yet
	unknown  error      // why that is so
	failed   error      // of the last writes
}

type addresses = []networkingv1.IngressLoadBalancerIngress

// finder returns an Ingress, and whether it is of our classes; nil and false: there is none.
type finder func(namespace, name string) (ing *networkingv1.Ingress, ours bool)

// revision is a configuration, and what it was made of.
type revision struct {
	hash   string
	number int // later ones have higher numbers
	routes *ingress.Routes
	term   uint64 // in which it was deployed
}

// newStatus returns the writer; nil: nothing is to be written.
func (c *controller) newStatus() (*status, error) {
	if !c.cfg.publish.given() || c.cluster == nil || c.cfg.once {
		return nil, nil
	}
	s := &status{
		client: c.cluster.Clientset().NetworkingV1(), namespace: c.cfg.namespace, publish: c.cfg.publish.fixed(), leads: func() uint64 { return 1 },
		look: c.lookAtIngresses, log: c.log, wake: make(chan struct{}, 1),
	}
	if c.handover != nil {
		s.leads = c.handover.leads
	}
	if c.cfg.publish.service != "" {
		return s, s.follow(c.cluster, c.cfg.publish.service)
	}
	return s, nil
}

// lookAtIngresses is look of [status].
func (c *controller) lookAtIngresses() finder {
	all := c.watchers.Snapshot()
	ours := ingress.Ours(k8swatch.Read[*networkingv1.IngressClass](context.Background(), all.Of(c.classes)).List())
	return func(namespace, name string) (*networkingv1.Ingress, bool) {
		ing, _ := any(all.Of(c.ingresses).ByName(namespace, name)).(*networkingv1.Ingress)
		return ing, ing != nil && ours(ing)
	}
}

func (s *status) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default: // it will look
	}
}

// check says why statuses are not as they should be.
func (s *status) check() (err error) {
	if s.service != nil && s.service.State().Err != nil {
		err = fmt.Errorf("publish-service: %w", s.service.State().Err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.unknown, s.failed)
}

// followed is a renderer that tells the status what it made, and what was deployed.
type followed struct {
	settler
	status *status
	routes *atomic.Pointer[ingress.Routes] // of the last render
}

type settler interface {
	reconcile.Renderer
	reconcile.Settler
}

// Render implements [reconcile.Renderer].
func (f *followed) Render(ctx context.Context) (*reconcile.Rendered, error) {
	r, err := f.settler.Render(ctx)
	if err == nil {
		f.status.made(revision{hash: r.Config.Hash(), routes: f.routes.Load()})
	}
	return r, err
}

// Settle implements [reconcile.Settler].
func (f *followed) Settle(cfg *dataplane.Config, err error) (again bool) {
	if err == nil {
		f.status.has(cfg.Hash())
	}
	return f.settler.Settle(cfg, err)
}

// made notes what a configuration was made of. Another Ingress can make the same one as
// is deployed.
func (s *status) made(r revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	r.number = s.count
	s.rendered = append(s.rendered, r)
	s.rendered = s.rendered[max(0, len(s.rendered)-statusKept):]
	if s.deployed.hash == r.hash {
		r.term = s.deployed.term
		s.deployed = r
		s.wakeUp()
	}
}

// has notes that a HAProxy has a configuration, deployed by this process. Another one may
// have a later one already.
func (s *status) has(hash string) {
	term := s.leads()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range slices.Backward(s.rendered) {
		if r.hash != hash || term == 0 {
			continue
		}
		if r.term = term; term != s.deployed.term || r.number > s.deployed.number {
			s.deployed = r
			s.wakeUp()
		}
		return
	}
}

const (
	statusHold    = time.Second      // between two looks for what is to be written
	statusRate    = 25               // writes a second; all requests of the process have 50 (k8swatch.ClusterOptions)
	statusBatch   = 100              // writes before the next look: what is new does not wait for long
	statusTimeout = 10 * time.Second // of a request
	statusRetry   = time.Minute      // at most between two tries of what failed
	statusReread  = 10 * time.Minute // after which what others wrote is looked at again
	statusKept    = 16               // configurations that may be deployed yet
)

// statusWriter is what the goroutine of a [status] knows.
type statusWriter struct {
	*status
	limit  flowcontrol.RateLimiter
	term   uint64                             // in which all below was learned
	read   time.Time                          // when the API server was asked for all Ingresses
	known  map[types.UID]addresses            // of the Ingresses that have some
	mine   map[types.NamespacedName]published // those that are served, or were
	done   revision                           // of which all was written, with
	doneTo addresses                          // these
}

// published is an Ingress with the addresses that it has from here; nil: none yet.
type published struct {
	uid types.UID
	has addresses
}

// statusWrite is one change.
type statusWrite struct {
	types.NamespacedName
	uid  types.UID
	turn int
	gone addresses // to be taken away; nil: those of now are to be there
}

// run writes, and follows the Service, until ctx ends.
func (s *status) run(ctx context.Context) error {
	g := &command.Group{Log: s.log}
	g.Go("status of Ingresses", s.runWriter)
	if s.service != nil {
		g.Go("watch of the Service", s.service.Run)
	}
	return g.Run(ctx)
}

// runWriter writes until ctx ends.
func (s *status) runWriter(ctx context.Context) error {
	w := &statusWriter{status: s, limit: flowcontrol.NewTokenBucketRateLimiter(statusRate, statusRate)}
	defer w.limit.Stop()
	for wait := statusHold; ; {
		rest, err := w.pass(ctx)
		s.mu.Lock()
		s.failed = err
		s.mu.Unlock()
		next := statusReread
		switch {
		case rest:
			next = 0
		case err != nil:
			next, wait = wait, min(2*wait, statusRetry)
		default:
			wait = statusHold
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-time.After(next):
		}
		if !rest { // all that comes meanwhile is one batch
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(statusHold):
			}
		}
	}
}

// pass writes a batch of what differs. rest says that there is more.
func (w *statusWriter) pass(ctx context.Context) (rest bool, err error) {
	w.mu.Lock()
	at, to := w.deployed, w.publish
	w.mu.Unlock()
	if at.routes == nil || len(to) == 0 || w.leads() != at.term {
		return false, nil
	}
	if w.term != at.term {
		w.term, w.read, w.mine = at.term, time.Time{}, map[types.NamespacedName]published{}
	}
	if time.Since(w.read) >= statusReread {
		if err := w.readAll(ctx); err != nil {
			return false, err
		}
	} else if at == w.done && slices.EqualFunc(to, w.doneTo, sameAddress) {
		return false, nil
	}
	todo := w.differences(at.routes, to)
	written := 0
	for _, one := range todo[:min(len(todo), statusBatch)] {
		if w.limit.Wait(ctx) != nil || w.leads() != at.term {
			return false, nil
		}
		e := w.write(ctx, one, to)
		if e == nil {
			written++
		} else if err = cmp.Or(err, fmt.Errorf("ingresses/status: Ingress %s: %w", one.NamespacedName, e)); apierrors.IsForbidden(e) {
			break // the others are, too
		}
	}
	if written == len(todo) {
		w.done, w.doneTo = at, to
	}
	return written > 0 && len(todo) > statusBatch, err
}

// readAll learns which addresses all Ingresses have.
func (w *statusWriter) readAll(ctx context.Context) error {
	known := map[types.UID]addresses{}
	err := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		ctx, cancel := context.WithTimeout(ctx, statusTimeout)
		defer cancel()
		return w.client.Ingresses(w.namespace).List(ctx, opts)
	}).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if ing := o.(*networkingv1.Ingress); len(ing.Status.LoadBalancer.Ingress) > 0 {
			known[ing.UID] = ing.Status.LoadBalancer.Ingress
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ingresses/status: the Ingresses cannot be read: %w", err)
	}
	w.known, w.read = known, time.Now()
	return nil
}

// differences are all writes to be done, one of each namespace at a time: the Ingresses of
// one do not delay those of others.
func (w *statusWriter) differences(routes *ingress.Routes, to addresses) (all []statusWrite) {
	for ing := range routes.Served() {
		if name := (types.NamespacedName{Namespace: ing.Namespace, Name: ing.Name}); w.mine[name].uid != ing.UID {
			w.mine[name] = published{uid: ing.UID}
		}
	}
	find := w.look()
	for name, one := range w.mine {
		switch is, ours := find(name.Namespace, name.Name); {
		case ours && slices.EqualFunc(w.known[is.UID], to, sameAddress):
			w.mine[name] = published{is.UID, to}
		case ours:
			all = append(all, statusWrite{NamespacedName: name, uid: is.UID})
		case is != nil && is.UID == one.uid && one.has != nil:
			all = append(all, statusWrite{NamespacedName: name, uid: one.uid, gone: one.has})
		default:
			delete(w.mine, name)
		}
	}
	slices.SortFunc(all, func(a, b statusWrite) int { return cmp.Compare(a.String(), b.String()) })
	turns := map[string]int{}
	for i := range all {
		all[i].turn = turns[all[i].Namespace]
		turns[all[i].Namespace]++
	}
	slices.SortStableFunc(all, func(a, b statusWrite) int { return cmp.Compare(a.turn, b.turn) })
	return all
}

// write changes one status. An object that is gone, or another of that name, needs no
// write; nor does one that somebody else gave other addresses, where ours are to go.
func (w *statusWriter) write(ctx context.Context, one statusWrite, to addresses) error {
	kind, patch := types.MergePatchType, any(map[string]any{
		"metadata": map[string]any{"uid": one.uid}, "status": map[string]any{"loadBalancer": map[string]any{"ingress": to}}})
	if one.gone != nil {
		const path = "/status/loadBalancer/ingress"
		kind, patch = types.JSONPatchType, []map[string]any{{"op": "test", "path": "/metadata/uid", "value": one.uid},
			{"op": "test", "path": path, "value": one.gone}, {"op": "remove", "path": path}}
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	_, err = w.client.Ingresses(one.Namespace).Patch(ctx, one.Name, kind, text, metav1.PatchOptions{FieldManager: "haptic"}, "status")
	switch {
	case apierrors.IsNotFound(err), apierrors.IsInvalid(err) && one.gone != nil:
		err = nil
	case apierrors.IsForbidden(err):
		err = fmt.Errorf("the account needs the verb patch on ingresses/status of networking.k8s.io: %w", err)
	}
	if err != nil {
		return err
	}
	if w.known[one.uid], w.mine[one.NamespacedName] = to, (published{one.uid, to}); one.gone != nil {
		delete(w.known, one.uid)
		delete(w.mine, one.NamespacedName)
	}
	return nil
}
