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
// If a resource makes the configuration fail to render or to validate, the loop quarantines
// that resource alone. It serves the version of the last valid configuration instead. The
// wrong line names the resource. If no line is known, the loop finds it by leaving out
// halves of the changes. A line that is wrong for every resource is the fault of the
// templates: then the last good configuration stays.
//
// The loop leaves a resource out if it has no good version of it:
//
//   - The resource is new, or it did not change but something that it depends on did.
//   - It was bad already when this process started, or only an earlier leader saw a good
//     version.
//   - Its earlier version fails now, too, for example because its Secret was deleted.
//
// Other quarantined resources keep their versions. A resource that was deleted, or deleted
// and created again, is gone. If an instance refuses a resource, the loop serves the version
// that this instance accepted last.
//
// The verdict sticks to the object, by kind, namespace and name. The loop tries a changed
// object again, beside the deployment of the others, never before it. The first try is at
// once, the next after 1 s, doubling to QuarantineMax (1 h) with each relapse. An object that
// does not change is tried after QuarantineBase (1 min), doubling to QuarantineMax, because something
// that it depends on may have changed. The next valid reconciliation releases a deleted
// object.
//
// Many bad objects of one namespace do not hold up the changes of others. Neither does an
// object that makes a template or haproxy hang. If an instance refuses what the validator
// accepts, the resource is quarantined for all instances. docs/quarantine.md says how, and
// which object answers for a line.
//
// Quarantine needs a Renderer that returns its [Origins], as render.Templates does. The
// Renderer must read objects with k8swatch.Read and the context of the render, or ask
// [ToRender] about each. If it asks [Excluded.Has] instead, it leaves all quarantined
// objects out. If it renders an object without asking, the error names that object. [State]
// names each quarantined resource with its [Fault]: the line of the configuration, the
// template line, and the resource. [Options.NoQuarantine] turns quarantine off.
//
// A search for a resource at fault renders and validates in each attempt, in at most
// QuarantineTries rounds. Without a search the cost of a reconciliation follows the change,
// as far as the renderer and the validator allow.
//
// # Packages below
//
//   - render: [Renderer]s made of templates, and the variables that their host gives them
//   - fetch: the contents that templates fetch by HTTP
//   - discover: the Dataplane APIs of pods as targets, for [Loop.SetTargets]
//   - settings: a whole controller as data
//   - cases: tests that stand with the templates
//   - observe: metrics, log lines, traces and debug pages
//   - reconciletest: a fake HAProxy, and cases as tests
//
// # Where things are
//
//   - In which order do events come? events.go draws it.
//   - Which resource is at fault? search.go looks for it; verdict.go judges refusals by
//     instances.
//   - When does a resource enter and leave quarantine? quarantine.go; trial.go tries it
//     again.
//   - Where does a panic of the program's own functions go? callback.go publishes it.
//   - When does an instance get something? schedule.go (next) decides; instance.go does it.
//
// # Limits
//
// There is one loop for one configuration: all targets get the same. Nothing is kept on
// disk. After a start the loop renders everything anew, quarantine is empty, and no earlier
// version is known. If a Renderer, Validator or Target panics, its call has failed
// ([PanicError]); a panic of another function is a [CallbackFailed]. If one ignores its context, it holds up everything that waits for it.
package reconcile
