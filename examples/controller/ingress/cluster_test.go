package ingress

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/derive"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/endpoints"
	"github.com/hapticsdk/haptic/reconcile/reconciletest"
	"github.com/hapticsdk/haptic/reconcile/render"
)

// Cluster is a world at one instant, with what else a build depends on.
type Cluster struct {
	world         *world
	Held          map[reconcile.ObjectKey]any // what stands in place of objects; nil: none
	Addresses     *endpoints.Addresses
	Operator      *Operator
	Hosts         *Hosts // remembers between builds, if they are accepted; nil: the Slots do, at once
	Limits        Limits
	ExpiryWarning time.Duration
	AnyTime       bool
}

// Hosts and Slots keep a model between builds.
type Hosts struct {
	Shared []string
	state
}

// Slots keep the model of a cluster without Hosts.
type Slots struct {
	Step int
	state
}

type state struct {
	g        *derive.Graph
	model    *Model
	previous *dataplane.Config
	set      map[any]any // what the inputs have
	parts    map[part]*discoveryv1.EndpointSlice
}

type part struct {
	of   *discoveryv1.EndpointSlice
	name Name
}

// Remember makes the next build that of another process, which knows a configuration.
func (s *state) Remember(previous *dataplane.Config) { *s = state{previous: previous} }

// Remember changes nothing for a configuration without hosts: the instance is new.
func (h *Hosts) Remember(previous *dataplane.Config) {
	if _, ok := previous.File(dataplane.Map, "hosts.map"); ok {
		h.state.Remember(previous)
	}
}

// models has the model of each build, for Accepted.
var models sync.Map

// Build returns the routes of a cluster.
func Build(c *Cluster, slots *Slots) *Routes {
	s, shared := &slots.state, []string(nil)
	if c.Hosts != nil {
		s, shared = &c.Hosts.state, c.Hosts.Shared
	}
	if s.model == nil {
		s.g, s.set, s.parts = derive.New(), map[any]any{}, map[part]*discoveryv1.EndpointSlice{}
		s.model = NewModel(s.g, NewInputs(s.g), Options{Limits: c.Limits, Shared: shared, SpareServers: slots.Step, ExpiryWarning: c.ExpiryWarning, AnyTime: c.AnyTime}, s.previous)
	}
	if s.g.Open() {
		s.g.Rollback()
		s.set = map[any]any{}
	}
	s.fill(c)
	r, err := s.model.Routes(nothing{})
	if err != nil {
		panic(err)
	}
	models.Store(r, s.model)
	if c.Hosts == nil {
		r.Accepted()
	}
	return r
}

// Accepted makes these routes those of the last valid configuration.
func (r *Routes) Accepted() {
	if m, ok := models.LoadAndDelete(r); ok {
		if err := m.(*Model).Accept(r); err != nil {
			panic(err)
		}
	}
}

// input is Input of routes that a valid configuration accepts.
func (r *Routes) input(s Settings) *render.Input {
	in := r.Input(s)
	in.Accepted = r.Accepted
	return in
}

