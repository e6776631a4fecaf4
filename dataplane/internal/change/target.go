package change

import (
	"cmp"
	"fmt"
	"strings"
)

// Version is a version of HAProxy or of the Dataplane API. The zero value stands for the
// oldest supported one.
type Version struct{ Major, Minor int }

// The versions that the table names.
var (
	HAProxy26 = Version{2, 6} // the oldest
	HAProxy27 = Version{2, 7}
	HAProxy30 = Version{3, 0}
	HAProxy31 = Version{3, 1}
	HAProxy34 = Version{3, 4}
	API30     = Version{3, 0} // the oldest
	API32     = Version{3, 2}
	API34     = Version{3, 4}
	APINewest = Version{3, 4} // assumed for an API that does not report its version
)

// String returns the version of a HAProxy, such as "3.2".
func (v Version) String() string {
	v = cmp.Or(v, HAProxy26)
	return fmt.Sprintf("%d.%d", v.Major, v.Minor)
}

// Compare returns -1, 0 or 1 if v is older than, equal to or newer than other.
func (v Version) Compare(other Version) int {
	v, other = cmp.Or(v, HAProxy26), cmp.Or(other, HAProxy26)
	return cmp.Or(cmp.Compare(v.Major, other.Major), cmp.Compare(v.Minor, other.Minor))
}

// ParseVersion reads a version as HAProxy or the API prints it, such as "3.2.26-1",
// "3.3-dev1" or "v3.2.4 1eed677a". It returns the zero value for an unreadable one.
func ParseVersion(s string) Version {
	var v Version
	if _, err := fmt.Sscanf(strings.TrimPrefix(s, "v"), "%d.%d", &v.Major, &v.Minor); err != nil || v.Major < 0 || v.Minor < 0 {
		return Version{}
	}
	return v
}

// Transport is the way in which a change reaches a running HAProxy.
type Transport int

// The transports.
const (
	Sockets Transport = iota
	API
)

// String returns "sockets" or "api".
func (t Transport) String() string {
	if t == API {
		return "api"
	}
	return "sockets"
}

// Target says which HAProxy a plan is for.
type Target struct {
	Version   Version // of HAProxy
	Transport Transport
	API       Version // of the Dataplane API; zero means the oldest
	Silent    bool    // the process has no stats socket that answers
	Names     *Names  // of the running process
}
