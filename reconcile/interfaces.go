package reconcile

import (
	"context"
	"maps"
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

// Renderer makes a configuration from the current resources. The loop calls it from one
// goroutine at a time.
//
// For quarantine it asks [Excluding] about the objects that its render must replace or leave
// out. Together with an error it may return a Rendered that has only Origins.
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

	// Accepted is called before the next render, once the configuration is the newest valid
	// one; it may be nil. A [Renderer] with a memory updates it here, because a search
	// renders many configurations that the loop never uses.
	Accepted func()

	// Deployed is called when an instance has the configuration, in the process that leads;
	// it may be nil. The term is that of [Loop.Term]. It is called for each instance and each
	// check for drift, so often again, and may come after that of a later render. If renders
	// make the same configuration, it is called for the newest one. Any goroutine may call it.
	Deployed func(term uint64)
}

// MaxRefusals is how many refusals of one resource a [Loop] reports and keeps. It only
// counts the others.
const MaxRefusals = 10

// Refusal says that the configuration lacks a resource, or the part of it that Field names,
// and why. With Warning nothing is left out, but the owner should look at the resource.
type Refusal struct {
	Resource string // kind and name: "Ingress shop/web"
	Source   string // file and line of the resource, if known: "web.yaml:12"
	Field    string // "spec.rules[0].host"
	Reason   string
	Object   Resource `json:"object,omitzero"` // the resource that a [Recorder] writes to
	More     int      `json:"more,omitempty"`  // further refusals of the resource, only counted
	Warning  bool     `json:"warning,omitempty"`
	Detail   string   `json:"detail,omitempty"` // details that may change while the problem stays: "3 not ready"
}

// Refuse returns the refusal of an object, or of the part of it that field names: it fills in
// what [ResourceOf] knows of the object. Set Warning if the object is served all the same.
func Refuse(obj any, field, reason string) Refusal {
	resource, _ := ResourceOf(obj)
	return Refusal{Resource: resource.String(), Source: resource.Source, Object: resource, Field: field, Reason: reason}
}

// String returns one line for a log.
func (r Refusal) String() string { return r.located() + ": " + r.what() }

// located returns the name of the resource and, if known, its file and line.
func (r Refusal) located() string {
	if r.Source != "" {
		return printable.Line(r.Resource + " (" + r.Source + ")")
	}
	return printable.Line(r.Resource)
}

// word names the kind of refusal for a log line.
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

// still returns the refusal without its details that may change while the problem stays.
func (r Refusal) still() Refusal {
	r.More, r.Detail, r.Source = 0, "", ""
	r.Object = Resource{APIVersion: r.Object.APIVersion, Kind: r.Object.Kind, Namespace: r.Object.Namespace, Name: r.Object.Name}
	return r
}

// Settler is an optional interface of a [Renderer]. Through it the loop reports whether
// configurations were deployed or refused. Any goroutine may call it, also during a render.
type Settler interface {
	// Settle says that a target has the configuration or, with an error, that the
	// configuration is not valid. In a process that does not lead, a valid one counts as
	// deployed. After an error it returns true if a render right now may do better.
	Settle(cfg *dataplane.Config, err error) (again bool)
}

// Validator decides whether a configuration may be deployed: nil means yes. The loop calls
// it from one goroutine at a time.
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
	// DryRun returns the plan that Sync would carry out.
	DryRun(ctx context.Context, cfg *dataplane.Config) (*dataplane.Plan, error)
	// Sync brings the instance to cfg. With [dataplane.WithoutReload] it applies what needs
	// no reload, or nothing, and returns the rest as Left of the Result.
	Sync(ctx context.Context, cfg *dataplane.Config, options ...dataplane.SyncOption) (*dataplane.Result, error)
}

// Prober is a [Target] that finds out its versions before the first deployment, as
// [dataplane.Client] does. [InstanceState] shows them. If an instance cannot be reached, the
// loop probes it again with the back-off of a failed deployment. If the version does not fit
// (the error is [dataplane.ErrUnsupported]) or the credentials are wrong, it probes again
// after 5 s, doubling to 60 s.
type Prober interface {
	Target
	Probe(ctx context.Context) (dataplane.Target, error)
}

