// Package api brings one HAProxy to a desired configuration through the Dataplane
// API, version 3, that runs beside it.
//
// An attempt of a Sync reads what it does not know (read.go), compares (job.go),
// and carries the steps out (apply.go): files, the text with or without a reload
// (push.go), what else the process is told (runtime.go). The ledger on the endpoint
// (ledger.go) tells a successor what is ours and whether HAProxy has loaded it.
// certificates.go says how stored certificates are compared, errors.go which answer
// means what. A conflict over the text has Sync in client.go make another attempt.
//
// There is one bit of doubt. While the process may not have what is stored, the
// next attempt reads everything again and reloads once.
package api
