// Package haptic is an SDK to build HAProxy ingress controllers. It turns
// Kubernetes resources into HAProxy configuration, and deploys that to every
// HAProxy with as few reloads as possible.
//
// This package has no code. Read the packages in this order:
//
//   - [github.com/hapticsdk/haptic/k8swatch] keeps Kubernetes resources in
//     indexed stores and takes consistent snapshots of them;
//   - [github.com/hapticsdk/haptic/k8swatch/derive] computes a model from these resources, and
//     again only what a change affects;
//   - [github.com/hapticsdk/haptic/templating] renders templates that are
//     type-checked once and cannot inject configuration;
//   - [github.com/hapticsdk/haptic/validate] says what is wrong with a
//     configuration before it is deployed;
//   - [github.com/hapticsdk/haptic/dataplane] finds the difference between two
//     configurations and applies it, to a HAProxy on this host or to a remote
//     Dataplane API;
//   - [github.com/hapticsdk/haptic/eventbus] carries events to all that subscribe;
//   - [github.com/hapticsdk/haptic/reconcile] is the loop that ties them
//     together. Below it, [github.com/hapticsdk/haptic/reconcile/render] renders
//     for it, [github.com/hapticsdk/haptic/reconcile/discover] finds the instances,
//     [github.com/hapticsdk/haptic/reconcile/observe] watches the loop, and
//     [github.com/hapticsdk/haptic/reconcile/settings] is a whole controller as
//     data.
//
// Controllers share [github.com/hapticsdk/haptic/reconcile/endpoints],
// [github.com/hapticsdk/haptic/reconcile/claims],
// [github.com/hapticsdk/haptic/reconcile/certs],
// [github.com/hapticsdk/haptic/reconcile/limits],
// [github.com/hapticsdk/haptic/reconcile/status] and, for their main function,
// [github.com/hapticsdk/haptic/reconcile/kit].
//
// This is the way of a changed EndpointSlice to a command of HAProxy, in a controller with rules
// on derive. Each station is one file:
//
//	watch event
//	  -> k8swatch/intake.go                       trims the object and puts it into the store
//	  -> reconcile/loop.go                        is triggered; attempt.go renders, and validates
//	  -> k8swatch/feed.go                         sets the changed objects as inputs
//	  -> k8swatch/derive/graph.go                 computes the items again that read them
//	  -> reconcile/endpoints/backends.go          makes the servers: who serves keeps its server
//	  -> reconcile/render/texts.go                renders the texts again that the change touches
//	  -> dataplane/internal/diff/servers.go       finds the operation that changes the server
//	  -> dataplane/internal/socket/apply.go       sends it to HAProxy as a command
//
// Each package is useful alone. examples/minimal puts them together in 150 lines: copy it.
// examples/controller is the reference controller; docs/operations.md says how to deploy it.
package haptic
