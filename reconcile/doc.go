// Package reconcile is the loop of a controller: whatever changes, every
// instance ends on the newest configuration that renders and validates.
//
//	trigger -> render -> validate -> for each instance: schedule -> deploy
//
// A [Loop] is made of a [Renderer], a [Validator] and [Target]s; each is an
// interface of one to three methods. Package render renders templates, package
// validate validates, a [dataplane.Local] or [dataplane.Client] is a target:
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
// [Loop.Once] and [Loop.Preview] do it a single time, and [Loop.State] tells how
// things are.
//
// # What holds
//
//   - The first trigger acts at once; those that follow within the hold are one. The
//     hold is 20 ms, or twice the time of the reconciliation before it. Under a storm it
//     grows until there are 7 renders a second that take 5 % of a core, or to the debounce
//     interval. It has that length after a failure. A storm of triggers never postpones a
//     render further.
//     After a reconciliation that found nothing to deploy, the 20 ms do not count.
//   - What was validated is what is deployed: one immutable value travels. A
//     render or validation that fails leaves the last good configuration where
//     it is, and drift is repaired with it; it is tried again with back-off.
//   - Instances are independent: each has a schedule and back-off of its own,
//     and one pending configuration, the latest.
//   - Two reloads of one instance are at least the minimum interval apart. A
//     change that needs no reload does not wait.
//   - Only a process that leads deploys; it asks right before each call that
//     changes something ([Leader], [dataplane.WithFence]). With Options.BeginTerm it
//     deploys what it rendered after that, and nothing that it knew before.
//   - Events on the bus report what happens; no decision depends on them.
//
// # Quarantine
//
// Where the configuration does not render, or is not valid, because of a
// resource, that resource alone is quarantined: its version of the last valid
// configuration is served in its place. The line that is wrong says which
// one it is; where no line is known, leaving out halves of what changed finds it.
// A line that is wrong for every resource is the fault of the templates: then the
// last good configuration stays.
//
// A resource is left out where it has no such version: it is new, it did not change
// itself, it was bad already when this process started, or a process that led before saw
// the good version. The loop also leaves a resource out if its earlier version fails now,
// for example because a Secret that it needs was deleted; the others in quarantine keep
// theirs. One that is deleted, or deleted and created again, is gone. If an instance
// refuses a resource, the loop serves the version that this instance accepted last.
//
// The verdict sticks to the object, by kind, namespace and name. When the object
// changes it is tried again, beside the deployment of the others, never before it:
// at once the first time, then after 1 s, doubling to TrialMax (1 h) with each
// relapse. One that does not change is tried after TrialBase (1 min), doubling to TrialMax,
// since what it depends on may have changed. A deleted one is released by the next
// reconciliation that ends valid.
//
// Many bad objects of one namespace, or one with which a template or haproxy hangs, hold
// up the changes of no other. What an instance refuses, and the validator takes, is
// quarantined for all instances. docs/quarantine.md says how, and which object answers
// for a line.
//
// This takes a Renderer that knows its [Origins], as render.Templates does, and that reads
// objects with k8swatch.Read and the context of the render, or asks [ToRender] about each.
// One that asks [Excluded.Has] instead leaves all out that is in quarantine. Where it has
// a resource that it was to leave out, the error says that it did not ask, and names that.
// [State] names what is in quarantine with its [Fault]: the line of the
// configuration, that of the template, and the resource. [Options.NoQuarantine]
// turns it off. A search for what is at fault renders and validates anew for each
// attempt, in at most QuarantineTries rounds; without it the cost of a
// reconciliation follows the change, as far as the renderer and the validator do.
//
// # What stands below
//
//   - render: [Renderer]s made of templates, and what templates get from their host
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
//   - Who is at fault? search.go looks for it. What an instance refuses is in verdict.go.
//   - When is a resource quarantined, and when is it released? quarantine.go. trial.go tries it.
//   - What does an instance do next? schedule.go (next); instance.go does it.
//
// # What it does not do
//
// There is one loop for one configuration: all targets get the same. Nothing is
// kept on disk: after a start everything is rendered anew, quarantine is empty, and no
// earlier version is known.
// A Renderer, Validator or Target that panics has failed ([PanicError]); one that
// ignores its context holds up what waits for it.
package reconcile