// fill sets the inputs to a cluster.
func (s *state) fill(c *Cluster) {
	in, w := &s.model.Inputs, c.world
	now := map[any]any{}
	fill(s, now, in.Ingresses, c.Held, "Ingress", all(w.ingresses))
	fill(s, now, in.Classes, nil, "IngressClass", all(w.classes))
	fill(s, now, in.Services, c.Held, "Service", named(w.services))
	fill(s, now, in.Secrets, c.Held, "Secret", named(w.secrets))
	list := map[Name]*discoveryv1.EndpointSlice{}
	for of, some := range w.slices {
		ns, service, _ := strings.Cut(of, "/")
		for i, one := range some {
			name := Name{Namespace: ns, Name: fmt.Sprintf("%s-%s-%d", one.Name, service, i)}
			if last := s.parts[part{one, name}]; last == nil || !reflect.DeepEqual(last.Endpoints, one.Endpoints) {
				own := *one
				own.Labels, own.Endpoints = maps.Clone(one.Labels), slices.Clone(one.Endpoints)
				if own.Labels == nil {
					own.Labels = map[string]string{}
				}
				if own.Labels[discoveryv1.LabelServiceName] == "" {
					own.Labels[discoveryv1.LabelServiceName] = service
				}
				if own.Namespace = ns; i > 0 {
					own.Name += fmt.Sprint(i)
				}
				s.parts[part{one, name}] = &own
			}
			list[name] = s.parts[part{one, name}]
		}
	}
	fill(s, now, in.Slices, c.Held, "EndpointSlice", list)
	for key := range s.set {
		if _, ok := now[key]; !ok {
			key.(interface{ remove(*Inputs) }).remove(in)
		}
	}
	s.set = now
	if c.Operator != nil {
		in.Operator.Set(struct{}{}, c.Operator)
	} else {
		in.Operator.Delete(struct{}{})
	}
	in.Addresses.Set(struct{}{}, c.Addresses)
}

type inputKey struct {
	kind string
	name Name
}

func (k inputKey) remove(in *Inputs) {
	switch k.kind {
	case "Ingress":
		in.Ingresses.Delete(k.name)
	case "IngressClass":
		in.Classes.Delete(k.name)
	case "Service":
		in.Services.Delete(k.name)
	case "Secret":
		in.Secrets.Delete(k.name)
	case "EndpointSlice":
		in.Slices.Delete(k.name)
	}
	in.Out.Delete(Out{Input: k.kind, Of: k.name})
}

func fill[T k8swatch.Object](s *state, now map[any]any, in *derive.Input[Name, T], held map[reconcile.ObjectKey]any, kind string, all map[Name]T) {
	for name, o := range all {
		now[inputKey{kind, name}] = o
		r, _ := reconcile.ResourceOf(o)
		other, isHeld := held[r.Key()]
		if stands, ok := other.(T); ok {
			in.Set(name, stands)
			s.model.Inputs.Out.Delete(Out{Input: kind, Of: name})
		} else if !isHeld {
			in.Set(name, o)
			s.model.Inputs.Out.Delete(Out{Input: kind, Of: name})
		} else {
			in.Delete(name)
			s.model.Inputs.Out.Set(Out{Input: kind, Of: name}, o)
		}
	}
	for name := range in.All() {
		if _, ok := all[name]; !ok {
			in.Delete(name)
		}
	}
}

func all[T metav1.Object](list []T) map[Name]T {
	m := map[Name]T{}
	for _, o := range list {
		m[nameOf(o)] = o
	}
	return m
}

func named[T metav1.Object](of map[string]T) map[Name]T {
	m := map[Name]T{}
	for key, o := range of {
		ns, name, _ := strings.Cut(key, "/")
		m[Name{Namespace: ns, Name: name}] = o
	}
	return m
}

// values are what pointers lead to.
func values[T any](list []*T) (all []T) {
	for _, one := range list {
		all = append(all, *one)
	}
	return all
}

// viewOf is a view of a world.
func viewOf(w *world) *reconciletest.View {
	return reconciletest.NewView(func() (list []any) {
		for _, o := range w.ingresses {
			list = append(list, o)
		}
		for _, o := range w.services {
			list = append(list, o)
		}
		for _, o := range w.secrets {
			list = append(list, o)
		}
		return list
	})
}

// without holds objects back that have no earlier version.
func without[T any](objs ...T) map[reconcile.ObjectKey]any {
	held := map[reconcile.ObjectKey]any{}
	for _, o := range objs {
		r, _ := reconcile.ResourceOf(o)
		held[r.Key()] = nil
	}
	return held
}

// nothing is a context that never ends.
type nothing struct{}

func (nothing) Deadline() (time.Time, bool) { return time.Time{}, false }
func (nothing) Done() <-chan struct{}       { return nil }
func (nothing) Err() error                  { return nil }
func (nothing) Value(any) any               { return nil }

var _ = []any{corev1.Service{}, networkingv1.Ingress{}}
