package certs

import (
	"fmt"
	"slices"

	"github.com/hapticsdk/haptic/reconcile/limits"
)

// MaxNames bounds the names in a [Line]: HAProxy reads no more words of a line.
const MaxNames = 1900

// maxLine bounds the hosts of a line, in bytes. The line must fit into a runtime command of
// HAProxy, which has 16,384 bytes in all.
const maxLine = 12_000

// Line collects the hosts that a certificate is used for, as a line of a crt-list.
type Line struct {
	Hosts []string
	bytes int
}

// Add adds a host, or says why the line takes no further one. most bounds its hosts.
func (l *Line) Add(host string, most int) (problem string) {
	bytes := l.bytes + len(host) + 1
	switch {
	case len(l.Hosts) >= min(most, MaxNames):
		return fmt.Sprintf("used for %s TLS hosts, the most that one can have (hosts-per-secret)", limits.Figure(len(l.Hosts)))
	case bytes > maxLine:
		return fmt.Sprintf("used for %s TLS hosts, and HAProxy reads %s bytes of them", limits.Figure(len(l.Hosts)), limits.Figure(maxLine))
	}
	l.Hosts, l.bytes = append(l.Hosts, host), bytes
	return ""
}

// maxExceptions and maxExceptionBytes bound the exceptions of a line, beside its hosts.
const maxExceptions, maxExceptionBytes = 100, 2_500

// Except sorts names that a certificate is not used for although a wildcard of its line covers
// them, and cuts them to what fits into the line. For further names HAProxy answers with the
// certificate; requests still go to their own backends.
func Except(names []string) []string {
	names = slices.Sorted(slices.Values(names))
	bytes := 0
	for i, name := range names {
		bytes += len(name) + 2
		if i == maxExceptions || bytes > maxExceptionBytes {
			return names[:i:i]
		}
	}
	return names
}
