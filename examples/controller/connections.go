package main

import (
	"math"
	"syscall"
)

// shareConnections sets how many connections HAProxy takes, and how many of them a namespace
// has, where no flag does. files is how many files a HAProxy on this host can open.
func (c *config) shareConnections(files int) {
	if c.maxConn == 0 && !c.targets.Remote() {
		c.maxConn = min(wantedConnections, connectionsOf(files))
	}
	// While hosts are passed through, each other connection with TLS counts twice.
	c.maxPassed = c.maxConn
	if !c.targets.Remote() {
		c.maxPassed = max(c.maxConn, min(2*c.maxConn, connectionsOf(files)))
	}
	if c.limits.ConnectionsPerNamespace == 0 && c.maxConn > 0 {
		c.limits.ConnectionsPerNamespace = max(c.maxPassed/4, 1)
	}
}

// wantedConnections is the default of -maxconn.
const wantedConnections = 10_000

// connectionsOf is how many connections some files are enough for. HAProxy refuses to start
// with more. A connection takes two files.
func connectionsOf(files int) int {
	const reserve = 256
	return max(files-reserve, reserve) / 2
}

// openFiles is how many files a HAProxy on this host can open.
func openFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Max > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Max)
}
