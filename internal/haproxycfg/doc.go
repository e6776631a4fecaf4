// Package haproxycfg reads the text of a HAProxy configuration.
//
// [Split] cuts the text into its sections without losing a byte, and [Fields] cuts a line
// into words as HAProxy does. Both are fast enough to run on the whole configuration for
// every change. Parsing into models costs some hundred times as much, so it is only for the
// few sections that changed.
package haproxycfg
