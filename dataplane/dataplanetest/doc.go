// Package dataplanetest has a Dataplane API, version 3, for tests. It runs in the process of
// the test, on a loopback port, answers as version 3.2.4 does, and fails on request.
//
//	s := dataplanetest.New(t, nil)
//	result, err := dataplane.Sync(ctx, s.Endpoint(), config, nil)
//	// then look at s.Raw(), s.Version(), s.Reloads(), s.Files(), s.Requests()
//
// A Server normalises, versions and stores a text as the real API does, and loses the same
// parts of it. It renames, lists and refuses files as the real API does. A test in this
// package runs the same scenarios against a Server and a real Dataplane API, and compares the
// answers. The environment variable DATAPLANEAPI_BIN names the real one. The test reads as a
// description of the API.
//
// A Server has the endpoints that package dataplane calls:
//
//   - the raw configuration, and reloads;
//   - the storages of maps, certificates and general files;
//   - statistics of servers;
//   - runtime changes of servers, maps, ACLs, certificates, CA files and crt-lists.
//
// Other paths, such as transactions and structured configuration, answer 404.
//
// Without a haproxy, [Options].Validate says which texts the Server accepts, and the Server
// imitates the running process. That process loads servers, maps, ACL files, certificates and
// crt-lists at each reload. It understands the commands of HAProxy's runtime API that the
// endpoints need. With [Options].HAProxy, a real haproxy in a folder of its own validates,
// reloads and changes.
//
//	s := dataplanetest.New(t, &dataplanetest.Options{HAProxy: &dataplanetest.HAProxy{}})
//	layout := s.Layout() // render with it: files lie in that folder
//
// # Trouble
//
// [Server.Fail] makes the n-th request of a kind fail, come late, or lose its connection
// before or in the middle of the answer. [Server.FailReload] fails a reload. After that, the
// disk has the last configuration that was loaded, and the API still believes in the new one.
//
// Four methods interfere from outside. [Server.Write] writes as another client, and
// [Server.WriteBehind] does so just before the next push. [Server.SetFile] changes a file.
// [Server.Runtime] sends a command to HAProxy's socket.
//
// A Server is safe for concurrent use. It stops at the end of the test, with all that it
// started.
package dataplanetest
