// Package status writes where clients reach HAProxy into status.loadBalancer of the
// Ingresses that a HAProxy serves.
//
// An Ingress gets the addresses once it is deployed, and keeps them as long as it is of
// our classes, so that a bad edit does not cost it its DNS record. One that becomes another
// controller's while this process leads loses them, unless somebody else wrote it. At the
// end all stay as they are. One goroutine writes: many Ingresses delay nothing else.
package status

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	clientv1 "k8s.io/client-go/kubernetes/typed/networking/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
)

// Addresses are where clients reach HAProxy.
type Addresses = []networkingv1.IngressLoadBalancerIngress

// Finder returns an Ingress, and whether it is of our classes; nil and false: there is none.
type Finder func(namespace, name string) (ing *networkingv1.Ingress, ours bool)

// Routes are what a configuration was made of. They are compared: pointers are.
type Routes interface {
	Served() iter.Seq[*networkingv1.Ingress] // some may come several times
}

// Options of a [Writer]. All but Namespaces and Addresses are required.
type Options struct {
	Client     clientv1.IngressesGetter
	Namespaces []string      // whose Ingresses count; nil: all
	Leads      func() uint64 // the number of the term in which this process leads; 0: it does not
	Look       func() Finder // at the Ingresses of now
	Addresses  Addresses     // nil: those of the Service of [Writer.Follow]
}

// Writer writes statuses. Make it with [New], give it the renderer of the loop, and run it
// once. Its methods may be called concurrently.
type Writer struct {
	opts    Options
	wake    chan struct{}                     // of size 1
	service *k8swatch.Single[*corev1.Service] // that has the addresses; nil: they are given

	mu       sync.Mutex
	rendered []revision // the newest is the last
	count    int        // of all that were rendered
	deployed revision   // that a HAProxy has
	publish  Addresses  // nil: not known yet
	unknown  error      // why that is so
	failed   error      // of the last writes
}

// revision is a configuration, and what it was made of.
type revision struct {
	hash   string
	number int // later ones have higher numbers
	routes Routes
	term   uint64 // in which it was deployed
}

// kept is how many configurations may be deployed yet.
const kept = 16

// New returns a writer.
func New(opts Options) *Writer {
	return &Writer{opts: opts, publish: opts.Addresses, wake: make(chan struct{}, 1)}
}

func (w *Writer) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default: // it will look
	}
}

// Check says why statuses are not as they should be.
func (w *Writer) Check() (err error) {
	if w.service != nil && w.service.State().Err != nil {
		err = fmt.Errorf("publish-service: %w", w.service.State().Err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(err, w.unknown, w.failed)
}

// Renderer is one that says what became of what it rendered.
type Renderer interface {
	reconcile.Renderer
	reconcile.Settler
}

// Renderer returns the renderer for the loop: it tells the writer what is made and what is
// deployed. routes are those of the last render.
func (w *Writer) Renderer(r Renderer, routes func() Routes) Renderer { return &followed{r, w, routes} }

type followed struct {
	Renderer
	writer *Writer
	routes func() Routes
}

func (f *followed) Render(ctx context.Context) (*reconcile.Rendered, error) {
	r, err := f.Renderer.Render(ctx)
	if err == nil {
		f.writer.made(revision{hash: r.Config.Hash(), routes: f.routes()})
	}
	return r, err
}

func (f *followed) Settle(cfg *dataplane.Config, err error) (again bool) {
	if err == nil {
		f.writer.has(cfg.Hash())
	}
	return f.Renderer.Settle(cfg, err)
}

// made notes what a configuration was made of. Other Ingresses can make the same one as is
// deployed.
func (w *Writer) made(r revision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	r.number = w.count
	w.rendered = append(w.rendered, r)
	w.rendered = w.rendered[max(0, len(w.rendered)-kept):]
	if w.deployed.hash == r.hash {
		r.term = w.deployed.term
		w.deployed = r
		w.wakeUp()
	}
}

// has notes that a HAProxy has a configuration, deployed by this process. Another one may
// have a later one already.
func (w *Writer) has(hash string) {
	term := w.opts.Leads()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range slices.Backward(w.rendered) {
		if r.hash != hash || term == 0 {
			continue
		}
		if r.term = term; term != w.deployed.term || r.number > w.deployed.number {
			w.deployed = r
			w.wakeUp()
		}
		return
	}
}
