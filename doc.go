// Package haptic is an SDK to build HAProxy ingress controllers. It turns
// Kubernetes resources into HAProxy configuration, and deploys that to every
// HAProxy with as few reloads as possible.
//
// This package has no code. Read the packages in this order:
//
//   - [github.com/hapticsdk/haptic/k8swatch] keeps Kubernetes resources in
//     indexed stores and takes consistent snapshots of them;
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
// Each package is useful alone. examples/minimal puts them together in 150 lines: copy it.
// examples/controller is the reference controller; docs/operations.md says how to deploy it.
package haptic
