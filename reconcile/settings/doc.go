// Package settings has a whole controller as data: what is watched, the templates,
// the intervals, how the instances are found, and cases.
//
// [Parse] reads [Settings] from YAML, and [Schema] describes them. A [Program] is
// settings compiled. A [Live] follows a file or a ConfigMap: new settings take
// effect while everything runs, after all checks and in one step, or not at all.
//
// # Where things are
//
// follow.go notices a change of settings and reads it. apply.go prepares it: check
// compiles it and runs its cases, watch.go starts the watchers that it needs, try
// renders and validates. Then swap puts it to use in one step, gives the intervals to
// [reconcile.Loop.SetIntervals], and triggers the loop. pods.go tells a
// [discover.Follower] which pods are instances, and what opens them.
//
// A preflight applies settings and finds the pods once: [Live.ApplyFile] or
// [Live.ApplyConfigMap], [Live.FindPods], and then Preview of the loop.
package settings
