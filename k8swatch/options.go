package k8swatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hapticsdk/haptic/internal/jsonpath"
	"github.com/hapticsdk/haptic/k8swatch/internal/store"
)

// Options of a [Watcher]. The zero value watches all namespaces, indexes by
// namespace and name, and calls nothing.
type Options struct {
	Namespace     string // one namespace; "" for all
	LabelSelector string // as in kubectl -l
	FieldSelector string // as in kubectl --field-selector, e.g. "type!=helm.sh/release.v1"

	// IndexBy are JSONPath expressions. Their values, in this order, are the keys of
	// Snapshot.Get. Examples: "metadata.namespace",
	// "metadata.labels['kubernetes.io/service-name']" and
	// `{.spec.ports[?(@.name=="http")].port}`; see "JSONPath" in the documentation of
	// the package. If an expression has many values, Get finds the object under each;
	// several expressions make all combinations. An object with more than 1,000 keys,
	// or with a field that a filter cannot compare, is refused. Empty means
	// metadata.namespace, metadata.name.
	IndexBy []string

	// IgnoreFields are JSONPath expressions of fields to drop before the watcher stores
	// an object, such as "status". They have no filter.
	// The watcher always drops metadata.managedFields and the annotation
	// kubectl.kubernetes.io/last-applied-configuration. Both copy the object, and no
	// configuration needs them. An update of dropped fields alone is no change. The
	// object in the store then keeps its older resource version.
	IgnoreFields []string

	// BytesPerNamespace bounds what the watcher holds of one namespace: in bytes of the encoding for
	// transport, and 1 KiB for each object. A new object beyond the bound is refused. An
	// object that grows beyond the bound keeps its version from before. Zero means no bound.
	// OnlyNamed has its own.
	BytesPerNamespace int64

	// OnlyNamed, if not nil, makes the watcher hold only the objects that others name.
	OnlyNamed *OnlyNamed

	// Names calls name for each object that o names in a watcher with OnlyNamed. That of another
	// namespace than it watches is none. o is stored once these are, or the source says that
	// there are none, so that a snapshot of a [Group] has both. An answer that takes more than a
	// second is waited for at the first sync only. There may be no room: see [Withheld]. Names
	// must depend on o alone.
	Names func(o Object, name func(in *Watcher, of types.NamespacedName))

	// Debounce is the least time between two calls of OnChange. The first change after a
	// quiet time is delivered at once. Zero means 500 ms, negative none.
	Debounce time.Duration

	// OnChange gets changes once the initial sync is complete. With
	// CallOnChangeDuringSync it gets the initial sync too. Calls of OnChange and
	// OnSyncComplete never overlap. If OnChange returns an error or panics, the watcher
	// logs that. It then delivers the same changes again, together with newer ones,
	// after 0.2 to 10 s of back-off. ForceSync calls OnChange at once. The context ends
	// with Run.
	OnChange func(context.Context, Changes) error

	// MaxChanges bounds the objects that Changes lists. Zero means
	// [DefaultMaxChanges], negative none.
	MaxChanges int

	// OnSyncComplete is called once, with the number of objects, after the last initial
	// object is in the store.
	OnSyncComplete func(count int)

	CallOnChangeDuringSync bool

	// NoWatchList fetches the initial objects with LISTs of 500 instead of a stream.
	// The watcher falls back to LISTs anyway if a stream stands still for 10 s. LISTs
	// return the latest state; API servers before 1.34 read it from etcd.
	NoWatchList bool

	Logger *slog.Logger // nil means slog.Default()
}

const defaultDebounce = 500 * time.Millisecond

func debounce(d time.Duration) time.Duration {
	switch {
	case d == 0:
		return defaultDebounce
	case d < 0:
		return 0
	}
	return d
}

func logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.Default()
	}
	return l
}

// compiled holds the compiled expressions of Options.
type compiled struct {
	index  []*jsonpath.Bound
	ignore []*jsonpath.Bound
}

