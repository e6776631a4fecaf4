// Package dataplane brings a HAProxy to a desired configuration with as few reloads as
// possible.
//
//	config, err := dataplane.NewConfig(text, dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: hosts})
//	plan, err := dataplane.Diff(current, config) // offline
//	fmt.Print(plan)
//
//	client, err := dataplane.NewClient(dataplane.Endpoint{URL: "https://10.0.0.7:5555", Username: user, Password: password}, nil)
//	result, err := client.Sync(ctx, config) // a HAProxy behind a Dataplane API
//
//	local, err := dataplane.NewLocal(dataplane.LocalOptions{Dir: "/var/lib/mycontroller"})
//	go local.Run(ctx)
//	result, err = local.Sync(ctx, config) // a HAProxy on this host
//
// A plan reads like this:
//
//	~ server a in backend shop (runtime)
//	    address: 192.0.2.1:80 -> 192.0.2.7:80
//	+ map entry blog.example.com in map hosts.map (runtime)
//	    value: (none) -> blog
//	Plan: 1 to create, 1 to update, 0 to delete; runtime, no reload.
//
// # Five things to know
//
//   - A [Config] is the whole desired state of one HAProxy: the text of haproxy.cfg and the
//     files that it names. It is immutable.
//   - These change at runtime: addresses, weights, states and connection limits of servers;
//     entries of maps, ACL files and crt-lists; certificates and CAs. Servers also come and go at
//     runtime if the balance is roundrobin, leastconn or random. A new backend takes a spare
//     one ([SparePrefix]), if there is one. HAProxy 3.4 makes a backend whose lines are those
//     of a named defaults section. [RuntimeChanges] is the whole table, by version and
//     transport. All else takes one reload, however much changes, and each [Op] of the plan
//     says why. docs/process.md says when one of the changes above needs a reload after all.
//   - After a failed Sync, HAProxy serves what it served before. After any doubt the next
//     Sync reads everything again and reloads once.
//   - [WithoutReload] applies at once what takes no reload, and leaves the rest for a later
//     Sync.
//   - A DryRun also compares the running process. A Sync that finds nothing to do compares it
//     from time to time (ClientOptions.CheckInterval), and repairs any drift.
//
// # Differences
//
// Diff compares what HAProxy reads, not how it is written. Comments, quotes and the order of
// sections that say nothing about each other do not count. So a text equals what a Dataplane
// API makes of it. Diff shows rules, ACLs, binds and servers one by one, in the words of
// HAProxy:
//
//	~ backend shop (reload: balance can change only at a reload)
//	    balance roundrobin -> leastconn
//	+ http-request 1 in frontend web (reload: http-request can change only at a reload)
//	    + http-request deny if is_api
//
// # Errors
//
// Every error of an instance is an [*Error]. It says which instance failed, at which stage,
// and why, in HAProxy's own words, with file and line if there is one. It wraps one of the
// Err values of this package. [Retryable] says whether the same call may succeed later.
//
// # Secrets
//
// Nothing in this package prints the content of a file. Plans show "(secret)" in the place of
// passwords, tokens, authorization headers and the users of URLs. They cannot recognise a
// secret that no word announces, such as a token in a path.
//
// # Where things are
//
// The folders below internal follow the way of a change: config (text and files), change
// (steps, and the one table of what a running HAProxy takes), diff (pure), and the senders:
// host and socket for [Local], api for [Client].
//
//   - Why does this change reload? Its Op says it (change/step.go: Needs). The versions are in
//     change/table.go. The conditions are in change/field.go (Value), in change/server.go and in
//     diff: sections.go, servers.go, spares.go, files.go, entries.go and crtlist.go. The
//     limits of the Dataplane API are in api/runtime.go (limit). All other lines reload
//     (diff/lines.go). host/sync.go (run, then byCommands or byFiles) and api/apply.go
//     (deploy) act on it.
//   - When does a changed configuration need no run of haproxy -c? diff/accepted.go and
//     diff/accepted_files.go decide it for package validate, by the outlines of sections
//     (config/outline.go).
//   - How does an entry of a map become a command? diff/entries.go (entries) finds it.
//     socket/files.go or api/runtime.go (changeEntries) sends it.
//   - When has a certificate changed? diff/files.go compares the bytes. diff/running.go
//     compares the fingerprint in the process (config/files.go: SHA-1 of the first
//     certificate). api/certificates.go compares what the API stores: size, serial number and
//     end. The API does not give out the content, so it then compares the hash in the ledger
//     or, without one, the fingerprint.
//   - How does a Client handle a 409? [Client.Sync] tries at most 3 times
//     (ClientOptions.Attempts), and then returns the error. If the text of the configuration
//     was in conflict, api/apply.go puts the files back, and the ledger too if the process was
//     not changed. api/client.go (Sync) tries again and reads everything. If nothing tells
//     what a changed process has, api/job.go adds a reload. For a file, api/files.go replaces
//     it instead of creating it; one that the API will not delete stays. For a new entry of a
//     map, api/runtime.go sets it instead of adding it. A stand-in of a server takes the next
//     name (api/beside.go). Any other runtime call becomes a reload (api/apply.go:
//     failedToTell).
//   - How does a new field of a server change at runtime? It needs a ServerField in
//     change/field.go, with the commands, the fields of the Dataplane API and its drift, and a
//     row in change/table.go. Its keyword is in config/server.go (serverFlags) if it takes no
//     value, and in change/server.go (addable) if "add server" takes it. A field that is read
//     back, as one for a Dataplane API must be, has its place in change/process.go:
//     socket/read.go, api/readback.go and api/process.go fill it.
//   - When is a change stored behind a Dataplane API? api/store.go; api/job.go says what may
//     wait (readsBack). api/ledger.go informs a successor. reconcile/instance.go sets the 5 s
//     between two pushes (storeInterval).
//   - How is a failed reload rolled back? host/reload.go and host/store.go here; for a
//     Dataplane API api/push.go (reloadFailed) puts text and files back.
package dataplane
