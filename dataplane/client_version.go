package dataplane

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// apiAbilities is what a Dataplane API of some version can do beyond what all
// of version 3 do. A version that is not known counts as the newest.
type apiAbilities struct {
	// sslAtRuntime: it changes certificates, crt-lists and CA files of the
	// running process (since 3.2). An older one takes a reload for each.
	sslAtRuntime bool
}

// oldestAPI and the versions at which abilities came.
var (
	oldestAPI       = [2]int{3, 0}
	sslAtRuntimeAPI = [2]int{3, 2}
)

// abilitiesOf says what the API of an endpoint can do. It fails with
// [ErrUnsupported] for one of version 2 or older.
func abilitiesOf(info dpapi.Info) (apiAbilities, error) {
	if !info.AtLeast(oldestAPI[0], oldestAPI[1]) {
		return apiAbilities{}, &Error{
			Stage: "probe", Err: ErrUnsupported,
			Output: fmt.Sprintf("the Dataplane API is of version %s, which is older than %d.%d",
				strings.TrimSpace(info.APIVersion), oldestAPI[0], oldestAPI[1]),
		}
	}
	return apiAbilities{sslAtRuntime: info.AtLeast(sslAtRuntimeAPI[0], sslAtRuntimeAPI[1])}, nil
}

// Versions of HAProxy at which something changed for who is behind an API.
var (
	// Before, the master socket answers what the API asks with an error first,
	// so that it cannot tell what the servers are.
	readableHAProxy = Version{2, 7}

	// Since, servers that are added or deleted at runtime behave as after a
	// reload: identifiers, cookies and deletion while connections end.
	dynamicServersHAProxy = Version{3, 0}
)

// inspect asks what API and what HAProxy an endpoint has.
func (c *Client) inspect(ctx context.Context, j *job) error {
	var err error
	if j.can, err = abilitiesOf(j.api); err != nil {
		e := c.errorAt("probe", err)
		e.Endpoint = c.Name()
		return e
	}
	process, err := c.api.Process(ctx)
	switch status := dpapi.Status(err); {
	case err == nil:
		j.haproxy, j.pid = haproxyVersion(process.Version), process.PID
	case status == 0 || status == 401 || status == 403:
		return c.errorAt("probe", err)
	default:
		c.log.Debug("the Dataplane API does not tell what HAProxy runs", "error", err)
	}
	return nil
}

// haproxyVersion reads the version that a process says it has, such as
// "2.6.12-1+deb12u2" or "3.3-dev1". What cannot be read is the oldest.
func haproxyVersion(s string) Version {
	major, rest, _ := strings.Cut(s, ".")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	ma, err1 := strconv.Atoi(major)
	mi, err2 := strconv.Atoi(rest[:end])
	if err1 != nil || err2 != nil || ma <= 0 {
		return Version{}
	}
	return Version{ma, mi}
}