// Leader says whether this process may deploy. The loop asks it before every call that
// changes an instance. It must return false as soon as another process may lead, even if
// this process was frozen in between.
//
// Nothing else keeps two processes apart. A process that was frozen in the middle of a
// deployment makes no further changing call. A call already on its way may still arrive. The
// instance refuses it only if it is a configuration, because its version is old by then. If
// a wrong clock makes two processes lead, they undo each other's deployments in turns.
type Leader interface {
	Leading() bool
}

// forgetter is a [Target] that remembers its last deployment, as [dataplane.Client] does.
// The loop calls Forget before the first deployment of a term, since another process may
// have deployed before. It also does so before each check for drift.
type forgetter interface {
	Forget()
}

// Recorder writes messages to the owner of a resource. The EventRecorder of client-go's
// tools/record is one: "kubectl describe" shows its messages. It must not block.
type Recorder interface {
	// Event gets a [corev1.ObjectReference] as object, "Warning" or "Normal" as eventtype,
	// and a reason of one word.
	Event(object runtime.Object, eventtype, reason, message string)
}

const (
	eventWarning = corev1.EventTypeWarning
	eventNormal  = corev1.EventTypeNormal
)

// maxMessage bounds the message of a Kubernetes Event, in bytes.
const maxMessage = 1024

// record writes a message to the owner of a resource, and reports whether it did. It does
// not if another process leads, because that one writes it.
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
	return l.callback("Recorder.Event", func() { l.opts.Recorder.Event(ref, eventtype, reason, message) })
}

// Excluded is the set of quarantined resources. A render takes their earlier versions in
// their place, or leaves them out. A nil *Excluded is empty. It is safe for concurrent use.
type Excluded struct {
	resources map[identity]bool
	names     map[string]bool      // of these resources: most objects have none of these names
	before    map[identity]version // the earlier versions that replace some of them
	closed    *closed              // namespaces whose changes are excluded, too
	bare      map[identity]bool    // objects without a replacement, or whole namespaces: see bareSpace

	mu    sync.Mutex
	asked map[identity]Resource // resources that the render asked about, as they were then
	aside map[identity]Resource // the same for changes in closed
	stood map[identity]version  // versions that the render took in their place
}

// version is an object, and the Resource that names its version.
type version struct {
	Resource
	object any
}

// identity names the object of a verdict. The version of the API is not part of it.
type identity struct {
	group, kind, namespace, name string // group: "v1" for the core; "" if a typed object does not say it
}

func (r Resource) identity() identity {
	group, _, _ := strings.Cut(r.APIVersion, "/")
	return identity{group, r.Kind, r.Namespace, r.Name}
}

// bareSpace stands for all objects of a namespace.
func bareSpace(namespace string) identity { return identity{namespace: namespace} }

// Excluding returns the resources that a render with this context must replace or leave out.
// A [Renderer] that asks it lets the loop quarantine a bad resource alone. k8swatch.Read
// asks for all objects that it reads. For objects from elsewhere, ask yourself:
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

// in returns a context whose render leaves these resources out. k8swatch.Read obeys it, too.
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

// ToRender returns the version of an object that a render must use. That is obj itself or,
// for a quarantined resource, the version of the last valid configuration. It returns false
// if the resource must be left out: there is no such version, or that one is at fault, too.
//
// Ask about every object, at each render, before anything else depends on the object. A
// quarantined resource that the renderer does not ask about counts as deleted. If you found
// the object by a value that versions may differ in, such as a label, compare that value
// again.
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

// known returns the identity that excludes an object: its own, or the same without an API
// group.
func (e *Excluded) known(id identity) identity {
	if unknown := (identity{"", id.kind, id.namespace, id.name}); !e.resources[id] && e.resources[unknown] {
		return unknown
	}
	return id
}

// Has reports whether an object is in quarantine, in any version. A renderer that asks only
// Has, and not [ToRender], leaves such objects out.
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
	if _, known := e.asked[id]; out && (!known || e.before[id].Resource != r) { // r is not the replacement
		e.asked[id] = r
	} else if !out {
		e.aside[id] = r
	}
	return true
}

// besides returns the changes that the render left out because of closed.
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

// stands returns the version that the render took in place of an object.
func (e *Excluded) stands(id identity) version {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stood[id]
}
