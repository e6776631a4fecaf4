package dpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Raw is the text of the configuration as the API keeps it.
type Raw struct {
	Text        string // without the lines that the API adds for itself
	FileVersion int64  // the version that stands in the file
	Version     int64  // the version that the API counts; differs from FileVersion after a failed reload
	ReloadID    string // the reload that will load it, "" if none is pending
}

// SplitText takes off the lines that the API keeps at the top of the file,
// "# _version=", "# _md5hash=" and "# _cluster_version=", and returns the
// version. Only the leading block of comments can hold them.
func SplitText(text string) (plain string, version int64) {
	var b strings.Builder
	rest := text
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		trimmed := strings.TrimSpace(line)
		if trimmed != "" && !strings.HasPrefix(trimmed, "#") {
			break
		}
		switch {
		case strings.HasPrefix(line, "# _version="):
			version, _ = strconv.ParseInt(strings.TrimSpace(line[len("# _version="):]), 10, 64)
		case strings.HasPrefix(line, "# _md5hash="), strings.HasPrefix(line, "# _cluster_version="):
		default:
			b.WriteString(line)
			b.WriteByte('\n')
		}
		rest = after
	}
	return b.String() + rest, version
}

// GetRaw reads the configuration.
func (c *Client) GetRaw(ctx context.Context) (Raw, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: rawPath(), large: true})
	if err != nil {
		return Raw{}, err
	}
	return a.raw(), nil
}

func (a *answer) raw() Raw {
	text, version := SplitText(string(a.body))
	r := Raw{Text: text, FileVersion: version, Version: a.version, ReloadID: a.header.Get("Reload-ID")}
	if r.Version == 0 {
		r.Version = version
	}
	return r
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
	q := url.Values{"version": {strconv.FormatInt(version, 10)}, string(mode): {"true"}}
	h := http.Header{}
	if len(actions) > 0 {
		h.Set("X-Runtime-Actions", strings.Join(actions, ";"))
	}
	a, err := c.do(ctx, call{
		method: http.MethodPost, path: rawPath(), query: q, header: h,
		contentType: "text/plain", body: []byte(text), large: true,
	})
	if err != nil {
		return Raw{}, err
	}
	return a.raw(), nil
}

func rawPath() []string { return []string{"services", "haproxy", "configuration", "raw"} }

// Reload is one reload and what became of it.
type Reload struct {
	ID       string `json:"id"`
	Status   string `json:"status"` // in_progress, succeeded or failed
	Response string `json:"response"`
}

// Reload asks what became of a reload. Status 404 says that it is not known:
// the API has been restarted before it took place.
func (c *Client) Reload(ctx context.Context, id string) (Reload, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: []string{"services", "haproxy", "reloads", id}})
	if err != nil {
		return Reload{}, err
	}
	var r Reload
	return r, a.json(&r)
}
