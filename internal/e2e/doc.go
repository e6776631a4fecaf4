// Package e2e runs the reference controller as a process, between a real
// kube-apiserver with etcd on one side and a real haproxy with real traffic on
// the other.
//
// The tests build what they run (kube-apiserver and etcd from the pins in the
// folders apiserver and etcd, and the controller) and then start themselves again
// in network, process and mount namespaces of their own. In there nothing but the
// loopback interface exists, all of 198.51.100.0/24 (RFC 5737) is local, because
// the API server refuses loopback addresses in EndpointSlices, and whatever a
// test starts ends with the test process, however that ends.
//
// Two such processes, or more with more processors, share the tests, each with a cluster of its
// own (-shards). Most of a test is waiting.
//
// They need root, and from Debian or Ubuntu the packages haproxy and iproute2.
// A test skips where a part is missing; with CI=true it fails.
//
// TestConformance holds the controller against the rules of the documentation for
// Ingress: testdata/conformance has them, as requests and their answers.
//
// Which test proves which fault is in faultlist_test.go. TestSoak injects them at
// random, in a short form with all other tests and for as long as is wanted with
// -soak (see the target soak of the Makefile).
//
//	go test -count=1 -timeout 30m ./...
//	go test -count=3 -timeout 24h -v -run '^TestFigures$' -figures .
//	go test -count=1 -timeout 24h -run '^TestSoak$' -v -soak 10m -soakrace .
package e2e
