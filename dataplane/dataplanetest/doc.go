// Package dataplanetest has a Dataplane API, version 3, for tests: in process,
// on a loopback port, with as much of the real one's behaviour as clients
// depend on, and with faults at will.
//
//	s := dataplanetest.New(t, nil)
//	result, err := dataplane.Sync(ctx, s.Endpoint(), config, nil)
//	// then look at s.Raw(), s.Version(), s.Reloads(), s.Files(), s.Actions()
//
// What it does as the real one does: basic authentication for everything, the
// version on every answer, 409 for a stale version, the round trip of every
// text through the config parser of client-native, validation, reloads that are
// forced, skipped or scheduled, a failed reload that reverts the disk but not
// the memory, storages that rename files, refuse bad certificates and never
// give one back, runtime actions and map entries.
//
// What it does not have: transactions, edits of single objects, and everything
// else that is not named above. Those paths answer 404.
//
// With [Options].HAProxy it drives a real haproxy in a folder of its own:
// texts are validated by it, reloads are real, and runtime changes go through
// its socket.
//
//	s := dataplanetest.New(t, &dataplanetest.Options{HAProxy: &dataplanetest.HAProxy{}})
//	layout := s.Layout() // render with it: files lie in that folder
//
// [Server.Fail], [Server.FailReload] and [Server.WriteBehind] make trouble:
// statuses, delays, cut connections, failing reloads, and another writer.
//
// A Server is safe for concurrent use and stops, with all that it started, at
// the end of the test.
package dataplanetest
