package kit

import (
	"context"
	"log/slog"
	"os"
	"strings"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/reconcile"
	"github.com/hapticsdk/haptic/reconcile/discover"
)

// LeaderFlags say whether replicas elect a leader, and by which Lease.
type LeaderFlags struct {
	Elect bool
	Lease string // namespace/name; Check sets a default

	name string // of the Lease
}

// Declare declares -leader-elect and -lease, whose default has this name.
func (l *LeaderFlags) Declare(f *Flags, name string) {
	l.name = name
	f.BoolVar(&l.Elect, "leader-elect", false, "deploy only while holding a Lease")
	f.StringVar(&l.Lease, "lease", "", "`namespace/name` of that Lease, and the name of this fleet of instances where requests pass several (default "+name+
		" in the namespace of this process, or default/"+name+" where that is not known)")
}

// Check checks the values. folder says that the resources come from a folder.
func (l *LeaderFlags) Check(f *Flags, folder bool) {
	f.Check("lease", IsObject(l.Lease), "namespace/name")
	f.Refuse(l.Elect && folder, "-leader-elect needs a cluster, not -manifests")
	if l.Lease == "" {
		namespace, err := discover.OwnNamespace(os.Getenv)
		if err != nil { // not in a pod
			namespace = "default"
		}
		l.Lease = namespace + "/" + l.name
	}
}

// Election returns the election by the Lease, or nil without -leader-elect.
func (l *LeaderFlags) Election(source *Source, bus *eventbus.Bus, log *slog.Logger) (*Election, error) {
	if !l.Elect {
		return nil, nil
	}
	namespace, name, _ := strings.Cut(l.Lease, "/")
	return NewElection(bus, k8swatch.ElectionOptions{Client: source.Cluster.Clientset().CoordinationV1(), Namespace: namespace, Name: name, Logger: log})
}

// Election is a [k8swatch.Election] that publishes [reconcile.LeaderObserved],
// [reconcile.LeaderBecame] and [reconcile.LeaderLost].
type Election struct {
	*k8swatch.Election
	bus *eventbus.Bus
}

// NewElection is [k8swatch.NewElection]. It sets OnLeader, to publish on bus.
func NewElection(bus *eventbus.Bus, opts k8swatch.ElectionOptions) (*Election, error) {
	opts.OnLeader = func(id string) { eventbus.Publish(bus, reconcile.LeaderObserved{Identity: id}) }
	e, err := k8swatch.NewElection(&opts)
	return &Election{e, bus}, err
}

// Set sets the leader of a loop. A nil Election changes nothing: the process always leads.
func (e *Election) Set(opts *reconcile.Options) {
	if e != nil {
		opts.Leader = e
	}
}

// Watch adds the part that takes part in the election for a loop. A nil Election adds none.
func (e *Election) Watch(g *Group, loop *reconcile.Loop) {
	if e != nil {
		g.Go("election", func(ctx context.Context) error { return e.Run(ctx, loop.LeadershipChanged) })
	}
}

// Run takes part until ctx ends. It calls changed at the start of each term, and when the term
// has ended.
func (e *Election) Run(ctx context.Context, changed func()) error {
	return e.Election.Run(ctx, func(ctx context.Context) {
		eventbus.Publish(e.bus, reconcile.LeaderBecame{Identity: e.Identity()})
		changed()
		<-ctx.Done()
		changed()
		eventbus.Publish(e.bus, reconcile.LeaderLost{Identity: e.Identity()})
	})
}