// compile checks all options.
func (o *Options) compile(typ reflect.Type) (*compiled, error) {
	if o.Namespace != "" && len(validation.IsDNS1123Label(o.Namespace)) > 0 {
		return nil, fmt.Errorf("Namespace %q: want the name of a namespace: a-z, 0-9 and -, 63 characters at most", o.Namespace)
	}
	if _, err := labels.Parse(o.LabelSelector); err != nil {
		return nil, fmt.Errorf("LabelSelector %q: want one such as app=haproxy: %w", o.LabelSelector, err)
	}
	if _, err := fields.ParseSelector(o.FieldSelector); err != nil {
		return nil, fmt.Errorf("FieldSelector %q: want one such as type=kubernetes.io/tls: %w", o.FieldSelector, err)
	}
	if o.BytesPerNamespace < 0 {
		return nil, fmt.Errorf("BytesPerNamespace: %d: want 0 or more", o.BytesPerNamespace)
	}
	if o.OnlyNamed != nil {
		if err := o.OnlyNamed.check(); err != nil {
			return nil, err
		}
		if o.BytesPerNamespace != 0 {
			return nil, errors.New("BytesPerNamespace: with OnlyNamed, want OnlyNamed.BytesPerNamespace")
		}
		if o.Names != nil {
			return nil, errors.New("OnlyNamed, Names: want one of them: a watcher that holds what others name cannot name more")
		}
	}
	var c compiled
	var err error
	if c.index, err = bind("IndexBy", o.IndexBy, typ, jsonpath.Compile); err != nil {
		return nil, err
	}
	if c.ignore, err = bind("IgnoreFields", o.IgnoreFields, typ, jsonpath.CompileField); err != nil {
		return nil, err
	}
	for _, expr := range o.IgnoreFields {
		if needed(expr) {
			return nil, fmt.Errorf("IgnoreFields: %q: the watcher needs this field: remove it from the list", expr)
		}
	}
	return &c, nil
}

// needed reports whether a path would drop the identity or the version of an object, in
// whatever notation.
func needed(expr string) bool {
	path, err := jsonpath.CompileField(expr)
	if err != nil {
		return false // compile refuses it
	}
	probe, err := path.Bind(nil)
	if err != nil {
		return false
	}
	metadata := map[string]any{"name": "n", "namespace": "n", "uid": "u", "resourceVersion": "1"}
	fields := len(metadata)
	object := map[string]any{"metadata": metadata}
	probe.Delete(object)
	return len(object) == 0 || len(metadata) < fields
}

func bind(option string, exprs []string, typ reflect.Type, compile func(string) (*jsonpath.Path, error)) ([]*jsonpath.Bound, error) {
	bound := make([]*jsonpath.Bound, 0, len(exprs))
	for _, expr := range exprs {
		path, err := compile(expr)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", option, err)
		}
		b, err := path.Bind(typ)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", option, err)
		}
		bound = append(bound, b)
	}
	return bound, nil
}

// Changes are the changes since the last delivery. An object that was deleted and
// created again under its name counts as both.
//
// A consumer may keep a result for each object. It derives the results of Objects
// again, from Snapshot, if More is 0 and From is no later than the revision it read
// last. Otherwise it reads everything again. A consumer that waits between deliveries
// adds them up with [Changes.And].
type Changes struct {
	Created, Modified, Deleted int
	InitialSync                bool     // includes the objects that existed at the start
	From, To                   Revision // revisions of the store before and after

	// ByResource has the same numbers for each resource that changed.
	ByResource map[schema.GroupVersionResource]Counts

	// Objects lists each changed object once, by resource, namespace and name, up to
	// [Options.MaxChanges]. More is the number of changes of objects beyond that. If it
	// is 0, the list is complete.
	Objects []Change
	More    int

	// Snapshot is the state at exactly To, of the watcher or of all watchers of the group.
	Snapshot *GroupSnapshot
}

// Counts are numbers of changes.
type Counts struct{ Created, Modified, Deleted int }

// Change is an object that differs between the two ends of a [Changes].
type Change struct {
	Watcher         *Watcher // Changes.Snapshot.Of(Watcher) has the current object
	Namespace, Name string   // Namespace is "" where the resource has none
	Kind            ChangeKind
}

// ChangeKind says what happened to an object.
type ChangeKind string

// The kinds. A consumer may not know the state before, because its callback failed. So
// an object that was created and deleted is Deleted. An object that was deleted and
// created again is Modified, with another uid. Neither Created nor Modified promises
// whether the object existed before.
const (
	Created  ChangeKind = "created"
	Modified ChangeKind = "modified"
	Deleted  ChangeKind = "deleted"
)

var kinds = [...]ChangeKind{store.Created: Created, store.Modified: Modified, store.Deleted: Deleted}

// Resource returns the resource of the object.
func (c Change) Resource() schema.GroupVersionResource { return c.Watcher.resource }

