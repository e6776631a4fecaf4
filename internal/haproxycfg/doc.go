// Package haproxycfg takes the text of a HAProxy configuration apart.
//
// [Split] cuts the text into its sections without losing a byte, and [Fields]
// cuts a line into words as HAProxy does. Both are fast enough to run on the
// whole configuration for every change; parsing into models, which costs some
// hundred times as much, is for the few sections that changed.
package haproxycfg
