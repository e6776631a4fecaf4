package dpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Raw is the text of the configuration as the API keeps it.
type Raw struct {
	Text        string // without the lines that the API adds for itself
	FileVersion int64  // the version that stands in the file
	Version     int64  // the version that the API counts; differs from FileVersion after a failed reload
}

// SplitText takes off the lines that the API keeps at the top of the file,
// "# _version=", "# _md5hash=" and "# _cluster_version=", and returns the
// version. Only the leading block of comments can hold them.
func SplitText(text string) (plain string, version int64) {
	var kept strings.Builder
	rest := text
	for line := range strings.Lines(text) {
		if words := strings.TrimSpace(line); words != "" && words[0] != '#' {
			break
		}
		rest = rest[len(line):]
		if number, ok := strings.CutPrefix(line, "# _version="); ok {
			version, _ = strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		} else if !strings.HasPrefix(line, "# _md5hash=") && !strings.HasPrefix(line, "# _cluster_version=") {
			kept.WriteString(line)
		}
	}
	return kept.String() + rest, version
}

// GetRaw reads the configuration.
func (c *Client) GetRaw(ctx context.Context) (Raw, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: at("configuration/raw"), large: true})
	return a.raw(), err
}

func (a answer) raw() Raw {
	text, version := SplitText(string(a.body))
	return Raw{Text: text, FileVersion: version, Version: cmp.Or(a.version, version)}
}

// PushMode says what happens after a configuration has been written.
type PushMode string

// The modes. [Validate] writes nothing.
const (
	SkipReload  PushMode = "skip_reload"
	ForceReload PushMode = "force_reload"
	Validate    PushMode = "only_validate"
)

// Push writes the configuration if it still has that version. The actions, only
// with [SkipReload], go to the running process. It returns what is stored now.
//
// Status 409 says that the version is another one, 400 that HAProxy refuses
// the text or, with [ForceReload], could not load it. After a 500 the text may
// have been written and some of the actions done.
func (c *Client) Push(ctx context.Context, text string, version int64, mode PushMode, actions ...string) (Raw, error) {
	a, err := c.do(ctx, call{
		method: http.MethodPost, path: fmt.Sprintf("%s?%s=true&version=%d", at("configuration/raw"), mode, version),
		body: []byte(text), actions: strings.Join(actions, ";"), large: true,
	})
	return a.raw(), err
}