// String returns a text such as "ingresses shop/web created".
func (c Change) String() string {
	return fmt.Sprintf("%s %s %s", c.Watcher.resource.Resource, strings.TrimPrefix(c.Namespace+"/"+c.Name, "/"), c.Kind)
}

// String returns a text such as "1 created, 2 modified". It omits zeros.
func (c Changes) String() string {
	var parts []string
	for _, part := range []struct {
		count int
		what  ChangeKind
	}{{c.Created, Created}, {c.Modified, Modified}, {c.Deleted, Deleted}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "no changes")
}

// Total is the number of changes. It is 0 after ForceSync if nothing changed.
func (c Changes) Total() int { return c.Created + c.Modified + c.Deleted }

// And adds later changes of the same watcher or group. The list has as many objects as
// the longer of both, or [DefaultMaxChanges].
func (c Changes) And(later Changes) Changes {
	sum := pending{max: max(len(c.Objects), len(later.Objects), DefaultMaxChanges)}
	for _, changes := range []Changes{c, later} {
		sum.sum(changes)
		for _, o := range changes.Objects {
			sum.see(objectOf{o.Watcher, o.Namespace, o.Name}, o.Kind)
		}
	}
	return sum.changes()
}

// DefaultMaxChanges is how many objects [Changes] lists unless options say otherwise.
const DefaultMaxChanges = 1000

func maxChanges(n int) int { return max(cmp.Or(n, DefaultMaxChanges), 0) }

// batch holds the changes of one commit of a store.
type batch struct {
	Changes
	watcher *Watcher
	objects []store.Changed // valid only during the call
}

// pending adds changes up. The zero value lists no objects.
type pending struct {
	Changes
	any     bool // there is something to deliver, maybe without changes
	max     int
	objects map[objectOf]ChangeKind
}

type objectOf struct {
	watcher         *Watcher
	namespace, name string
}

func (p *pending) add(b batch) {
	p.sum(b.Changes)
	p.count(b.watcher.resource, Counts{b.Created, b.Modified, b.Deleted})
	for _, o := range b.objects {
		p.see(objectOf{b.watcher, o.Namespace, o.Name}, kinds[o.Kind])
	}
}

// join adds later changes.
func (p *pending) join(later pending) {
	p.any = p.any || later.any
	p.sum(later.Changes)
	for o, kind := range later.objects {
		p.see(o, kind)
	}
}

// sum adds all but the objects.
func (p *pending) sum(c Changes) {
	if p.Total() == 0 && c.Total() > 0 || p.To == 0 {
		p.From = c.From
	}
	p.any = true
	p.Created += c.Created
	p.Modified += c.Modified
	p.Deleted += c.Deleted
	p.InitialSync = p.InitialSync || c.InitialSync
	p.To = max(p.To, c.To)
	p.More += c.More
	if c.Snapshot != nil {
		p.Snapshot = c.Snapshot
	}
	for gvr, n := range c.ByResource {
		p.count(gvr, n)
	}
}

func (p *pending) count(gvr schema.GroupVersionResource, n Counts) {
	if p.ByResource == nil {
		p.ByResource = map[schema.GroupVersionResource]Counts{}
	}
	c := p.ByResource[gvr]
	p.ByResource[gvr] = Counts{c.Created + n.Created, c.Modified + n.Modified, c.Deleted + n.Deleted}
}

// see notes the change of one object, or counts it in More.
func (p *pending) see(o objectOf, kind ChangeKind) {
	before, known := p.objects[o]
	switch {
	case !known && len(p.objects) >= p.max:
		p.More++
		return
	case kind == Deleted || !known:
	case before == Created:
		kind = Created
	default:
		kind = Modified
	}
	if p.objects == nil {
		p.objects = map[objectOf]ChangeKind{}
	}
	p.objects[o] = kind
}

// changes returns the changes as the callback gets them.
func (p *pending) changes() Changes {
	c := p.Changes
	c.ByResource = maps.Clone(c.ByResource)
	for o, kind := range p.objects {
		c.Objects = append(c.Objects, Change{o.watcher, o.namespace, o.name, kind})
	}
	slices.SortFunc(c.Objects, func(a, b Change) int {
		if a.Watcher != b.Watcher {
			x, y := a.Watcher, b.Watcher
			if order := cmp.Or(cmp.Compare(x.resource.Resource, y.resource.Resource), cmp.Compare(x.resource.String(), y.resource.String()),
				cmp.Compare(x.namespace, y.namespace)); order != 0 {
				return order
			}
		}
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return c
}
