// Package reconcile is the loop of a controller: whatever changes, every
// HAProxy ends on the newest configuration that renders and validates.
//
//	trigger -> render -> validate -> for each endpoint: schedule -> deploy
//
// A [Loop] is made of a [Renderer] (such as [Templates]), a [Validator] and
// [Target]s (a [dataplane.Local] or a [dataplane.Client]); each is an interface
// of one to three methods. [Loop.Trigger] says that something changed,
// [Loop.Run] does the rest until its context ends, [Loop.Once] and
// [Loop.Preview] do it a single time, and [Loop.State] tells how things are.
//
// What holds:
//
//   - The first trigger acts at once; those that follow within the debounce
//     interval are one. A storm of triggers never postpones a render further.
//     After a render that found nothing to deploy the interval is shorter:
//     twice what that took.
//   - What was validated is what is deployed: one immutable value travels. A
//     render or validation that fails leaves the last good configuration where
//     it is, and drift is repaired with it; it is tried again with back-off.
//   - Endpoints are independent: each has a schedule and back-off of its own,
//     and one pending configuration, the latest.
//   - Two reloads of one endpoint are at least the minimum interval apart. A
//     change that needs no reload does not wait.
//   - Only a process that leads deploys; it asks right before each call that
//     changes something ([dataplane.WithFence]).
//   - Events on the bus (events.go lists them) report what happens; no decision
//     depends on them.
//
// Besides the variables of their [Input], templates get from their host, by
// [HostVars], a registry of files, the deployed configuration and contents
// fetched by HTTP; [PathResolver] says where files lie.
//
// [PodEndpoints], [Clients] and [ParseCredentials] find the HAProxys to deploy
// to. Package observe has metrics, log lines and debug pages for the loop.
package reconcile
