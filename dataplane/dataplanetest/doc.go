// Package dataplanetest has a Dataplane API, version 3, for tests: in process,
// on a loopback port, answering as version 3.2.4 does, and with faults at will.
//
//	s := dataplanetest.New(t, nil)
//	result, err := dataplane.Sync(ctx, s.Endpoint(), config, nil)
//	// then look at s.Raw(), s.Version(), s.Reloads(), s.Files(), s.Requests()
//
// It is built on what the real one consists of: client-native's configuration
// engine and storages. So a text is normalised, versioned and stored as there,
// with all that gets lost on the way; transactions are committed, refused and
// outdated as there; and the endpoints for single objects, for all sections,
// their children and their rules, lead to the same code. Files are renamed,
// listed and refused as there. A test in this package tells the same scenarios
// to a Server and to a real Dataplane API, if the environment variable
// DATAPLANEAPI_BIN names one, and compares the answers; it reads as a
// description of the API.
//
// What it does not have: service discovery, the cluster mode, SPOE files, sites,
// statistics, stick tables, CRL files and ACME at runtime. Those paths answer
// 404.
//
// Without a haproxy, texts are accepted as [Options].Validate says, and one who
// pretends takes the place of the running process: it loads servers, maps, ACL
// files, certificates and crt-lists at each reload and understands the commands
// of HAProxy's runtime API that the endpoints lead to. With [Options].HAProxy a
// real haproxy validates, reloads and is changed, in a folder of its own.
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
// that is quicker than the next push, commit or edit, [Server.EditConfig]
// somebody with an editor, [Server.SetFile] somebody with a file, and
// [Server.Runtime] somebody at HAProxy's socket.
//
// A Server is safe for concurrent use and stops, with all that it started, at
// the end of the test.
package dataplanetest
