package reconcile

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/printable"
	"github.com/hapticsdk/haptic/internal/rendering"
)

// Renderer makes a configuration from what is known now. The loop calls it
// from one goroutine at a time.
//
// A render has, or leaves out, what [Excluding] says of its context. With an error there may
// be a Rendered that has Origins alone.
type Renderer interface {
	Render(ctx context.Context) (*Rendered, error)
}

// RendererFunc is a [Renderer] made of a function.
type RendererFunc func(ctx context.Context) (*Rendered, error)

// Render calls f.
func (f RendererFunc) Render(ctx context.Context) (*Rendered, error) { return f(ctx) }

// Rendered is the outcome of a render.
type Rendered struct {
	Config    *dataplane.Config
	Refused   []Refusal      // resources, or parts of them, that are left out
	Resources map[string]int // resources read, by kind
	Origins   Origins        // what wrote each line; nil: not known

	// Accepted is called, before the next render, once the configuration is the newest
	// valid one; nil: it is not told. A [Renderer] that remembers something from render
	// to render changes that here: most renders of a search for what is at fault are
	// only tried.
	Accepted func()
}

// MaxRefusals is how many refusals of one resource a [Loop] tells of and keeps;
// the others are counted.
const MaxRefusals = 10

// Refusal says that a resource, or the part of it that Field names, is not in
// the configuration, and why. With Warning no rule leaves anything of it out, and its
// owner should look all the same.
type Refusal struct {
	Resource string // kind and name: "Ingress shop/web"
	Source   string // where the resource was read, if that is known: "web.yaml:12"
	Field    string // "spec.rules[0].host"
	Reason   string
	Object   Resource `json:"object,omitzero"` // the resource, where a [Recorder] is to speak of it
	More     int      `json:"more,omitempty"`  // further refusals of the resource that are only counted
	Warning  bool     `json:"warning,omitempty"`
	Detail   string   `json:"detail,omitempty"` // what may change while the problem stays: "3 not ready"
}

// String reads as one line of a log.
func (r Refusal) String() string { return r.located() + ": " + r.what() }

// located is the name of the resource and, where that is known, its place.
func (r Refusal) located() string {
	if r.Source != "" {
		return printable.Line(r.Resource + " (" + r.Source + ")")
	}
	return printable.Line(r.Resource)
}

// word is what people call it.
func (r Refusal) word() string {
	if r.Warning {
		return "warning"
	}
	return "refused"
}

// what says which part is left out, and why.
func (r Refusal) what() string {
	s := r.Reason
	if r.Detail != "" {
		s += "; " + r.Detail
	}
	if r.Field != "" {
		s = r.Field + ": " + s
	}
	if r.More > 0 {
		s += "; " + strconv.Itoa(r.More) + " more refusals"
	}
	return printable.Line(s)
}

// still is the same for a resource that changes in another place, or moves in its file.
func (r Refusal) still() Refusal {
	r.More, r.Detail, r.Source = 0, "", ""
	r.Object = Resource{APIVersion: r.Object.APIVersion, Kind: r.Object.Kind, Namespace: r.Object.Namespace, Name: r.Object.Name}
	return r
}

// Settler is an optional interface of a [Renderer]. The loop tells it what became of
// what it rendered. The calls come from any goroutine, also during a render.
type Settler interface {
	// Settle says that a target has the configuration or, with an error, that it
	// is not valid. After an error it reports whether another render, made at
	// once, may do better.
	Settle(cfg *dataplane.Config, err error) (again bool)
}

// Validator says whether a configuration may be deployed; nil says that it
// may. The loop calls it from one goroutine at a time.
type Validator interface {
	Validate(ctx context.Context, cfg *dataplane.Config) error
}

// ValidatorFunc is a [Validator] made of a function.
type ValidatorFunc func(ctx context.Context, cfg *dataplane.Config) error

// Validate calls f.
func (f ValidatorFunc) Validate(ctx context.Context, cfg *dataplane.Config) error { return f(ctx, cfg) }

