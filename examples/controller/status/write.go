package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	hold     = time.Second      // between two passes
	rate     = 25               // writes a second; all requests of the process have 50 (k8swatch.ClusterOptions)
	batch    = 100              // writes before the next pass: new changes do not wait long
	timeout  = 10 * time.Second // of a request
	maxPause = time.Minute      // longest time between two tries of a failed write
	reread   = 10 * time.Minute // after that the statuses are read again, for changes by others
)

// state belongs to the goroutine of a [Writer].
type state struct {
	*Writer
	limit  flowcontrol.RateLimiter
	term   uint64                             // in which this state was learned
	read   time.Time                          // when all Ingresses were last read
	known  map[types.UID]Addresses            // of the Ingresses that have addresses
	mine   map[types.NamespacedName]published // Ingresses that are or were served
	failed map[types.NamespacedName]int       // failures in a row; these come last
	done   revision                           // all of this was written, with
	doneTo Addresses                          // these
}

// published is an Ingress with the addresses that this writer gave it; nil: none yet.
type published struct {
	uid types.UID
	has Addresses
}

// change is one write.
type change struct {
	types.NamespacedName
	uid  types.UID
	turn int
	gone Addresses // to remove; nil: write the current ones
}

// Run writes, and follows the Service, until ctx ends.
func (w *Writer) Run(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { w.write(ctx); return nil })
	if w.service != nil {
		all.Go(func() error { return w.service.Run(ctx) })
	}
	return all.Wait()
}

// write runs passes until ctx ends.
func (w *Writer) write(ctx context.Context) {
	s := &state{Writer: w, limit: flowcontrol.NewTokenBucketRateLimiter(rate, rate)}
	defer s.limit.Stop()
	for pause := hold; ; {
		rest, err := s.pass(ctx)
		w.mu.Lock()
		w.failed = err
		w.mu.Unlock()
		next := reread
		switch {
		case rest:
			next = 0
		case err != nil:
			next, pause = pause, min(2*pause, maxPause)
		default:
			pause = hold
		}
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-time.After(next):
		}
		if rest {
			continue
		}
		select { // changes of this time are one batch
		case <-ctx.Done():
			return
		case <-time.After(hold):
		}
	}
}

// pass writes a batch of differences. rest says that there are more.
func (s *state) pass(ctx context.Context) (rest bool, err error) {
	s.mu.Lock()
	at, to, unknown := s.deployed, s.publish, s.unknown
	s.mu.Unlock()
	if at.routes == nil || len(to) == 0 || unknown != nil || s.opts.Leads() != at.term {
		return false, nil
	}
	if s.term != at.term {
		s.term, s.read, s.mine, s.failed = at.term, time.Time{}, map[types.NamespacedName]published{}, map[types.NamespacedName]int{}
	}
	if time.Since(s.read) >= reread {
		if err := s.readAll(ctx); err != nil {
			return false, fmt.Errorf("ingresses/status: the Ingresses cannot be read: %w", err)
		}
	} else if at == s.done && slices.EqualFunc(to, s.doneTo, same) {
		return false, nil
	}
	todo := s.differences(at.routes, to)
	written, denied := 0, map[string]bool{}
	for _, one := range todo[:min(len(todo), batch)] {
		if denied[one.Namespace] {
			continue
		}
		if s.limit.Wait(ctx) != nil || s.opts.Leads() != at.term {
			return false, nil
		}
		e := s.change(ctx, one, to)
		if e == nil {
			written++
			delete(s.failed, one.NamespacedName)
			continue
		}
		err = cmp.Or(err, fmt.Errorf("ingresses/status: Ingress %s: %w", one.NamespacedName, e))
		s.failed[one.NamespacedName]++
		if apierrors.IsForbidden(e) { // by RBAC: all of the namespace fail; or by a webhook: the others come first next time
			denied[one.Namespace] = true
		}
	}
	if written == len(todo) {
		s.done, s.doneTo = at, to
	}
	return written > 0 && len(todo) > batch, err
}

// readAll reads the addresses of all Ingresses.
func (s *state) readAll(ctx context.Context) error {
	known, namespaces := map[types.UID]Addresses{}, s.opts.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		err := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			return s.opts.Client.Ingresses(namespace).List(ctx, opts)
		}).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
			if ing := o.(*networkingv1.Ingress); len(ing.Status.LoadBalancer.Ingress) > 0 {
				known[ing.UID] = ing.Status.LoadBalancer.Ingress
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	s.known, s.read = known, time.Now()
	return nil
}

// differences returns all writes to do, one of each namespace at a time. The Ingresses
// of one namespace therefore do not delay those of others. Failed writes come last,
// after the rest of their namespace.
func (s *state) differences(routes Routes, to Addresses) (all []change) {
	for ing := range routes.Served() {
		if name := (types.NamespacedName{Namespace: ing.Namespace, Name: ing.Name}); s.mine[name].uid != ing.UID {
			s.mine[name] = published{uid: ing.UID}
		}
	}
	find := s.opts.Look()
	for name, one := range s.mine {
		switch is, ours := find(name.Namespace, name.Name); {
		case ours && slices.EqualFunc(s.known[is.UID], to, same):
			s.mine[name] = published{is.UID, to}
		case ours:
			all = append(all, change{NamespacedName: name, uid: is.UID})
		case is != nil && is.UID == one.uid && one.has != nil:
			all = append(all, change{NamespacedName: name, uid: one.uid, gone: one.has})
		default:
			delete(s.mine, name)
			delete(s.failed, name)
		}
	}
	s.order(all)
	return all
}

func (s *state) order(all []change) {
	slices.SortFunc(all, func(a, b change) int {
		return cmp.Or(cmp.Compare(s.failed[a.NamespacedName], s.failed[b.NamespacedName]), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	fails := map[string]int{} // 1 for a namespace with failures
	for name := range s.failed {
		fails[name.Namespace] = 1
	}
	turns := map[string]int{}
	for i := range all {
		all[i].turn = turns[all[i].Namespace]
		turns[all[i].Namespace]++
	}
	slices.SortStableFunc(all, func(a, b change) int {
		return cmp.Or(cmp.Compare(s.failed[a.NamespacedName], s.failed[b.NamespacedName]), cmp.Compare(fails[a.Namespace], fails[b.Namespace]), cmp.Compare(a.turn, b.turn))
	})
}

// change writes one status. An Ingress that is gone needs no write. If addresses are to be
// removed, an Ingress to which another client gave other addresses needs none either.
func (s *state) change(ctx context.Context, one change, to Addresses) error {
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
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err = s.opts.Client.Ingresses(one.Namespace).Patch(ctx, one.Name, kind, text, metav1.PatchOptions{FieldManager: "haptic"}, "status")
	switch {
	case apierrors.IsNotFound(err), apierrors.IsInvalid(err) && one.gone != nil:
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the account needs the verb patch on ingresses/status of networking.k8s.io: %w", err)
	case err != nil:
		return err
	}
	if s.known[one.uid], s.mine[one.NamespacedName] = to, (published{one.uid, to}); one.gone != nil {
		delete(s.known, one.uid)
		delete(s.mine, one.NamespacedName)
	}
	return nil
}
