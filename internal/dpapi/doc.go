// Package dpapi speaks to the HAProxy Dataplane API, version 3: the raw configuration, the
// file storages, reloads, and the runtime calls that are safe. It decides nothing: package
// dataplane does.
//
// Every call is one HTTP request. If the status is not success, the error is a
// [*StatusError]. If no whole answer arrives, for example because the connection is cut, the
// error is a [*url.Error], which is a [net.Error]. Neither ever holds credentials.
package dpapi
