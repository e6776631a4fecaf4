// Package dpapi speaks to the HAProxy Dataplane API, version 3: the raw
// configuration, the file storages, reloads, and those runtime calls that are
// safe. It decides nothing: package dataplane does.
//
// Every call is one HTTP request. Statuses other than success come back as a
// [*StatusError]; everything that kept an answer from arriving, a connection
// cut in the middle of it too, as a [*url.Error], which is a [net.Error].
// Neither ever holds credentials.
package dpapi
