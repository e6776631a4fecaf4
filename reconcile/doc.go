// Package reconcile is the loop of a controller: whatever changes, it brings every instance
// to the newest configuration that renders and validates.
//
//	trigger -> render -> validate -> for each instance: schedule -> deploy
//
// A [Loop] is made of a [Renderer], a [Validator] and [Target]s. Each is an interface of one
// to three methods. Package render renders templates, package validate validates, and a
// [dataplane.Local] or [dataplane.Client] is a target:
//
//	templates := &render.Templates{Engine: engine, Layout: local.Layout(), Input: input}
//	loop, err := reconcile.New(reconcile.Options{
//		Renderer:  templates,
//		View:      view, // a k8swatch.View, which the input reads
//		Validator: &validate.Validator{Layout: local.Layout()},
//		Targets:   []reconcile.Target{local},
//		Bus:       bus, // events.go lists what it gets, and in which order
//	})
//	go loop.Run(ctx)
//	loop.Trigger("an Ingress changed") // never blocks
//
// [Loop.Once] and [Loop.Preview] do all this a single time. [Loop.State] says how things
// are.
//
// # Guarantees
//
//   - The first trigger acts at once. The loop joins those that follow within the hold.
//     That is 20 ms, or twice the time of the reconciliation before. Under a storm the hold
//     grows until renders take at most 5 % of a core, and are at most 7 a second. It never
//     exceeds the debounce interval. After a failure it has that length. Further triggers do
//     not postpone a render. After a reconciliation that found nothing to deploy, the 20 ms
//     do not count.
//   - The loop deploys what it validated: one immutable value travels. If a render or
//     validation fails, the last good configuration stays, and the loop repairs drift with
//     it. The loop tries again with back-off.
//   - Instances are independent. Each has its own schedule and back-off, and one pending
//     configuration, the latest.
//   - Two reloads of one instance are at least the minimum interval apart. A change that
//     needs no reload does not wait.
//   - Only a process that leads deploys. The loop asks right before each call that changes
//     something ([Leader], [dataplane.WithFence]). With Options.BeginTerm it deploys only
//     what it rendered after that.
//   - Events on the bus report what happens. No decision depends on them.
//
// # Quarantine
//
// If a resource makes the configuration fail to render or to validate, the loop sets that
// resource alone back to its version of the last valid configuration. It does so in
// [Options.View], which is all that renders read: they need not know of quarantine. A resource
// without such a version is left out: one that is new, that did not change itself, or whose
// earlier version fails now.
//
// The wrong line names the resource: each round of a search sets back one of each fault. After
// three rounds (QuarantineTries without a valid configuration) the loop sets back all changes
// of the namespaces that were named. If that is not enough, or no resource is named, it sets
// back all changes, and tries beside the deployment find those at fault. A resource that is set
// back without a fault of its own is held back. A line that is wrong for every resource is the
// fault of the templates, if these never made a valid configuration. Then the last good
// configuration stays.
//
// The loop tries held-back and changed objects again, beside the deployment of the others. It
// tries them before it only at a start, for up to 10 s, and as the last resort: if nothing else
// is valid, one attempt holds nothing back. The first try is at once. After a relapse it is 1 s
// after the failure, doubling with each further one, but never later than that of an unchanged
// object. The same holds if something changes that the object was rendered with. Otherwise it
// is tried after QuarantineBase (1 min), doubling to QuarantineMax (1 h). A deleted object
// leaves quarantine. If it comes back and fails within QuarantineMax, that is a relapse. If an
// instance refuses what the validator accepts, the resource is quarantined for all instances.
// docs/quarantine.md has all rules, and which object answers for a line.
//
// Quarantine needs a View. [Origins], as render.Templates returns them, lead from a line to its
// resource: without them a search works by halves. [State] names each quarantined
// resource with its [Fault]: the line of the configuration, the template line, and the resource.
// It names held-back ones, too. The metric haptic_quarantined_resources counts both.
//
// Without a search the cost of a reconciliation follows the change, as far as the renderer and
// the validator allow.
//
// # Packages below
//
//   - render: [Renderer]s made of templates, and the variables that their host gives them
//   - fetch: the contents that templates fetch by HTTP
//   - discover: the Dataplane APIs of pods as targets, for [Loop.SetTargets]
//   - settings: a whole controller as data
//   - cases: tests that stand with the templates
//   - endpoints: EndpointSlices as servers of backends, which they keep
//   - claims: who owns a host or another key
//   - certs: Secrets as checked certificates
//   - limits: bounds for each namespace and for all, and the refusals that follow
//   - status: the status of resources, written once an instance has their revision
//   - kit: the flags, the sources and the process of a main function
//   - event: what an event reports to logs and metrics
//   - observe: metrics, log lines, traces and debug pages
//   - reconciletest: a fake HAProxy, and cases as tests
//
// # Where things are
//
//   - In which order do events come? events.go draws it.
//   - Which resource is at fault? internal/quarantine/search.go looks for it, in rounds.go;
//     attempt.go renders and validates; refused.go reads what instances refuse.
//   - When does a resource enter and leave quarantine? internal/quarantine/quarantine.go has
//     the states, trial.go beside it the tries, which trials.go makes.
//   - When does the next reconciliation begin? pace.go.
//   - Where does leadership begin and end? leadership.go.
//   - Where does a panic of the program's own functions go? callback.go publishes it.
//   - When does an instance get something? schedule.go (next) decides; instance.go does it.
//
// # Limits
//
// There is one loop for one configuration: all targets get the same. Nothing is kept on
// disk. After a start the loop renders everything anew, quarantine is empty, and no earlier
// version is known. If a Renderer, Validator or Target panics, its call has failed
// ([PanicError]); a panic of another function is a [CallbackFailed]. If one ignores its
// context, it holds up everything that waits for it.
package reconcile
