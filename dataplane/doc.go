// Package dataplane brings a HAProxy to a desired configuration with as few
// reloads as possible.
//
// A [Config] is the whole desired state of one HAProxy: the text of
// haproxy.cfg and the files that it refers to. [NewConfig] makes one of what a
// program has in memory, [ReadConfig] of a folder. [Diff] compares two of them,
// without any I/O, and returns a [Plan]: what would be created, updated and
// deleted, and what each of it costs the running process.
//
//	~ server a in backend shop (runtime)
//	    address: 192.0.2.1:80 -> 192.0.2.7:80
//	+ map entry blog.example.com in map hosts.map (runtime)
//	    value: (none) -> blog
//	Plan: 1 to create, 1 to update, 0 to delete; runtime, no reload.
//
// Two types carry a plan out, and both offer DryRun and Sync:
//
//   - [Local] is a HAProxy on this host. It writes the files, speaks to the
//     sockets of the process, and can start and supervise it.
//   - [Client] is a HAProxy behind a Dataplane API, version 3. Its [Strategy]
//     says whether the endpoint is its own, or shared with another owner whose
//     sections stay as they are.
//
// [SyncAll] brings many of them to their configurations at once, each within a
// deadline of its own, and tells the outcome of each.
//
// In the repository, examples/diff prints the plan between two files, and
// examples/sync pushes a file with its maps and certificates to an endpoint.
//
// # What is a difference
//
// Diff compares what HAProxy reads, not how it is written: comments, quotes, the
// order of sections and of lines that say different things are no difference, so
// that what a Dataplane API makes of a text equals the text. Where HAProxy itself
// looks at an order, it is one. Rules, ACLs, binds and other lines are told one by
// one:
//
//	~ backend shop (reload: balance can change only at a reload)
//	    balance.algorithm: roundrobin -> leastconn
//	+ http-request rule 1 in frontend web (reload: http-request can change only at a reload)
//	    + http-request deny if is_api
//
// # What takes a reload
//
// Addresses, weights, connection limits, checks and the state of servers change
// at runtime; servers come and go at runtime in backends whose balance is
// roundrobin, leastconn or random. So do entries of maps, ACL files and
// crt-lists, and certificates. [RuntimeChanges] is the whole table, by version
// and transport. Everything else takes one reload, however much changes, and
// each [Op] of the plan gives the reason.
//
// To spare reloads, put a certificate that stays first into a crt-list, and let
// a map decide which backend a host belongs to.
//
// # Errors
//
// A failed Sync leaves HAProxy serving what it served before. The error is an
// [*Error]: it says which endpoint, at which stage, and in HAProxy's own words
// why, with file and line where there is one. It wraps one of the Err values of
// this package; [Retryable] says whether the same call may succeed later.
//
// # Secrets
//
// Nothing in this package prints the content of a file, and plans show
// "(secret)" in the place of passwords, tokens, authorization headers and the
// users of URLs. What no word announces, such as a token in a path, they cannot
// know.
//
// # Concurrency
//
// A Config is immutable. A Local and a Client may be used by any number of
// goroutines; each does one Sync at a time.
package dataplane
