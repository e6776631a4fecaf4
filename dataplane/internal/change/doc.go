// Package change says what can happen to a running HAProxy: the steps of a plan,
// and the one table of what changes without a reload.
//
// A new field of a server is one row in table.go. Nothing else knows the commands,
// the versions or the columns to read back.
package change
