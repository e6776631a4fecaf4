// Package status writes the status of resources: of Ingresses, Gateways, HTTPRoutes, or any
// other. A controller says which status each object shall have. A [Writer] writes it once an
// instance has the revision that the status belongs to.
//
//	client, err := dynamic.NewForConfig(cluster.RESTConfig())
//	writer, err := status.New(status.Options{
//		Client: client, Term: func() uint64 { return loop.Term() },
//	})
//	service, err := status.NewService(cluster, "haptic", "haptic", nil, writer.Refresh)
//	loop, err := reconcile.New(reconcile.Options{Renderer: writer.Renderer(templates, items), ...})
//	go writer.Run(ctx)
//
// Watch these resources with k8swatch.Options.IgnoreFields "status". Then the writes of a
// Writer trigger no render.
//
// Only the process that leads writes. An object that is in the items no longer loses what the
// Writer gave it in this term, unless another client has changed that. When the process ends,
// all statuses stay. One goroutine writes: many objects delay nothing else, and a namespace
// with many objects does not delay others.
package status

import (
	"context"
	"errors"
	"iter"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/reconcile"
)

// Item is an object and the status that it shall have. Resource, Name and UID are required.
type Item struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string // the namespace of a cluster-scoped object is ""
	UID             types.UID

	// Status has the fields that are ours, as JSON has them: a map or a struct. Other fields
	// of the status stay. If nil, the object keeps the status that it has. The Writer keeps
	// the value: do not change it later.
	Status any

	// Unserved says that the revision does not serve the object, which is still ours: after
	// a bad edit, for example. Its status changes only if the Writer wrote it before.
	Unserved bool
}

// String returns the resource, namespace and name.
func (i Item) String() string {
	name := i.Name
	if i.Namespace != "" {
		name = i.Namespace + "/" + name
	}
	return i.Resource.Resource + " " + name
}

// Options of a [Writer].
type Options struct {
	Client     dynamic.Interface // needs the verbs list, and patch of the subresource status
	Namespaces []string          // objects of these namespaces count; nil: of all

	// Term returns the number of the term in which this process leads; 0: it does not. It is
	// [reconcile.Loop.Term]. It is required.
	Term func() uint64

	// Merge returns the status that an object shall have. has is its status. was is what the
	// Writer wrote last, nil for none. want is Item.Status, nil for an object that is no longer
	// ours. It may change has and return it. If nil, all fields of want are set, and those of
	// was that want lacks are removed if they still have that value. A controller needs its
	// own Merge for a list that it shares with others, such as status.parents of an HTTPRoute.
	Merge func(item Item, has, was, want map[string]any) map[string]any
}

// Writer writes statuses. Make it with [New], wrap the renderer of the loop with
// [Writer.Renderer], and run it once. Its methods may be called concurrently.
type Writer struct {
	opts Options
	wake chan struct{} // of size 1

	mu       sync.Mutex
	count    int      // of all renders
	deployed revision // an instance has it
	failed   error    // of the last writes
}

// revision is a render and its items.
type revision struct {
	number int // later ones have higher numbers
	items  iter.Seq[Item]
	term   uint64 // in which it was deployed
}

// New returns a writer, or an error if an option is missing.
func New(opts Options) (*Writer, error) {
	switch {
	case opts.Client == nil:
		return nil, errors.New("status: Options.Client is nil: make one with dynamic.NewForConfig")
	case opts.Term == nil:
		return nil, errors.New("status: Options.Term is nil: set it to a function that returns Loop.Term")
	case opts.Merge == nil:
		opts.Merge = merge
	}
	return &Writer{opts: opts, wake: make(chan struct{}, 1)}, nil
}

// Refresh makes the writer look at the items of the deployed revision again. Call it when
// they change without a render. It does not block.
func (w *Writer) Refresh() {
	select {
	case w.wake <- struct{}{}:
	default: // a pass comes soon anyway
	}
}

// Check returns an error if some statuses are not written. It is a check for observe.Health.
func (w *Writer) Check() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// Renderer wraps the renderer of the loop. It calls items after each render. If the revision
// of the render is deployed, the goroutine of [Writer.Run] reads the sequence, also several
// times and during later renders. So items must be fast, and the sequence may be slow.
func (w *Writer) Renderer(r reconcile.Renderer, items func() iter.Seq[Item]) reconcile.Renderer {
	return &followed{r, w, items}
}

type followed struct {
	reconcile.Renderer
	writer *Writer
	items  func() iter.Seq[Item]
}

func (f *followed) Render(ctx context.Context) (*reconcile.Rendered, error) {
	r, err := f.Renderer.Render(ctx)
	if err == nil && r != nil {
		f.writer.follow(r, f.items())
	}
	return r, err
}

// Settle implements reconcile.Settler for the wrapped renderer.
func (f *followed) Settle(cfg *dataplane.Config, err error) (again bool) {
	settler, ok := f.Renderer.(reconcile.Settler)
	return ok && settler.Settle(cfg, err)
}

// follow gives a render its number, and learns when it is deployed.
func (w *Writer) follow(r *reconcile.Rendered, items iter.Seq[Item]) {
	w.mu.Lock()
	w.count++
	of := revision{number: w.count, items: items}
	w.mu.Unlock()
	before := r.Deployed
	r.Deployed = func(term uint64) {
		if before != nil {
			before(term)
		}
		of.term = term
		w.has(of)
	}
}

// has notes a deployment. Another instance may already have a later revision.
func (w *Writer) has(r revision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at := w.deployed; r.term > at.term || r.term == at.term && r.number > at.number {
		w.deployed = r
		w.Refresh()
	}
}
