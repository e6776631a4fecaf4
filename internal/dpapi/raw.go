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
	Text        string // without the lines that the API adds
	FileVersion int64  // the version in the file
	Version     int64  // the version in the count of the API; differs from FileVersion after a failed reload
}

// SplitText removes the lines "# _version=", "# _md5hash=" and "# _cluster_version=" that the
// API keeps at the top of the file. It also returns the version. Only the leading block of
// comments can hold these lines.
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

// PushMode says what happens after the API has written a configuration.
type PushMode string

// The modes. [Validate] writes nothing.
const (
	SkipReload  PushMode = "skip_reload"
	ForceReload PushMode = "force_reload"
	Validate    PushMode = "only_validate"
)

// Push writes the configuration if the stored one still has that version. The actions go to
// the running process; they need [SkipReload]. Push returns what is stored now.
//
// Status 409 says that the version differs. Status 400 says that HAProxy refuses the text or,
// with [ForceReload], could not load it. After a 500 the API may have written the text and
// done some of the actions.
func (c *Client) Push(ctx context.Context, text string, version int64, mode PushMode, actions ...string) (Raw, error) {
	a, err := c.do(ctx, call{
		method: http.MethodPost, path: fmt.Sprintf("%s?%s=true&version=%d", at("configuration/raw"), mode, version),
		body: []byte(text), actions: strings.Join(actions, ";"), large: true,
	})
	return a.raw(), err
}
