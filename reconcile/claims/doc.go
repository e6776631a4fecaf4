// Package claims decides which namespace owns a host, and which object gets a key that only
// one can have, such as a path. All controllers that let tenants claim names need it: without
// owners, the tenants of one cluster take each other's hosts, path by path.
//
//   - A host belongs to the namespace that claimed it first. The namespace keeps it while one
//     of its objects claims it, also when that is not the object that claimed it first.
//   - A namespace that claims it no longer keeps it for a grace period while others ask for it.
//   - A wildcard such as *.shop.test includes all names below it that are free.
//   - If several namespaces claim a free host at once, the older object gets it.
//   - [AnyHost] stands for requests that no other host matches. It is claimed like a host.
//   - Hosts may be shared: all namespaces use them. There each key has an owner.
//
// [NewHosts] computes the owners from a collection of claimants, and only those again that
// a change affects. grace.go says how long a host without a claim keeps its owner. [Owner]
// and [First] decide who has a key such as a path, by who had it. [Entries] reads owners
// back from the configuration that an earlier process deployed.
package claims
