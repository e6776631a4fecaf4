// Package haptic is an SDK to build HAProxy ingress controllers with: it turns
// Kubernetes resources into HAProxy configuration, and brings that to every
// HAProxy with as few reloads as possible.
//
// This package holds nothing but the way in. In reading order:
//
//   - [github.com/hapticsdk/haptic/k8swatch] keeps Kubernetes resources in
//     indexed stores and takes consistent snapshots of them;
//   - [github.com/hapticsdk/haptic/templating] renders templates that are
//     type-checked once and cannot inject;
//   - [github.com/hapticsdk/haptic/validate] says what is wrong with a
//     configuration before it is deployed;
//   - [github.com/hapticsdk/haptic/dataplane] finds the difference between two
//     configurations and applies it, to a HAProxy on this host or to a remote
//     Dataplane API;
//   - [github.com/hapticsdk/haptic/eventbus] tells everybody what happened;
//   - [github.com/hapticsdk/haptic/reconcile] is the loop that ties them
//     together; below it, [github.com/hapticsdk/haptic/reconcile/render] renders
//     for it, [github.com/hapticsdk/haptic/reconcile/discover] finds the instances,
//     [github.com/hapticsdk/haptic/reconcile/observe] watches it, and
//     [github.com/hapticsdk/haptic/reconcile/settings] is a whole controller as
//     data.
//
// Each is useful alone. examples/minimal puts them together in 150 lines: copy that.
// examples/controller is the reference, to be deployed; docs/operations.md says how.
package haptic
