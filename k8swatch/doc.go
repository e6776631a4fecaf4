// Package k8swatch watches Kubernetes resources and reads them as consistent snapshots.
//
// A [Watcher] keeps the objects of one resource in an ordered store, indexed by
// JSONPath expressions and without the fields that no reader needs. It tells which
// objects changed, and gives a [Snapshot] at any time: immutable, with a revision,
// free to take. [Read] returns its objects with their Go type:
//
//	cluster, err := k8swatch.NewCluster(nil)
//	slices, err := k8swatch.New(cluster, discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), &k8swatch.Options{
//		IndexBy:  []string{"metadata.namespace", "metadata.labels['kubernetes.io/service-name']"},
//		OnChange: func(ctx context.Context, c k8swatch.Changes) error { trigger(); return nil },
//	})
//	go slices.Run(ctx)
//	n, err := slices.WaitForSync(ctx)
//	endpoints := k8swatch.Read[*discoveryv1.EndpointSlice](slices.Snapshot())
//	for _, s := range endpoints.Get("shop", "web") { ... }
//
// Several watchers form a [Group]; [Add] makes a typed one in it. They run together with one
// OnChange, and one [GroupSnapshot] shows all of them at the same instant. A kubectl apply or
// a manifest that writes several resources may still come in several changes. [SnapshotOf]
// reads watchers outside of a group at one instant.
//
// A [Single] follows one named object, such as a Secret of settings, and reports each
// change at once. A watcher with Options.OnlyNamed watches metadata, and holds only the objects that
// others name, such as the Secrets of Ingresses; Options.BytesPerNamespace bounds what any
// other holds. A [Cached] is for resources that are too big for memory: it watches metadata
// and fetches objects on demand.
//
// # What renders read
//
// A [View] has the objects of a group at one instant, which the loop chooses: the View is also
// reconcile.Options.View. A [Feed] gives these objects to the inputs of a [derive.Graph], and
// from the second time on only those that changed. Nothing else may set these inputs, or roll
// the graph back.
//
//	view := k8swatch.NewView(group.Snapshot)
//	feed := k8swatch.NewFeed(graph, view)
//	services := k8swatch.Input[*corev1.Service](feed, "Service", watcher)
//	onChange := func(_ context.Context, c k8swatch.Changes) error { // of the group
//		view.Changed(c)
//		loop.Trigger(c.String())
//		return nil
//	}
//	...
//	feed.Fill() // at each render: then compute, and make the configuration
//	err := graph.Run(ctx)
//	...
//	err = graph.Commit() // once the loop accepted that configuration
//
// # Sources
//
// A [Cluster] is a real API server. It sends the kinds of client-go's scheme as
// protobuf, and they are typed. A [Folder] is a directory of manifests behind the same
// interface; it follows the changes of its files. Package k8swatchtest has a source in
// memory, with faults on demand.
//
// # Custom resources
//
// Register their Go types in a scheme of your own, and give it to the source:
//
//	types := runtime.NewScheme()
//	types.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Route"}, &Route{})
//	folder, err := k8swatch.NewFolder(dir, &k8swatch.FolderOptions{Scheme: types}) // or ClusterOptions.Scheme
//	routes, err := k8swatch.New(folder, gvr, &k8swatch.Options{IndexBy: []string{"spec.host"}})
//	k8swatch.Read[*Route](routes.Snapshot()).Get("shop.test")
//
// New returns an error if the type lacks a field of an index path. The folder reports an
// error, with the line, if the type lacks a field of a manifest. If it lacks a field that
// a cluster sends, the watcher ignores the field. An object that does not fit into the
// type is refused. A list type is not needed. See the example OwnType, and [TypedSource].
// Without a type, objects are unstructured.
//
// A watcher names the plural of a kind: gateways of a Gateway. A cluster knows the plurals. For
// the other sources it is the English one, or what a CustomResourceDefinition among the objects
// says. If there are objects of a kind and a watched resource looks like a wrong plural of it, a
// [Folder] reports an error with the line, and [New] returns one for the other sources.
//
// # JSONPath
//
// [Options.IndexBy] takes the JSONPath of kubectl, parsed by client-go. So do indexBy of
// settings, assertions of cases, and ?field= of debug variables:
//
//	metadata.namespace                             the braces and the first dot may be left out
//	{.metadata.labels['kubernetes.io/service-name']}   dots in a quoted key need no backslash
//	spec.rules[*].host, spec.rules[0], spec.rules[-1]
//	spec.ports[?(@.name=="http")].port             == != < > <= >=; without one: the field exists
//
// An expression selects values and prints nothing: text outside of a filter is refused.
// So are "..", ranges, and lists of positions or keys.
// A position that does not exist selects nothing. An empty list does not end the search.
// [New] returns an error for misspelt fields of a typed object, up to the first filter.
// A path without a filter takes about 0.1 microseconds. One with a filter converts a typed
// object and takes some 10. IgnoreFields takes only paths without a filter.
//
// # Promises of a watcher
//
// A watcher is synced when the last initial object is in the store. Then it calls
// OnSyncComplete. Callbacks never overlap. The watcher delivers the first change at once.
// It holds the following ones for the debounce time and delivers them together.
//
// [Changes] lists the objects, up to a bound, and carries the snapshot after the changes.
// A consumer that derives something from each object derives it again for the listed
// ones. If the list is not complete, it derives everything again.
//
// An update that changes only fields that the watcher does not store is no change: OnChange
// is not called, and readers keep the object that they have. The object then keeps its older
// resource version, so write with a patch or an apply that names no resource version.
//
// If a callback fails or panics, the watcher calls it again, with the same changes and newer
// ones. An object that was deleted and created again while the connection was down counts as
// both. An object that cannot be stored is refused, counted and logged; the others go on.
//
// If the source does not answer, the watcher tries again every 0.2 to 2 seconds, without end.
// Snapshots stay readable, and [Watcher.State] says since when they are stale. Missing
// permissions and resources that are not installed are states too. [Watcher.WaitForSync] then
// returns a [SyncError] that names resource and verb, and the watcher goes on trying.
//
// # Reading
//
// A look-up by all keys, or by the first of them, takes some hundred nanoseconds
// among 50,000 objects. The caller owns the slices. The objects are shared: change only
// a DeepCopy of them.
//
// # Memory
//
// A watcher never stores metadata.managedFields and kubectl's last-applied annotation: they
// double the size of an object. [Options.IgnoreFields] drops more. Typed objects share the
// strings of their labels and annotations. Unstructured objects are stored as JSON, in a
// sixth of the memory of nested maps. A read decodes them in some ten microseconds. All
// readers share a decoded object while one of them holds it. The watcher trims initial
// objects as they arrive, so the first sync needs little more memory than the final store.
//
// An update costs microseconds at any size of the store, even with a snapshot each time:
// snapshots share all unchanged nodes of the sorted trees.
//
// # Leader election
//
// [Election] runs terms of leadership on a Lease. It waits for the work of a term
// before it gives the Lease up. [Election.Leading] checks the clock, so a process that
// was frozen knows that it lost.
package k8swatch
