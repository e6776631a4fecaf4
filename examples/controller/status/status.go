// Package status writes the addresses of HAProxy into status.loadBalancer of the
// Ingresses that it serves.
//
// An Ingress gets the addresses once it is deployed. It keeps them as long as it has
// one of our classes, so a bad edit does not cost it its DNS record. If it changes to
// another controller's class while this process leads, the writer removes them, unless
// another client has changed them. When this process ends, all statuses stay. One
// goroutine writes: many Ingresses delay nothing else.
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

// Addresses are the addresses at which clients reach HAProxy.
type Addresses = []networkingv1.IngressLoadBalancerIngress

// Finder returns an Ingress, and whether it has one of our classes; nil and false:
// there is no such Ingress.
type Finder func(namespace, name string) (ing *networkingv1.Ingress, ours bool)

// Routes are the source of a configuration. The writer compares them, so they must be
// pointers.
type Routes interface {
	Served() iter.Seq[*networkingv1.Ingress] // it may yield an Ingress several times
}

// Options of a [Writer]. All but Namespaces and Addresses are required.
type Options struct {
	Client     clientv1.IngressesGetter
	Namespaces []string      // Ingresses of these namespaces count; nil: of all
	Leads      func() uint64 // the number of the current term; 0: this process does not lead
	Look       func() Finder // at the current Ingresses
	Addresses  Addresses     // nil: the addresses of the Service of [Writer.Follow]
}

// Writer writes statuses. Make it with [New], give it the renderer of the loop, and run it
// once. Its methods may be called concurrently.
type Writer struct {
	opts    Options
	wake    chan struct{}                     // of size 1
	service *k8swatch.Single[*corev1.Service] // its addresses are published; nil: Options.Addresses are

	mu       sync.Mutex
	rendered []revision // the newest is the last
	count    int        // of all renders
	deployed revision   // the configuration of a HAProxy
	publish  Addresses  // nil: not known yet
	unknown  error      // why publish is not known
	failed   error      // of the last writes
}

// revision is a configuration and its routes.
type revision struct {
	hash   string
	number int // later ones have higher numbers
	routes Routes
	term   uint64 // in which it was deployed
}

// kept bounds the configurations that wait for their deployment.
const kept = 16

// New returns a writer.
func New(opts Options) *Writer {
	return &Writer{opts: opts, publish: opts.Addresses, wake: make(chan struct{}, 1)}
}

func (w *Writer) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default: // write runs soon anyway
	}
}

// Check returns an error if some statuses are not written.
func (w *Writer) Check() (err error) {
	if w.service != nil && w.service.State().Err != nil {
		err = fmt.Errorf("publish-service: %w", w.service.State().Err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(err, w.unknown, w.failed)
}

// Renderer is a renderer that learns what became of its renders.
type Renderer interface {
	reconcile.Renderer
	reconcile.Settler
}

// Renderer wraps the renderer of the loop, so that the writer learns what is made and
// what is deployed. routes returns the routes of the last render.
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

// made notes the routes of a configuration. Other Ingresses can make the same
// configuration as the deployed one.
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

// has notes that this process deployed a configuration to an instance. Another instance
// may already have a later one.
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
