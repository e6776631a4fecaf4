package main

import (
	"math"
	"syscall"

	"github.com/hapticsdk/haptic/examples/controller/ingress"
)

// shareConnections sets how many connections HAProxy takes, how many of them a namespace has,
// and how many health checks there are, where no flag does. HAProxy does not start with more
// than it can open files for. files is how many that are, for one on this host.
func (c *config) shareConnections(files int) {
	const reserve = 256 // threads, listeners and such
	if c.targets.Remote() {
		files = math.MaxInt32
	}
	checks := &c.limits.ChecksOfAll
	if *checks == 0 {
		*checks = max(min(ingress.UsualChecks, files/10, files-reserve-2*c.maxConn), 1)
	}
	most := max((files-reserve-*checks)/2, 1) // a connection takes two files
	if c.maxConn == 0 && !c.targets.Remote() {
		c.maxConn = min(10_000, most)
	}
	// While hosts are passed through, each other connection with TLS counts twice.
	c.maxPassed = c.maxConn
	if !c.targets.Remote() {
		c.maxPassed = max(c.maxConn, min(2*c.maxConn, most))
	}
	if c.limits.ConnectionsPerNamespace == 0 && c.maxConn > 0 {
		c.limits.ConnectionsPerNamespace = max(c.maxPassed/4, 1)
	}
}

// openFiles is how many files a HAProxy on this host can open.
func openFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Max > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Max)
}
