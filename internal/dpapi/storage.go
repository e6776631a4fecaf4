package dpapi

import (
	"bytes"
	"context"
	"mime/multipart"
	"net/http"
	"net/url"
	"time"
)

// Storage is one of the folders for files that the API keeps.
type Storage string

// The storages.
const (
	Maps         Storage = "maps"
	Certificates Storage = "ssl_certificates"
	General      Storage = "general"
)

// FileInfo is a stored file. Only Name and Path are known for maps and general
// files; a listing of certificates gives no more either.
type FileInfo struct {
	Name   string `json:"storage_name"`
	Path   string `json:"file"`
	Size   int64  `json:"size"`
	Serial string `json:"serial"`

	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
}

func storagePath(s Storage, name ...string) []string {
	return append([]string{"services", "haproxy", "storage", string(s)}, name...)
}

// Files lists a storage.
func (c *Client) Files(ctx context.Context, s Storage) ([]FileInfo, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: storagePath(s)})
	if err != nil {
		return nil, err
	}
	var files []FileInfo
	return files, a.json(&files)
}

// ReadFile reads a map or a general file. The API never gives a certificate
// back: see [Client.CertificateInfo].
func (c *Client) ReadFile(ctx context.Context, s Storage, name string) ([]byte, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: storagePath(s, name), large: true})
	if err != nil {
		return nil, err
	}
	return a.body, nil
}

// CertificateInfo reads what the API tells of a certificate.
func (c *Client) CertificateInfo(ctx context.Context, name string) (FileInfo, error) {
	a, err := c.do(ctx, call{method: http.MethodGet, path: storagePath(Certificates, name)})
	if err != nil {
		return FileInfo{}, err
	}
	var f FileInfo
	return f, a.json(&f)
}

// CreateFile stores a new file and never reloads. Status 409 says that there
// is one of that name.
func (c *Client) CreateFile(ctx context.Context, s Storage, name string, content []byte) error {
	contentType, body, err := upload(name, content)
	if err != nil {
		return err
	}
	q := url.Values{}
	if s == Certificates {
		q.Set("skip_reload", "true")
	}
	_, err = c.do(ctx, call{method: http.MethodPost, path: storagePath(s), query: q, contentType: contentType, body: body})
	return err
}

// ReplaceFile overwrites a file without a reload. Status 404 says that there
// is none of that name.
func (c *Client) ReplaceFile(ctx context.Context, s Storage, name string, content []byte) error {
	contentType, body := "text/plain", content
	if s == General {
		var err error
		if contentType, body, err = upload(name, content); err != nil {
			return err
		}
	}
	_, err := c.do(ctx, call{
		method: http.MethodPut, path: storagePath(s, name), query: url.Values{"skip_reload": {"true"}},
		contentType: contentType, body: body,
	})
	return err
}

// SwapCertificate overwrites a certificate and has the running process take it
// over. Where that does not work, and with every API before 3.2, the API
// schedules a reload instead and its id comes back.
func (c *Client) SwapCertificate(ctx context.Context, name string, content []byte) (reloadID string, err error) {
	a, err := c.do(ctx, call{
		method: http.MethodPut, path: storagePath(Certificates, name), contentType: "text/plain", body: content,
	})
	if err != nil {
		return "", err
	}
	if a.status == http.StatusAccepted {
		return a.header.Get("Reload-ID"), nil
	}
	return "", nil
}

// LoadCertificate stores a new certificate and has the running process load it,
// for crt-lists to refer to. Where that does not work, and with every API before
// 3.2, the API schedules a reload instead and its id comes back. Status 409 says
// that there is one of that name.
func (c *Client) LoadCertificate(ctx context.Context, name string, content []byte) (reloadID string, err error) {
	contentType, body, err := upload(name, content)
	if err != nil {
		return "", err
	}
	a, err := c.do(ctx, call{method: http.MethodPost, path: storagePath(Certificates), contentType: contentType, body: body})
	if err != nil {
		return "", err
	}
	if a.status == http.StatusAccepted {
		return a.header.Get("Reload-ID"), nil
	}
	return "", nil
}

// DeleteFile removes a file without a reload. Status 409 says that the
// configuration refers to it.
func (c *Client) DeleteFile(ctx context.Context, s Storage, name string) error {
	q := url.Values{}
	if s == Certificates {
		q.Set("skip_reload", "true")
	}
	_, err := c.do(ctx, call{method: http.MethodDelete, path: storagePath(s, name), query: q})
	return err
}

func upload(name string, content []byte) (contentType string, body []byte, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile("file_upload", name)
	if err != nil {
		return "", nil, err
	}
	if _, err := part.Write(content); err != nil {
		return "", nil, err
	}
	if err := w.Close(); err != nil {
		return "", nil, err
	}
	return w.FormDataContentType(), b.Bytes(), nil
}
