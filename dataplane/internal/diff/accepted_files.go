package diff

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"sync"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// filesKeep requires the same files, except for entries of maps that take any text, and for
// certificates of the same shape. It returns the maps that it read.
func (a *Accepted) filesKeep(ctx context.Context, files []config.File) (read []string, ok bool) {
	if len(files) != len(a.config.Files) {
		return nil, false
	}
	beside := sync.OnceValue(func() map[string]bool { return filesBeside(files) })
	for i, f := range files {
		old := a.config.Files[i]
		switch {
		case config.CompareFiles(old, f) != 0:
			return nil, false
		case bytes.Equal(old.Content, f.Content):
		case ctx.Err() != nil:
			return nil, false
		case f.Kind == config.Map && a.base.free[f.Name] && a.plainEntries(old, f):
			read = append(read, f.Name)
		case f.Kind == config.Certificate && !a.base.askMore && sameShape(old.Content, f.Content) && beside() != nil && !beside()[f.Name]:
		default:
			return nil, false
		}
	}
	return read, true
}

// freeMaps returns the maps of which HAProxy takes any text as key and as value.
func freeMaps(c *config.Config) map[string]bool {
	names := make(map[string]bool)
	for _, f := range c.Files {
		if f.Kind == config.Map {
			names[f.Name] = true
		}
	}
	free := make(map[string]bool, len(names))
	refs := findReferences(c, names, false)
	for name := range names {
		u := refs.of(config.File{Kind: config.Map, Name: name})
		u.mapped, u.ordered = false, false
		free[name] = !u.any()
	}
	return free
}

// plainEntries calls [plainEntries] with the changed lines of a map, or with all lines if it
// has not read the map before.
func (a *Accepted) plainEntries(old, f config.File) bool {
	if !a.plain[f.Name] {
		return plainEntries(f.Content)
	}
	_, to, _, _ := changedLines(old.Content, f.Content)
	return plainEntries(to)
}

// filesBeside returns the names of the certificates that have a file beside them. It returns
// nil if a crt-list makes HAProxy ask for more than a valid certificate.
func filesBeside(files []config.File) map[string]bool {
	beside := make(map[string]bool)
	for _, f := range files {
		if f.Kind == config.CRTList && config.AsksMore(string(f.Content)) {
			return nil
		}
		for i := range f.Name {
			if f.Kind == config.Certificate && f.Name[i] == '.' {
				beside[f.Name[:i]] = true
			}
		}
	}
	return beside
}

func sameShape(a, b []byte) bool {
	shape := shapeOf(a)
	return shape != "" && shape == shapeOf(b)
}

// shapeOf returns the properties by which OpenSSL accepts or refuses certificates, at any
// security level: the algorithm of each, and the kind and size of its key. It returns ""
// unless the file has only certificates and the key of the first, in blocks of the usual
// form. OpenSSL stops at text that Go's reader skips.
func shapeOf(content []byte) (shape string) {
	text := bytes.ReplaceAll(bytes.TrimSpace(content), []byte("\r\n"), []byte("\n"))
	text = append(bytes.ReplaceAll(text, []byte("\n\n"), []byte("\n")), '\n')
	var usual []byte
	keys := 0
	for block := range haproxycfg.Blocks(text) {
		usual = append(usual, pem.EncodeToMemory(block)...)
		switch block.Type {
		case "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY":
			keys++
		case "CERTIFICATE":
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return ""
			}
			shape += fmt.Sprintln(cert.SignatureAlgorithm, cert.PublicKeyAlgorithm, len(cert.RawSubjectPublicKeyInfo))
		default:
			return ""
		}
	}
	if _, err := tls.X509KeyPair(text, text); err != nil || keys != 1 || !bytes.Equal(usual, text) {
		return ""
	}
	return shape
}

// maxEntry is the longest line of a map, in bytes, that HAProxy never cuts, for any
// tune.bufsize.
const maxEntry = 1000

// plainEntries reports whether a map has only comments and pairs of key and value, with
// blanks and tabs between them.
func plainEntries(content []byte) bool {
	for line := range bytes.Lines(content) {
		line = bytes.Trim(line, " \t\r\n")
		control := bytes.ContainsFunc(line, func(r rune) bool { return r < 0x20 && r != '\t' || r == 0x7f })
		pair := len(line) == 0 || line[0] == '#' || bytes.ContainsAny(line, " \t")
		if !pair || control || len(line) > maxEntry {
			return false
		}
	}
	return true
}
