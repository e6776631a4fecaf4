// Package dataplanetest has a Dataplane API, version 3, for tests: in process,
// on a loopback port, answering as version 3.2.4 does, and with faults at will.
//
//	s := dataplanetest.New(t, nil)
//	result, err := dataplane.Sync(ctx, s.Endpoint(), config, nil)
//	// then look at s.Raw(), s.Version(), s.Reloads(), s.Files(), s.Requests()
//
// A text is normalised, versioned and stored as there, with all that gets lost
// on the way. Files are renamed, listed and refused as there. A test in this
// package tells the same scenarios to a Server and to a real Dataplane API, if
// the environment variable DATAPLANEAPI_BIN names one, and compares the answers;
// it reads as a description of the API.
//
// It has the endpoints that package dataplane calls: the raw configuration,
// reloads, the storages of maps, certificates and general files, statistics of
// servers, and what changes servers, maps, ACLs, certificates, CA files and
// crt-lists at runtime. Other paths, such as transactions and structured
// configuration, answer 404.
//
// Without a haproxy, texts are accepted as [Options].Validate says, and the
// running process is pretended: it loads servers, maps, ACL files, certificates
// and crt-lists at each reload and understands the commands of HAProxy's runtime
// API that the endpoints lead to. With [Options].HAProxy a real haproxy
// validates, reloads and is changed, in a folder of its own.
//
//	s := dataplanetest.New(t, &dataplanetest.Options{HAProxy: &dataplanetest.HAProxy{}})
//	layout := s.Layout() // render with it: files lie in that folder
//
// # Trouble
//
// [Server.Fail] makes the n-th request of a kind fail, come late, or lose its
// connection before or in the middle of the answer. [Server.FailReload] fails a
// reload, after which the disk is back at the last configuration that was
// loaded and the API still believes the new one.
//
// Others interfere: [Server.Write] is another client, [Server.WriteBehind] one
// that is quicker than the next push. [Server.SetFile] changes a file, and
// [Server.Runtime] speaks to HAProxy's socket.
//
// A Server is safe for concurrent use and stops, with all that it started, at
// the end of the test.
package dataplanetest
