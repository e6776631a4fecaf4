package dataplane

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/internal/dpapi"
)

// fileRef names a stored file. CA files, crt-lists and all others share one
// storage.
type fileRef struct {
	storage dpapi.Storage
	name    string
}

func refOf(f File) fileRef {
	switch f.Kind {
	case Map:
		return fileRef{dpapi.Maps, f.Name}
	case Certificate:
		return fileRef{dpapi.Certificates, f.Name}
	default:
		return fileRef{dpapi.General, f.Name}
	}
}

// kind is the kind of a stored file of which nothing else is known.
func (r fileRef) kind() FileKind {
	switch r.storage {
	case dpapi.Maps:
		return Map
	case dpapi.Certificates:
		return Certificate
	default:
		return General
	}
}

func sortRefs(refs []fileRef) {
	slices.SortFunc(refs, func(a, b fileRef) int {
		if c := strings.Compare(string(a.storage), string(b.storage)); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
}

// fileWrite is one file to store.
type fileWrite struct {
	file     File
	create   bool   // it is not there yet
	quiet    bool   // it is there already, as far as can be seen from outside
	swap     bool   // a certificate that the running process takes over
	load     bool   // one that it gets to know
	old      []byte // content before
	oldKnown bool
}

// onWire is what is sent for the content of a file. An empty map becomes one
// with a comment, because an empty body is refused. A certificate goes without
// blank lines and with a line feed at its end, because HAProxy ends a payload
// at the first blank line.
func onWire(f File) []byte {
	switch {
	case f.Kind == Map && len(bytes.TrimSpace(f.Content)) == 0:
		return []byte("# empty\n")
	case f.Kind != Certificate:
		return f.Content
	}
	var b bytes.Buffer
	for line := range bytes.Lines(f.Content) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			b.Write(line)
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// write stores one file without a reload. With swap and load it returns the id
// of the reload that the API has scheduled because the process did not take the
// certificate over, "" if it did.
func (c *Client) write(ctx context.Context, w fileWrite) (reloadID string, err error) {
	ref, content := refOf(w.file), onWire(w.file)
	switch {
	case w.load:
		reloadID, err = c.api.LoadCertificate(ctx, ref.name, content)
		if isStatus(err, http.StatusConflict) {
			reloadID, err = c.api.SwapCertificate(ctx, ref.name, content)
		}
	case w.create:
		err = c.api.CreateFile(ctx, ref.storage, ref.name, content)
		if isStatus(err, http.StatusConflict) { // somebody was faster, or our last answer got lost
			err = c.api.ReplaceFile(ctx, ref.storage, ref.name, content)
		}
	case w.swap:
		reloadID, err = c.api.SwapCertificate(ctx, ref.name, content)
	default:
		err = c.api.ReplaceFile(ctx, ref.storage, ref.name, content)
		if isStatus(err, http.StatusNotFound) { // somebody deleted it
			err = c.api.CreateFile(ctx, ref.storage, ref.name, content)
		}
	}
	if err != nil {
		delete(c.certs, ref.name)
		return "", c.fileError(err, w.file.Kind, w.file.Name)
	}
	if w.file.Kind == Certificate {
		c.certs[ref.name] = w.file.Content
	}
	return reloadID, nil
}

// undoFiles puts back what was stored before, as far as it is known, and
// deletes what was new. The process never had the new content.
func (c *Client) undoFiles(ctx context.Context, written []fileWrite) error {
	for _, w := range slices.Backward(written) {
		ref := refOf(w.file)
		delete(c.certs, ref.name)
		var err error
		switch {
		case w.create:
			if err = c.api.DeleteFile(ctx, ref.storage, ref.name); isStatus(err, http.StatusConflict) || isStatus(err, http.StatusNotFound) {
				err = nil
			}
		case w.oldKnown:
			old := File{Kind: w.file.Kind, Name: w.file.Name, Content: w.old}
			_, err = c.write(ctx, fileWrite{file: old})
		}
		if err != nil {
			return c.fileError(err, w.file.Kind, w.file.Name)
		}
	}
	return nil
}

// deleteFiles removes files that nothing needs any more. The API refuses to
// remove what its configuration names; such a file stays.
func (c *Client) deleteFiles(ctx context.Context, refs []fileRef) (int, error) {
	deleted := 0
	for _, ref := range refs {
		err := c.api.DeleteFile(ctx, ref.storage, ref.name)
		switch {
		case err == nil:
			deleted++
			if ref.storage == dpapi.Certificates {
				delete(c.certs, ref.name)
			}
		case isStatus(err, http.StatusNotFound):
		case isStatus(err, http.StatusConflict):
			c.log.Warn("a file stays because the configuration names it", "storage", ref.storage, "file", ref.name)
		default:
			return deleted, c.fileError(err, ref.kind(), ref.name)
		}
	}
	return deleted, nil
}

// keeper tells which stored files stay although they are not desired: those
// that the text or a crt-list names, and all in a folder that is named as a
// folder. On an endpoint that is not ours alone all stay that are not ours.
func (c *Client) keeper(j *job) func(fileRef) bool {
	texts := []string{j.push}
	for _, f := range j.desired.files {
		if f.Kind == CRTList {
			texts = append(texts, string(f.Content))
		}
	}
	whole := map[FileKind]bool{}
	for _, kind := range []FileKind{Map, Certificate, General} {
		dir := c.opts.Layout.Dir(kind)
		whole[kind] = slices.ContainsFunc(texts, func(t string) bool { return namesFolder(t, dir) })
	}
	return func(ref fileRef) bool {
		return c.opts.KeepFiles || whole[ref.kind()] ||
			c.opts.Strategy == Transaction && !c.owned[ownedFileOf(ref)] ||
			slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, ref.name) })
	}
}

