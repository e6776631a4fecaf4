package dataplane

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// The oldest API that there can be at an endpoint, and the newest known, for
// which one counts that does not tell, such as a build from a branch.
var (
	oldestAPI = Version{3, 0}
	newestAPI = Version{3, 4}
)

// apiVersion says what API an endpoint has. It fails with [ErrUnsupported] for
// one of version 2 or older.
func apiVersion(info dpapi.Info) (Version, error) {
	if !info.AtLeast(oldestAPI.Major, oldestAPI.Minor) {
		return Version{}, &Error{
			Stage: "probe", Err: ErrUnsupported,
			Output: fmt.Sprintf("the Dataplane API is of version %s, which is older than %s",
				strings.TrimSpace(info.APIVersion), oldestAPI),
		}
	}
	v := haproxyVersion(strings.TrimPrefix(strings.TrimSpace(info.APIVersion), "v"))
	if v == (Version{}) {
		v = newestAPI
	}
	return v, nil
}

// inspect asks what API and what HAProxy an endpoint has.
func (c *Client) inspect(ctx context.Context, j *job) error {
	version, err := apiVersion(j.api)
	if err != nil {
		e := c.errorAt("probe", err)
		e.Endpoint = c.Name()
		return e
	}
	j.target = Target{Transport: API, API: version}
	process, err := c.api.Process(ctx)
	switch status := dpapi.Status(err); {
	case err == nil:
		j.target.Version, j.pid = haproxyVersion(process.Version), process.PID
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
