package observe

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hapticsdk/haptic/eventbus"
)

// Observer is everything of this package that watches one loop.
type Observer struct {
	Metrics *prometheus.Registry // more collectors can be added
	Health  *Health

	history *history
	subject *Subject
	bus     *eventbus.Bus
	started time.Time
}

// New subscribes everything of this package to bus: metrics, a commentator that
// writes to log (nil: [slog.Default]), a history, and a watchdog that names what
// has stalled. Only [Trace] is for the program to call, as it takes a provider.
// Call it before [eventbus.Bus.Start].
func New(bus *eventbus.Bus, s Subject, log *slog.Logger) *Observer {
	if s.Health == nil {
		s.Health = &Health{}
	}
	o := &Observer{Metrics: NewMetrics(bus, s), Health: s.Health, history: newHistory(bus), subject: &s, bus: bus, started: time.Now()}
	Comment(bus, log)
	newWatchdog(bus, &s)
	return o
}

// Server returns a debug server that shows all that is known, with a page for
// people at its root, and answers probes from [Observer.Health]. Its variables,
// where the subject tells of them:
//
//	config       what the program was told: [Subject.Config]
//	credentials  metadata alone: [Subject.Credentials]
//	settings     those in use, and why newer ones were refused
//	rendered     the text of the newest validated configuration, secrets masked
//	auxfiles     its files: name, size, hash; content of maps alone
//	resources    each watch: state, objects, error
//	http         each fetched URL
//	plan         the last plan of each instance
//	state        [reconcile.State]
//	quarantine   what is left out as a whole, and refused: what is left out in part
//	events       the newest, in words
//	errors       the newest failures
//	health       what each check has found
//	bus          each subscriber
//	uptime, build
//
// Set Addr, Token and Logger, Register more, and Run it.
func (o *Observer) Server() *Server {
	s := &Server{Metrics: o.Metrics, Health: o.Health}
	s.page = func(w http.ResponseWriter, r *http.Request) { o.page(w, r, s.names()) }
	sub := o.subject
	if sub.Config != nil {
		s.Register("config", sub.Config)
	}
	if sub.Credentials != nil {
		s.Register("credentials", func() any { return sub.Credentials() })
	}
	if sub.Settings != nil {
		s.Register("settings", func() any { return infoOf(sub.Settings()) })
	}
	if l := sub.Loop; l != nil {
		s.Register("rendered", func() any { return rendered(l.Validated()) })
		s.Register("auxfiles", func() any { return auxFiles(l.Validated()) })
		s.Register("state", func() any { return l.State() })
		s.Register("quarantine", func() any { return l.State().Quarantined })
		s.Register("refused", func() any { return l.State().Refused })
	}
	if len(sub.Watched) > 0 || sub.Settings != nil {
		s.Register("resources", func() any { return sub.watchInfos() })
	}
	if sub.HTTP != nil {
		s.Register("http", func() any { return sub.HTTP() })
	}
	s.Register("plan", func() any { return shortPlans(o.history.lastPlans()) })
	s.Register("events", func() any { return o.history.ring.All() })
	s.Register("errors", func() any { return o.history.failures.All() })
	s.Register("health", func() any { return findingInfos(o.Health.All()) })
	s.Register("bus", func() any { return o.bus.Stats() })
	s.Register("uptime", func() any { return uptimeSince(o.started) })
	s.Register("build", func() any { return sub.buildInfo() })
	return s
}