// namesFolder reports whether a text names a folder as such, or files in it by
// a pattern. The bases that file names are relative to do not count, for the
// names follow elsewhere.
func namesFolder(text, dir string) bool {
	for line := range strings.Lines(text) {
		i := strings.Index(line, dir)
		if i < 0 {
			continue
		}
		if first, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasSuffix(first, "-base") {
			continue
		}
		for ; i >= 0; i = strings.Index(line, dir) {
			line = line[i+len(dir):]
			rest := line
			if end := strings.IndexAny(rest, " \t\n\"',()"); end >= 0 {
				rest = rest[:end]
			}
			if rest == "" || rest == "/" || rest[0] == '/' && strings.ContainsAny(rest, "?*%$[") {
				return true
			}
		}
	}
	return false
}

// checkCertificate finds out beforehand what the storage would refuse with
// status 500.
func checkCertificate(content []byte) (sentinel error, why string) {
	var hasCert, hasKey bool
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		switch {
		case block.Type == "CERTIFICATE":
			if _, err := x509.ParseCertificate(block.Bytes); err != nil {
				return ErrInvalid, "the certificate cannot be parsed: " + err.Error()
			}
			hasCert = true
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			hasKey = true
			if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil && !storable(key) {
				return ErrUnsupported, "the storage takes RSA and ECDSA keys only"
			}
		}
	}
	switch {
	case !hasCert:
		return ErrInvalid, "there is no certificate in it"
	case !hasKey:
		return ErrInvalid, "there is no private key in it"
	}
	return nil, ""
}

func storable(key any) bool {
	switch key.(type) {
	case *rsa.PrivateKey, *ecdsa.PrivateKey:
		return true
	}
	return false
}

// hasSerial reports whether one of the certificates has that serial number, as
// the API writes it. It tells that of the leaf, wherever that stands.
func hasSerial(content []byte, serial string) bool {
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return false
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && cert.SerialNumber.String() == serial {
			return true
		}
	}
}
