// Package settings describes a whole controller as data: the watched resources, the templates,
// the intervals, the instances, and cases.
//
//	live, err := settings.NewLive(settings.LiveOptions{Source: cluster, Bus: bus,
//		Program: settings.ProgramOptions{Namespace: own}})
//	loop, err := live.NewLoop(reconcile.Options{})
//	go live.Run(ctx)
//	go live.FollowFile(ctx, "settings.yaml") // or FollowConfigMap
//	go live.FollowPods(ctx)                  // finds the instances
//	err = loop.Run(ctx)
//
// [Parse] reads [Settings] from YAML, and [Schema] describes them. A [Program] is compiled
// settings. A [Live] follows a file or a ConfigMap. New settings take effect while everything
// runs: after all checks and in one step, or not at all. docs/settings.md lists all keys.
//
// A preflight applies settings and finds the pods once: [Live.ApplyFile] or
// [Live.ApplyConfigMap], [Live.FindPods], and then Preview of the loop.
//
// # Where things are
//
// follow.go notices changed settings and reads them. apply.go prepares them: check compiles
// them and runs their cases, watch.go starts new watchers, and try renders and validates. Then
// swap puts them to use in one step, passes the intervals to [reconcile.Loop.SetIntervals],
// and triggers the loop. pods.go tells a [discover.Follower] which pods are instances, and how
// to open them.
package settings
