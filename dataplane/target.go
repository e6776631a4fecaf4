package dataplane

import (
	"cmp"
	"fmt"
)

// Version is a version of HAProxy, such as 3.2. The zero value stands for 2.6,
// the oldest one that this package cares for.
type Version struct{ Major, Minor int }

// String returns the version as HAProxy writes it, such as "3.2".
func (v Version) String() string {
	v = v.orOldest()
	return fmt.Sprintf("%d.%d", v.Major, v.Minor)
}

// Compare returns -1 where v is older than other, 0 where they are equal and 1
// where it is newer.
func (v Version) Compare(other Version) int {
	v, other = v.orOldest(), other.orOldest()
	return cmp.Or(cmp.Compare(v.Major, other.Major), cmp.Compare(v.Minor, other.Minor))
}

func (v Version) orOldest() Version {
	if v == (Version{}) {
		return Version{2, 6}
	}
	return v
}

// Transport is the way in which a change reaches a running HAProxy.
type Transport int

// The transports.
const (
	Sockets Transport = iota // the stats socket of the process, as [Local] uses it
	API                      // a Dataplane API beside it, as [Client] uses it
)

// Target says which HAProxy a plan is for: what it can change without a reload
// depends on its version and on the way to it; [RuntimeChanges] is the table.
// The zero value is HAProxy 2.6 by its own sockets.
type Target struct {
	Version   Version // of HAProxy
	Transport Transport
	API       Version // of the Dataplane API, where that is the transport; zero means 3.0

	// hardMaxconn is the number of connections that the process started with,
	// beyond which it cannot go; 0 if not known.
	hardMaxconn int

	// silent says that the process has no stats socket, or that it does not
	// answer: nothing can change at runtime.
	silent bool
}

func (t Target) apiVersion() Version {
	if t.API == (Version{}) {
		return oldestAPI
	}
	return t.API
}
