// Package k8swatch watches Kubernetes resources and reads them as consistent
// snapshots.
//
// A [Watcher] keeps the objects of one resource in a store that is indexed by
// JSONPath expressions, ordered, and trimmed of what nobody reads. It tells which
// objects changed, and gives a [Snapshot] at any time: immutable, with a revision,
// free to take. [Read] gives it the type of its objects:
//
//	cluster, err := k8swatch.NewCluster(nil)
//	slices, err := k8swatch.New(cluster, discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), &k8swatch.Options{
//		IndexBy:  []string{"metadata.namespace", "metadata.labels['kubernetes.io/service-name']"},
//		OnChange: func(ctx context.Context, c k8swatch.Changes) error { trigger(); return nil },
//	})
//	go slices.Run(ctx)
//	n, err := slices.WaitForSync(ctx)
//	endpoints := k8swatch.Read[*discoveryv1.EndpointSlice](ctx, slices.Snapshot())
//	for _, s := range endpoints.Get("shop", "web") { ... }
//
// Several watchers form a [Group]: run together, one OnChange, and one
// [GroupSnapshot] in which all of them are of the same instant. What one apply or one
// manifest writes to several resources may still come in several changes. [SnapshotOf]
// does the same as a Group for watchers that run outside of one.
//
// A [Single] follows one named object, such as a Secret of settings, and tells of
// each change at once. A [Cached] is for what is too big to be held, such as all
// Secrets of a cluster: it watches metadata and fetches objects on demand.
//
// # Sources
//
// A [Cluster] is a real API server. Kinds that client-go's scheme knows come as
// protobuf and are typed. A [Folder] is a directory of manifests behind the same
// interface, followed while it changes. Package k8swatchtest has a source in memory,
// with faults on demand.
//
// # Custom resources
//
// Register their Go types in a scheme of your own, and give it to the source:
//
//	types := runtime.NewScheme()
//	types.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Route"}, &Route{})
//	folder, err := k8swatch.NewFolder(dir, &k8swatch.FolderOptions{Scheme: types}) // or ClusterOptions.Scheme
//	routes, err := k8swatch.New(folder, gvr, &k8swatch.Options{IndexBy: []string{"spec.host"}})
//	k8swatch.Read[*Route](ctx, routes.Snapshot()).Get("shop.test")
//
// An index path that the type does not have is an error of New, and a field of a
// manifest that it does not have is one of the folder, with its line. A list type is
// not needed. A field that a cluster sends and the type does not have is ignored; an
// object that the type cannot hold is refused. See examples/routes, and [TypedSource].
// Without a type objects are unstructured.
//
// # JSONPath
//
// [Options.IndexBy] takes the JSONPath of kubectl, parsed by client-go; so do indexBy of
// settings, assertions of cases, and ?field= of debug variables:
//
//	metadata.namespace                             the braces and the first dot may be left out
//	{.metadata.labels['kubernetes.io/service-name']}   dots in a quoted key need no backslash
//	spec.rules[*].host, spec.rules[0], spec.rules[-1], spec.rules[1:3], spec.rules[0,2]
//	spec.ports[?(@.name=="http")].port             == != < > <= >=; without one: it is there
//	..host                                         at any depth
//	{range .spec.rules[*]}{.host}{end}             what is within, for each
//
// An expression selects values and prints nothing: text outside of a filter is refused.
// A position that is not there selects nothing, and an empty list hides nothing behind
// it. Misspelt fields of a typed object are an error of [New], up to the first filter,
// list of positions or "..". A path of fields, ['key'], [3] and [*] takes about 0.1
// microseconds; others convert a typed object and take some 10. IgnoreFields takes such
// paths alone, for what a filter selects cannot be deleted.
//
// # What a watcher promises
//
// It is synced when the last initial object is in the store, and OnSyncComplete
// is called after that. Callbacks never overlap. The first change is delivered
// at once, the following ones are held for the debounce time and delivered
// together. [Changes] lists the objects, up to a bound, and carries the snapshot that
// they lead to: who makes something of each object makes anew what is listed, and all
// of it where the list is not complete. A callback that fails or panics is called again
// with the same changes and those since. An object that was deleted and created again while the connection was
// down counts as both. An object that cannot be stored is refused, counted and
// logged, and holds nothing up.
//
// When the source is away it is tried again every 0.2 to 2 seconds, for as long
// as it takes; snapshots stay readable and [Watcher.State] says since when they
// are stale. Missing permissions and resources that are not installed are states
// too: [Watcher.WaitForSync] returns a [SyncError] that names resource and verb,
// and the watcher goes on trying behind it.
//
// # Reading
//
// A look-up by all keys, or by the first of them, takes some hundred nanoseconds
// among 50,000 objects. Slices belong to the caller; the objects are shared and
// must not be changed: DeepCopy makes copies that may be.
//
// # Memory
//
// metadata.managedFields and the last-applied annotation of kubectl are never
// stored; they double the size of an object. [Options.IgnoreFields] drops more.
// Typed objects share the strings of their labels and annotations. Unstructured
// ones are stored as JSON, in a sixth of the memory of nested maps, and
// decoded when they are read, in some ten microseconds. All readers share a
// decoded object until none of them holds it any more. Initial objects are
// trimmed as they arrive, so that the first sync takes little more than what is
// stored in the end.
//
// An update costs microseconds at any size of the store, with a snapshot each
// time as well: snapshots share all nodes of the sorted trees that did not change.
//
// # Leader election
//
// [Election] runs terms of leadership on a Lease and waits for the work of a
// term before it gives the Lease up. [Election.Leading] goes by the clock, so a
// process that was frozen knows that it lost.
package k8swatch
