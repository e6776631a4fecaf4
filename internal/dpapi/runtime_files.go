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

// The calls in this file change what the running process has loaded from files. The files
// stay as they are.

// MapEntry is an entry of a map of the running process.
type MapEntry struct {
	Key   string `json:"key,omitempty"`
	Value string `json:"value"`
}

// MapEntries lists a map. The API splits lines at blanks, so it cuts values after the first
// word. With a HAProxy before 2.7 behind a master socket, the API makes entries of an error
// message.
func (c *Client) MapEntries(ctx context.Context, mapName string) ([]MapEntry, error) {
	return get[list[MapEntry]](ctx, c, at("runtime/maps/%s/entries", mapName))
}

// AddMapEntry adds an entry to a map. Status 409 says that the key exists. In this and all
// other calls, keys and values have to be safe words, see [SafeWord].
func (c *Client) AddMapEntry(ctx context.Context, mapName, key, value string) error {
	return c.sendJSON(ctx, http.MethodPost, at("runtime/maps/%s/entries", mapName), MapEntry{key, value})
}

// SetMapEntry changes the value of a key of a map. Status 404 says that the key does not
// exist.
func (c *Client) SetMapEntry(ctx context.Context, mapName, key, value string) error {
	return c.sendJSON(ctx, http.MethodPut, at("runtime/maps/%s/entries/%s", mapName, key), MapEntry{Value: value})
}

// DeleteMapEntry deletes all entries with a key from a map.
func (c *Client) DeleteMapEntry(ctx context.Context, mapName, key string) error {
	return c.delete(ctx, at("runtime/maps/%s/entries/%s", mapName, key))
}

// ACLFile is a list of patterns of the running process.
type ACLFile struct {
	ID   string `json:"id"`           // changes at each reload
	Path string `json:"storage_name"` // of its file
}

// ACLFiles lists the pattern files of the running process. With a HAProxy before 2.7 behind a
// master socket, the API makes some of an error message.
func (c *Client) ACLFiles(ctx context.Context) ([]ACLFile, error) {
	return get[list[ACLFile]](ctx, c, at("runtime/acls"))
}

// ACLEntry is a pattern of the running process.
type ACLEntry struct {
	ID    string `json:"id,omitempty"`
	Value string `json:"value"`
}

// ACLEntries lists the patterns of a file.
func (c *Client) ACLEntries(ctx context.Context, id string) ([]ACLEntry, error) {
	entries, err := get[list[ACLEntry]](ctx, c, at("runtime/acls/%s/entries", id))
	// Entries that are made of an error message, see ACLFiles, have no address.
	return slices.DeleteFunc(entries, func(e ACLEntry) bool { return !strings.HasPrefix(e.ID, "0x") }), err
}

// AddACLEntry adds a pattern to the patterns of a file. It fails if another pattern already
// matches the value.
func (c *Client) AddACLEntry(ctx context.Context, id, value string) error {
	return c.sendJSON(ctx, http.MethodPost, at("runtime/acls/%s/entries", id), ACLEntry{Value: value})
}

// DeleteACLEntry deletes a pattern of a file. The entry is the id of the pattern without the
// leading number sign.
func (c *Client) DeleteACLEntry(ctx context.Context, id, entry string) error {
	return c.delete(ctx, at("runtime/acls/%s/entries/%s", id, entry))
}

// CrtListEntry is an entry of a crt-list of the running process.
type CrtListEntry struct {
	File    string   `json:"file"`                      // the certificate
	Options string   `json:"ssl_bind_config,omitempty"` // without the brackets
	Filters []string `json:"sni_filter,omitempty"`
}

// AddCrtListEntry adds an entry to the end of a crt-list.
func (c *Client) AddCrtListEntry(ctx context.Context, list string, e CrtListEntry) error {
	// If an entry has more than a file, the API sends it as a payload, and forgets the empty
	// line that ends a payload. HAProxy would wait for that line until it gives up.
	switch n := len(e.Filters); {
	case n > 0:
		e.Filters = append(e.Filters[:n-1:n-1], e.Filters[n-1]+"\n")
	case e.Options != "":
		return errors.New("an entry with options but without filters cannot be sent")
	}
	return c.sendJSON(ctx, http.MethodPost, listPath(url.Values{"name": {list}}), e)
}

// DeleteCrtListEntry deletes the entry of a certificate from a crt-list.
func (c *Client) DeleteCrtListEntry(ctx context.Context, list, certificate string) error {
	return c.delete(ctx, listPath(url.Values{"name": {list}, "cert_file": {certificate}}))
}

func listPath(query url.Values) string { return at("runtime/ssl_crt_lists/entries?") + query.Encode() }

// LoadedCertificate is a certificate of the running process.
type LoadedCertificate struct {
	SHA1 string `json:"sha1_finger_print"` // in hexadecimal
}

// LoadedCertificate asks for the certificate that the running process has
// loaded from that path.
func (c *Client) LoadedCertificate(ctx context.Context, path string) (LoadedCertificate, error) {
	return get[LoadedCertificate](ctx, c, at("runtime/ssl_certs/%s", path))
}

// ForgetCertificate deletes a certificate that nothing uses any more.
func (c *Client) ForgetCertificate(ctx context.Context, path string) error {
	return c.delete(ctx, at("runtime/ssl_certs/%s", path))
}

// SetCAFile replaces the CA certificates that the running process has loaded
// from that path.
func (c *Client) SetCAFile(ctx context.Context, path string, content []byte) error {
	payload := append(bytes.TrimRight(content, "\n"), "\n\n"...) // the empty line ends the payload, as above
	_, err := c.sendFile(ctx, http.MethodPut, at("runtime/ssl_ca_files/%s", path), "ca.pem", payload)
	return err
}
