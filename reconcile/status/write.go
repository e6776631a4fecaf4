package status

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/hapticsdk/haptic/internal/panics"
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
	limit   flowcontrol.RateLimiter
	term    uint64    // in which this state was learned
	read    time.Time // when all statuses counted as unknown last
	passes  uint64
	objects map[types.UID]*object
}

// object is one that is or was served.
type object struct {
	Item
	pass  uint64  // the last one in which the items had it
	given any     // the status that it has by us; nil: none
	done  bool    // it has Item.Status
	has   *stored // as it was last read; nil: not known
	fails int     // in a row
	turn  int     // among the objects of its namespace
}

// Run writes until ctx ends, and returns nil.
func (w *Writer) Run(ctx context.Context) error {
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
			return nil
		case <-w.wake:
		case <-time.After(next):
		}
		if rest {
			continue
		}
		select { // changes of this time are one batch
		case <-ctx.Done():
			return nil
		case <-time.After(hold):
		}
	}
}

// pass writes a batch of differences. rest says that there are more.
func (s *state) pass(ctx context.Context) (rest bool, err error) {
	s.mu.Lock()
	at := s.deployed
	s.mu.Unlock()
	if at.items == nil || s.opts.Term() != at.term {
		return false, nil
	}
	if s.term != at.term {
		s.term, s.read, s.objects = at.term, time.Now(), map[types.UID]*object{}
	}
	if time.Since(s.read) >= reread {
		s.read = time.Now()
		for _, o := range s.objects {
			o.done, o.has = false, nil
		}
	}
	var todo []*object
	if err := panics.Guard(func() error { todo = s.differences(at.items); return nil }); err != nil {
		return false, fmt.Errorf("status: the items of the deployed revision: %w", err)
	}
	todo, denied, err := s.readMany(ctx, todo)
	tries, written := 0, 0
	for _, o := range todo {
		if denied[scope{o.Resource, ""}] || denied[scope{o.Resource, o.Namespace}] {
			continue
		}
		tries++
		if tries > batch {
			return written > 0, err
		}
		e := s.bring(ctx, o)
		if ctx.Err() != nil || s.opts.Term() != at.term {
			return false, nil
		}
		if e == nil {
			written, o.fails = written+1, 0
			continue
		}
		err = cmp.Or(err, fmt.Errorf("%s/status: %s: %w", o.Resource.Resource, o, e))
		o.fails++
		if apierrors.IsForbidden(e) { // by RBAC: all of the namespace fail; or by a webhook: the others come first next time
			denied[scope{o.Resource, o.Namespace}] = true
		}
	}
	return false, err
}

// scope is a part of a resource that requests may be denied for; "" stands for all namespaces.
type scope struct {
	schema.GroupVersionResource
	namespace string
}

// differences returns the objects that may need a write, in the order of their writes.
func (s *state) differences(items func(func(Item) bool)) (todo []*object) {
	s.passes++
	for item := range items {
		o := s.objects[item.UID]
		if o == nil && (item.Unserved || item.Status == nil) {
			continue
		} else if o == nil {
			o = &object{Item: item}
			s.objects[item.UID] = o
		}
		o.pass = s.passes
		if item.Status == nil {
			continue
		}
		o.done = o.done && reflect.DeepEqual(o.Status, item.Status)
		o.Item = item
		if !o.done {
			todo = append(todo, o)
		}
	}
	for uid, o := range s.objects {
		switch {
		case o.pass == s.passes:
		case o.given == nil:
			delete(s.objects, uid)
		default:
			o.Status, o.done = nil, false
			todo = append(todo, o)
		}
	}
	s.order(todo)
	return todo
}

// order puts one object of each namespace after the other, so that none delays those of
// other namespaces. Failed writes come last, after the rest of their namespace.
func (s *state) order(todo []*object) {
	slices.SortFunc(todo, func(a, b *object) int {
		return cmp.Or(cmp.Compare(a.fails, b.fails), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	turns, fails := map[string]int{}, map[string]int{} // 1 for a namespace with failures
	for _, o := range todo {
		o.turn = turns[o.Namespace]
		turns[o.Namespace]++
		if o.fails > 0 {
			fails[o.Namespace] = 1
		}
	}
	slices.SortStableFunc(todo, func(a, b *object) int {
		return cmp.Or(cmp.Compare(a.fails, b.fails), cmp.Compare(fails[a.Namespace], fails[b.Namespace]), cmp.Compare(a.turn, b.turn))
	})
}

// conflicts is how often a write is tried at once if another client changes the object
// between the read and the write.
const conflicts = 3

// bring writes the status of one object. An object that is gone needs no write.
func (s *state) bring(ctx context.Context, o *object) error {

	for tries := 1; ; tries++ {
		if o.has == nil {
			if err := s.readOne(ctx, o); err != nil {
				return err
			}
		}
		if o.has == nil {
			delete(s.objects, o.UID)
			return nil
		}
		patch, err := s.patch(o)
		if err != nil {
			return err
		} else if patch == nil {
			s.isDone(o)
			return nil
		}
		if s.limit.Wait(ctx) != nil || s.opts.Term() != s.term {
			return nil // the pass ends
		}
		switch err = s.send(ctx, o.Item, patch); {
		case err == nil:
			s.isDone(o)
			return nil
		case apierrors.IsNotFound(err):
			delete(s.objects, o.UID)
			return nil
		case apierrors.IsConflict(err):
			o.has = nil
			if tries < conflicts {
				continue
			}
		}
		return err
	}
}

// isDone notes that an object has its status, or no longer has one of ours.
func (s *state) isDone(o *object) {
	o.done, o.has, o.given, o.fails = true, nil, o.Status, 0
	if o.Status == nil {
		delete(s.objects, o.UID)
	}
}

func (s *state) send(ctx context.Context, item Item, patch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := s.opts.Client.Resource(item.Resource).Namespace(item.Namespace).
		Patch(ctx, item.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "haptic"}, "status")
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("the account needs the verb patch on %s/status of %q: %w", item.Resource.Resource, item.Resource.Group, err)
	}
	return err
}

// readMany reads the objects of each resource of which more than a batch are not known. It
// returns the objects that need a write, and what could not be read.
func (s *state) readMany(ctx context.Context, todo []*object) (rest []*object, denied map[scope]bool, err error) {
	unknown := map[schema.GroupVersionResource]map[types.UID]*object{}
	for _, o := range todo {
		if o.has == nil {
			if unknown[o.Resource] == nil {
				unknown[o.Resource] = map[types.UID]*object{}
			}
			unknown[o.Resource][o.UID] = o
		}
	}
	denied = map[scope]bool{}
	maps.DeleteFunc(unknown, func(_ schema.GroupVersionResource, some map[types.UID]*object) bool { return len(some) <= batch })
	for resource, some := range unknown {
		for _, namespace := range s.spaces(some) {
			if e := s.list(ctx, resource, namespace, some); e != nil {
				denied[scope{resource, namespace}] = true
				err = cmp.Or(err, fmt.Errorf("%s/status: the objects cannot be read: %w", resource.Resource, e))
			}
		}
	}
	rest = slices.DeleteFunc(todo, func(o *object) bool { return o.done || s.objects[o.UID] != o })
	return rest, denied, err
}

// spaces returns the namespaces to list for some objects; "" stands for all.
func (s *state) spaces(some map[types.UID]*object) []string {
	for _, o := range some {
		if o.Namespace == "" {
			return []string{metav1.NamespaceAll} // a cluster-scoped resource
		}
	}
	if len(s.opts.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return s.opts.Namespaces
}
