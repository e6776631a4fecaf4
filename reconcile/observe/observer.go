package observe

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
	"github.com/hapticsdk/haptic/reconcile/fetch"
	"github.com/hapticsdk/haptic/reconcile/settings"
)

// Subject has the sources of everything shown besides the events of a bus. Each scrape and
// each request reads them. Every field may be zero; then nothing of it is shown. The functions
// are called from several goroutines.
type Subject struct {
	// Loop is a [reconcile.Loop].
	Loop interface {
		State() reconcile.State
		Validated() *dataplane.Config
	}

	// Watched returns the states of watches: [k8swatch.Group.States] of each group.
	Watched []func() map[schema.GroupVersionResource]k8swatch.State

	// Settings is [settings.Live.State].
	Settings func() settings.State

	// HTTP is [fetch.Store.Resources].
	HTTP func() []fetch.Resource

	// Config returns the options of the program, such as its flags. Its value goes through
	// JSON and must be free of secrets.
	Config func() any

	// Discovery is a [discover.Follower]. If nil, the instances come from elsewhere.
	Discovery interface {
		Credentials() discover.CredentialsInfo
		Check() error // why there are no instances
		Watches() map[string]k8swatch.State
	}

	Version string  // of the program; zero: the version of its module
	Health  *Health // if nil, [New] sets it
}

// watches returns all watches by the name of their resource.
func (s *Subject) watches() map[string]k8swatch.State {
	all := map[string]k8swatch.State{}
	for _, states := range s.Watched {
		for gvr, state := range states() {
			name := gvr.GroupResource().String()
			if before, ok := all[name]; !ok || !state.Synced || before.Phase == k8swatch.PhaseSynced {
				all[name] = state // of two groups, the one in the worse state
			}
		}
	}
	if s.Settings != nil {
		maps.Copy(all, s.Settings().Watched)
	}
	if s.Discovery != nil {
		maps.Copy(all, s.Discovery.Watches())
	}
	return all
}

// watching reports whether there are watches.
func (s *Subject) watching() bool {
	return len(s.Watched) > 0 || s.Settings != nil || s.Discovery != nil
}

// state returns the state of the loop, or a zero one.
func (s *Subject) state() (state reconcile.State) {
	if s.Loop != nil {
		state = s.Loop.State()
	}
	return state
}

// Observer has everything of this package that watches one loop.
type Observer struct {
	Metrics *prometheus.Registry // the program can add collectors
	Health  *Health

	history *history
	subject *Subject
	bus     *eventbus.Bus
	started time.Time
}

// New subscribes everything of this package except [Trace] to bus: metrics, a log of sentences
// in log (nil: [slog.Default]), a history, and checks that name a stalled component. The
// program calls Trace itself, because Trace needs a provider. Call New before
// [eventbus.Bus.Start]. New returns an error if bus is nil, or if a field of s is set to a nil
// value.
func New(bus *eventbus.Bus, s Subject, log *slog.Logger) (*Observer, error) {
	if bus == nil {
		return nil, errors.New("observe: New needs the bus of the loop, and it is nil: make one with eventbus.New, for reconcile.Options.Bus too")
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.Health == nil {
		s.Health = &Health{}
	}
	o := &Observer{Metrics: NewMetrics(bus, s), Health: s.Health, history: newHistory(bus), subject: &s, bus: bus, started: time.Now()}
	Comment(bus, log)
	addChecks(bus, &s)
	return o, nil
}

// check refuses fields that New would call and that are nil. A nil pointer in an interface is
// not a nil interface.
func (s *Subject) check() error {
	for field, value := range map[string]any{"Loop": s.Loop, "Discovery": s.Discovery} {
		if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer && v.IsNil() {
			return fmt.Errorf("observe: Subject.%s is a nil %T: set it, or leave the field out", field, value)
		}
	}
	for i, states := range s.Watched {
		if states == nil {
			return fmt.Errorf("observe: Subject.Watched[%d] is nil", i)
		}
	}
	return nil
}

// Version returns the version of the program: [Subject.Version], or the version of its module.
func (o *Observer) Version() string { return o.subject.version() }

// MetricsServer returns a server for Prometheus and the kubelet: /metrics, /healthz and
// /readyz at any address, without a token, and nothing else. Set Addr and Run it.
func (o *Observer) MetricsServer() *Server {
	return &Server{MetricsOnly: true, Metrics: o.Metrics, Health: o.Health}
}

// Server returns a debug server that shows everything. It has a page for people at its root,
// and answers probes from [Observer.Health]. It has these variables, if the subject has their
// source:
//
//	config       options of the program: [Subject.Config]
//	credentials  only metadata: [discover.Follower.Credentials]
//	settings     those in use, and why newer ones were refused
//	rendered     the text of the newest validated configuration, secrets hidden
//	auxfiles     its files: name, size, hash; the content only of maps
//	resources    each watch: state, objects, error
//	http         each fetched URL
//	plan         the last plan of each instance
//	state        [reconcile.State]
//	quarantine   quarantined resources
//	refused      refused resources
//	events       the newest, in words
//	errors       the newest failures
//	health       the result of each check
//	bus          each subscriber
//	uptime, build
//
// Set Addr, Token and Logger, Register more, and Run it. Only metrics and probes need neither
// a Token nor a unix socket: see [Server].
func (o *Observer) Server() *Server {
	s, sub := &Server{Metrics: o.Metrics, Health: o.Health}, o.subject
	s.page = func(w http.ResponseWriter, r *http.Request) { o.page(w, r, s.names()) }
	for _, v := range []struct {
		name  string
		known bool
		value func() any
	}{
		{"config", sub.Config != nil, sub.Config},
		{"credentials", sub.Discovery != nil, func() any { return sub.Discovery.Credentials() }},
		{"settings", sub.Settings != nil, func() any { return sub.settings() }},
		{"rendered", sub.Loop != nil, func() any { return rendered(sub.Loop.Validated()) }},
		{"auxfiles", sub.Loop != nil, func() any { return auxFiles(sub.Loop.Validated()) }},
		{"state", sub.Loop != nil, func() any { return sub.state() }},
		{"quarantine", sub.Loop != nil, func() any { return sub.state().Quarantined }},
		{"refused", sub.Loop != nil, func() any { return sub.state().Refused }},
		{"resources", sub.watching(), func() any { return sub.watchInfos() }},
		{"http", sub.HTTP != nil, func() any { return sub.HTTP() }},
		{"plan", true, func() any { return shortPlans(o.history.lastPlans()) }},
		{"events", true, func() any { return o.history.ring.All() }},
		{"errors", true, func() any { return o.history.failures.All() }},
		{"health", true, func() any { return o.Health.findings() }},
		{"bus", true, func() any { return o.bus.Stats() }},
		{"uptime", true, func() any { return uptimeSince(o.started) }},
		{"build", true, func() any { return sub.buildInfo() }},
	} {
		if v.known {
			s.Register(v.name, v.value)
		}
	}
	return s
}
