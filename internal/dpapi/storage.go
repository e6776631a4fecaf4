package dpapi

import (
	"context"
	"net/http"
	"time"
)

// Storage is one of the folders in which the API keeps files.
type Storage string

// The storages.
const (
	Maps         Storage = "maps"
	Certificates Storage = "ssl_certificates"
	General      Storage = "general"
)

// FileInfo describes a stored file. A listing gives only the names.
type FileInfo struct {
	Name     string    `json:"storage_name"`
	Size     int64     `json:"size"`
	Serial   string    `json:"serial"`
	NotAfter time.Time `json:"not_after"`
}

func storagePath(s Storage) string           { return at("storage/%s", string(s)) }
func filePath(s Storage, name string) string { return at("storage/%s/%s", string(s), name) }

const skipReload = "?skip_reload=true"

// Files lists a storage.
func (c *Client) Files(ctx context.Context, s Storage) ([]FileInfo, error) {
	return get[list[FileInfo]](ctx, c, storagePath(s))
}

// ReadFile reads a map or a general file. The API never gives a certificate
// back: see [Client.CertificateInfo].
func (c *Client) ReadFile(ctx context.Context, s Storage, name string) ([]byte, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: filePath(s, name), large: true})
	return a.body, err
}

// CertificateInfo reads the API's description of a certificate.
func (c *Client) CertificateInfo(ctx context.Context, name string) (FileInfo, error) {
	return get[FileInfo](ctx, c, filePath(Certificates, name))
}

// CreateFile stores a new file and never reloads. Status 409 says that the name is taken.
func (c *Client) CreateFile(ctx context.Context, s Storage, name string, content []byte) error {
	_, err := c.sendFile(ctx, http.MethodPost, storagePath(s)+skipReload, name, content)
	return err
}

// ReplaceFile overwrites a file without a reload. Status 404 says that there is no file with
// that name.
func (c *Client) ReplaceFile(ctx context.Context, s Storage, name string, content []byte) (err error) {
	path := filePath(s, name) + skipReload
	if s == General {
		_, err = c.sendFile(ctx, http.MethodPut, path, name, content)
	} else {
		_, err = c.do(ctx, call{method: http.MethodPut, path: path, body: content})
	}
	return err
}

// SwapCertificate overwrites a certificate, and the running process takes it over. If that
// fails, and always before API version 3.2, the API schedules a reload instead.
// SwapCertificate then returns the id of that reload.
func (c *Client) SwapCertificate(ctx context.Context, name string, content []byte) (reloadID string, err error) {
	a, err := c.do(ctx, call{method: http.MethodPut, path: filePath(Certificates, name), body: content})
	return a.reloadID, err
}

// LoadCertificate stores a new certificate, and the running process loads it, so that
// crt-lists can refer to it. Otherwise it works like [Client.SwapCertificate]. Status 409
// says that the name is taken.
func (c *Client) LoadCertificate(ctx context.Context, name string, content []byte) (reloadID string, err error) {
	a, err := c.sendFile(ctx, http.MethodPost, storagePath(Certificates), name, content)
	return a.reloadID, err
}

// DeleteFile deletes a file without a reload. Status 409 says that the configuration refers
// to it.
func (c *Client) DeleteFile(ctx context.Context, s Storage, name string) error {
	return c.delete(ctx, filePath(s, name)+skipReload)
}
