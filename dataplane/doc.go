// Package dataplane brings a HAProxy to a desired configuration with as few
// reloads as possible.
package dataplane
