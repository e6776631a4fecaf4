// Package derive computes collections from other collections, item by item, and computes
// again only what a change affects. It knows no Kubernetes: package k8swatch feeds its inputs
// from watchers, and tests set them by hand.
//
// A controller is a list of functions, each over one item:
//
//	pods    := derive.NewInput[string, Pod](g, "pods")
//	ready   := derive.Each("ready", pods.Collection, isReady)          // one item for each pod
//	byNode  := derive.GroupBy("by node", ready, nodeOf, byName)        // an index
//	servers := derive.Each("servers", byNode, serversOf)               // one item for each node
//	all     := derive.Sorted("all servers", servers, compareServers)   // what a template prints
//
// A function reads other items by [Collection.Get] with its [Reads], which notes the read. A
// change of an input then computes those items again that read something which changed, and
// stops where an answer is equal:
//
//   - A collection reads only collections made before it, so one pass in that order computes
//     each item at most once. No item sees half of a change.
//   - [Graph.Run] computes, [Graph.Commit] accepts, and [Graph.Rollback] undoes the transaction
//     with its history. A configuration that did not validate leaves no trace.
//   - A function gets its last accepted value: a server that keeps its name, a host that keeps
//     its owner.
//   - An item that panics or fails is an [ItemError] with its key and all that it read.
//   - [Report] adds a report, such as a refusal, to an item; [Reports] collects those of all
//     items. A report is gone as soon as its item is computed without it.
//   - [Collection.Explain] says what an item read, and why it was computed.
//
// A function must be pure: equal arguments and reads make an equal value. It cannot know
// whether it is called for the first time, again, or for a transaction that is rolled back.
package derive