// Target is one instance: a [dataplane.Client] or a [dataplane.Local]. The loop
// makes one call at a time to each target, and calls several targets at once.
type Target interface {
	// Name tells targets apart, in events and metrics too.
	Name() string
	// DryRun says what Sync would do.
	DryRun(ctx context.Context, cfg *dataplane.Config) (*dataplane.Plan, error)
	// Sync makes the instance have cfg. With [dataplane.WithoutReload] it applies what
	// it can at once, or nothing, and tells the rest as Left of the Result.
	Sync(ctx context.Context, cfg *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error)
}

// Prober is a [Target] that says what it is before anything is deployed to it,
// as [dataplane.Client] does. One that cannot be reached is probed again as a
// failed deployment is tried again; where its version does not fit (its error
// is [dataplane.ErrUnsupported]), or the credentials are wrong, after 5 s,
// doubling to 60 s. What it is stands in [InstanceState].
type Prober interface {
	Target
	Probe(ctx context.Context) (dataplane.Target, error)
}

// PanicError is a panic in a [Renderer], [Validator] or [Target], which the
// loop takes as a failure of that call.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Guard calls f. A panic is returned as a [*PanicError].
func Guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

// Leader says whether this process may deploy. The loop asks it before every call
// that changes an instance. It must say no as soon as another process may lead, even
// where this one was frozen in between.
//
// Nothing else keeps two processes apart. A process that was frozen in the middle of
// a deployment makes no further changing call. The call that was on its way then may
// still arrive: an instance refuses it only where it is a configuration, whose
// version is old. Two processes that both believe that they lead, since the clock of
// one is wrong, undo each other's deployments in turns.
type Leader interface {
	Leading() bool
}

// forgetter is a [Target] that remembers what it deployed, as [dataplane.Client]
// does. It is told before the first deployment of a term, since another process may
// have deployed before, and before each check for drift.
type forgetter interface {
	Forget()
}

// Recorder speaks of a resource to its owner. The EventRecorder of client-go's
// tools/record is one, so that what is wrong stands in "kubectl describe". It
// must not block.
type Recorder interface {
	// Event gets a [corev1.ObjectReference] for object, "Warning" or "Normal",
	// and a reason of one word.
	Event(object runtime.Object, eventtype, reason, message string)
}

const (
	eventWarning = corev1.EventTypeWarning
	eventNormal  = corev1.EventTypeNormal
)

// maxMessage is how long the message of a Kubernetes Event may be, in bytes.
const maxMessage = 1024

// record tells the owner of a resource something, if there is a Recorder. It reports
// false where another process leads, which does so.
func (l *Loop) record(r Resource, eventtype, reason, message string) bool {
	if l.opts.Recorder == nil || r.Kind == "" || r.Name == "" || !l.leading() {
		return false
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-3], "") + "..."
	}
	ref := &corev1.ObjectReference{
		APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: r.UID, ResourceVersion: r.Version,
	}
	// One that panics only goes unheard.
	return Guard(func() error { l.opts.Recorder.Event(ref, eventtype, reason, message); return nil }) == nil
}

// Excluded is the set of quarantined resources: a render has their earlier version in
// their place, or leaves them out. A nil *Excluded is empty. It is safe for concurrent use.
type Excluded struct {
	resources map[identity]bool
	names     map[string]bool      // of them: most objects are known by that not to be among them
	before    map[identity]version // what stands in place of some of them
	closed    *closed              // besides
	bare      map[identity]bool    // for which nothing stands; of namespaces, too: see bareSpace

	mu    sync.Mutex
	asked map[identity]Resource // what the render asked about, as it was then
	aside map[identity]Resource // the same of what is left out because of closed
	stood map[identity]version  // what the render took in place of these
}

// version is an object, and which version of it that is.
type version struct {
	Resource
	object any
}

// identity is what a verdict sticks to. The version of the API is not part of it.
type identity struct {
	group, kind, namespace, name string // group: "v1" for the core; "" where a typed object does not say it
}

func (r Resource) identity() identity {
	group, _, _ := strings.Cut(r.APIVersion, "/")
	return identity{group, r.Kind, r.Namespace, r.Name}
}

// bareSpace stands for all objects of a namespace.
func bareSpace(namespace string) identity { return identity{namespace: namespace} }

