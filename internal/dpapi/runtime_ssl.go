package dpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// CrtListEntry is an entry of a crt-list of the running process.
type CrtListEntry struct {
	File    string   `json:"file"`                      // the certificate
	Options string   `json:"ssl_bind_config,omitempty"` // without the brackets
	Filters []string `json:"sni_filter,omitempty"`
	Line    int64    `json:"line_number,omitempty"`
}

func runtimePath(elements ...string) []string {
	return append([]string{"services", "haproxy", "runtime"}, elements...)
}

// CrtListEntries lists a crt-list of the running process, given by its path.
func (c *Client) CrtListEntries(ctx context.Context, list string) ([]CrtListEntry, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: runtimePath("ssl_crt_lists", "entries"), query: url.Values{"name": {list}}})
	if err != nil {
		return nil, err
	}
	var entries []CrtListEntry
	err = a.json(&entries)
	for i := range entries { // HAProxy ends options with a NUL
		entries[i].Options = strings.TrimRight(entries[i].Options, "\x00")
	}
	return entries, err
}

// AddCrtListEntry adds an entry to the end of a crt-list of the running
// process; the file stays.
func (c *Client) AddCrtListEntry(ctx context.Context, list string, e CrtListEntry) error {
	// The API sends an entry with more than a file as a payload and forgets the
	// empty line that ends one: HAProxy would wait for it until it gives up.
	switch n := len(e.Filters); {
	case n > 0:
		e.Filters = append(e.Filters[:n-1:n-1], e.Filters[n-1]+"\n")
	case e.Options != "":
		return errors.New("an entry with options but without filters cannot be sent")
	}
	return c.sendJSON(ctx, http.MethodPost, runtimePath("ssl_crt_lists", "entries"), url.Values{"name": {list}}, e)
}

// DeleteCrtListEntry removes the entry of a certificate from a crt-list of the
// running process; the file stays.
func (c *Client) DeleteCrtListEntry(ctx context.Context, list, certificate string) error {
	q := url.Values{"name": {list}, "cert_file": {certificate}}
	_, err := c.do(ctx, call{method: http.MethodDelete, path: runtimePath("ssl_crt_lists", "entries"), query: q})
	return err
}

// LoadedCertificate is a certificate of the running process.
type LoadedCertificate struct {
	SHA1 string `json:"sha1_finger_print"` // in hexadecimal
}

// LoadedCertificate asks for the certificate that the running process has
// loaded from that path.
func (c *Client) LoadedCertificate(ctx context.Context, path string) (LoadedCertificate, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: runtimePath("ssl_certs", path)})
	if err != nil {
		return LoadedCertificate{}, err
	}
	var l LoadedCertificate
	return l, a.json(&l)
}

// ForgetCertificate removes a certificate that nothing uses any more from the
// running process; the file stays.
func (c *Client) ForgetCertificate(ctx context.Context, path string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: runtimePath("ssl_certs", path)})
	return err
}

// SetCAFile replaces the CA certificates that the running process has loaded
// from that path; the file stays.
func (c *Client) SetCAFile(ctx context.Context, path string, content []byte) error {
	// As above: the empty line ends the payload.
	contentType, body, err := upload("ca.pem", append(bytes.TrimRight(content, "\n"), "\n\n"...))
	if err != nil {
		return err
	}
	_, err = c.do(ctx, call{method: http.MethodPut, path: runtimePath("ssl_ca_files", path), contentType: contentType, body: body})
	return err
}

// ACLFile is a list of patterns of the running process.
type ACLFile struct {
	ID   string `json:"id"`           // another one after each reload
	Path string `json:"storage_name"` // of its file
}

// ACLFiles lists the pattern files of the running process. With an HAProxy
// before 2.7 behind a master socket there are some made of an error message.
func (c *Client) ACLFiles(ctx context.Context) ([]ACLFile, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: runtimePath("acls")})
	if err != nil {
		return nil, err
	}
	var files []ACLFile
	return files, a.json(&files)
}

// ACLEntry is a pattern of the running process.
type ACLEntry struct {
	ID    string `json:"id"`
	Value string `json:"value"`
}

// ACLEntries lists the patterns of a file.
func (c *Client) ACLEntries(ctx context.Context, id string) ([]ACLEntry, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: runtimePath("acls", id, "entries")})
	if err != nil {
		return nil, err
	}
	var entries []ACLEntry
	err = a.json(&entries)
	// Those that are made of an error message, see ACLFiles, have no address.
	return slices.DeleteFunc(entries, func(e ACLEntry) bool { return !strings.HasPrefix(e.ID, "0x") }), err
}

// AddACLEntry adds a pattern to those of a file in the running process; the
// file stays. It fails where another pattern matches the value already.
func (c *Client) AddACLEntry(ctx context.Context, id, value string) error {
	return c.sendJSON(ctx, http.MethodPost, runtimePath("acls", id, "entries"), nil, map[string]string{"value": value})
}

// DeleteACLEntry removes a pattern, given by its own id without the leading
// number sign, from those of a file in the running process; the file stays.
func (c *Client) DeleteACLEntry(ctx context.Context, id, entry string) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: runtimePath("acls", id, "entries", entry)})
	return err
}