// Excluding returns what the render of this context leaves out. A [Renderer]
// that asks it lets the loop quarantine a bad resource, so that it harms no other.
// k8swatch.Read asks it for all that it reads; objects from elsewhere take a line each:
//
//	excluded := reconcile.Excluding(ctx)
//	for _, ing := range ingresses {
//		ing, ok := reconcile.ToRender(excluded, ing)
//		if !ok {
//			continue
//		}
func Excluding(ctx context.Context) *Excluded {
	if r := rendering.RuleOf(ctx); r != nil {
		e, _ := r.Of.(*Excluded)
		return e
	}
	return nil
}

// WithExcluded returns a context whose render leaves these resources out.
func WithExcluded(ctx context.Context, resources ...Resource) context.Context {
	return newExcluded(resources).in(ctx)
}

// in returns the context of a render that leaves these out, for k8swatch.Read too.
func (e *Excluded) in(ctx context.Context) context.Context {
	r := &rendering.Rule{Of: e}
	if !e.Empty() {
		r.Stand = func(obj any) (any, bool) { return ToRender(e, obj) }
	}
	return rendering.WithRule(ctx, r)
}

func newExcluded(resources []Resource) *Excluded {
	e := &Excluded{resources: make(map[identity]bool, len(resources)), names: map[string]bool{}, asked: map[identity]Resource{},
		aside: map[identity]Resource{}, stood: map[identity]version{}}
	for _, r := range resources {
		e.resources[r.identity()], e.names[r.Name] = true, true
	}
	return e
}

// Empty reports whether nothing is left out.
func (e *Excluded) Empty() bool { return e == nil || len(e.resources) == 0 && e.closed == nil }

// ToRender returns the version of an object that a render reads. That is obj itself or,
// of a resource in quarantine, the version of the last valid configuration. It reports
// false where the resource is left out, and there is no such version, or that is at fault,
// too.
//
// Ask it of every object that is read, at each render, before anything follows from the
// object: a quarantined resource that the renderer does not ask about counts as deleted.
// Where an object was found by something that a new version may change, such as a label,
// compare that again.
func ToRender[T any](e *Excluded, obj T) (T, bool) {
	var none T
	if !e.Has(obj) {
		return obj, true
	}
	r, _ := ResourceOf(obj)
	id := e.known(r.identity())
	v, ok := e.before[id]
	if !ok && !e.resources[id] {
		v, ok = e.closed.valid[id]
	}
	if !ok || v.UID != r.UID || e.bare[id] || e.bare[bareSpace(id.namespace)] && id.namespace != "" {
		return none, false
	}
	stands, ok := v.object.(T)
	if u, is := v.object.(*unstructured.Unstructured); is && !ok {
		stands, ok = any(u.Object).(T)
	}
	if !ok {
		return none, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stood[id] = v
	return stands, true
}

// known is the identity under which an object is left out.
func (e *Excluded) known(id identity) identity {
	if unknown := (identity{"", id.kind, id.namespace, id.name}); !e.resources[id] && e.resources[unknown] {
		return unknown
	}
	return id
}

// Has reports whether an object is in quarantine, in whatever version. A renderer that
// asks it, and not [ToRender], leaves such objects out.
func (e *Excluded) Has(obj any) bool {
	if e.Empty() {
		return false
	}
	if named, ok := obj.(interface{ GetName() string }); ok && e.closed == nil && !isNil(obj) && !e.names[named.GetName()] {
		return false
	}
	r, ok := ResourceOf(obj)
	if !ok {
		return false
	}
	id := e.known(r.identity())
	out, aside := e.resources[id], e.closed.has(r)
	if !out && !aside {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.asked[id]; out && (!known || e.before[id].Resource != r) { // not what stands in its place
		e.asked[id] = r
	} else if !out {
		e.aside[id] = r
	}
	return true
}

// besides returns what the render left out because of closed.
func (e *Excluded) besides() map[identity]Resource {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.aside)
}

// now returns a resource as it was when the render asked about it.
func (e *Excluded) now(id identity) (r Resource, asked bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r, asked = e.asked[id]
	return r, asked
}

// stands returns what the render took in place of an object.
func (e *Excluded) stands(id identity) version {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stood[id]
}
