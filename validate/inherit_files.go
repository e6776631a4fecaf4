package validate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// filesInherit requires the same files, except for entries of maps of strings and for
// certificates of the same shape. It returns the maps that it read.
func (a *accepted) filesInherit(ctx context.Context, x *index, files []dataplane.File) (read []string, ok bool) {
	if len(files) != len(a.files) {
		return nil, false
	}
	more := sync.OnceValue(func() map[string]bool { return wantMore(files) })
	for i, f := range files {
		old := a.files[i]
		switch {
		case old.Kind != f.Kind || old.Name != f.Name:
			return nil, false
		case bytes.Equal(old.Content, f.Content):
		case ctx.Err() != nil:
			return nil, false
		case f.Kind == dataplane.Map && x.anyMap == 0 && x.maps[f.Name] == 0 && a.plainEntries(old, f):
			read = append(read, f.Name)
		case f.Kind == dataplane.Certificate && x.askMore == 0 && sameShape(old.Content, f.Content) && more() != nil && !more()[f.Name]:
		default:
			return nil, false
		}
	}
	return read, true
}

// plainEntries calls [plainEntries] with the changed lines of a map, or with all lines if
// it has not read the map before.
func (a *accepted) plainEntries(old, f dataplane.File) bool {
	if !a.plain[f.Name] {
		return plainEntries(f.Content)
	}
	return plainEntries(between(old.Content, f.Content))
}

// between returns the lines of text without the lines at its start and end that old has
// too.
func between(old, text []byte) []byte {
	const step = 4 << 10 // bytes.Equal is fast for long pieces
	n := min(len(old), len(text))
	start := 0
	for start+step <= n && bytes.Equal(old[start:start+step], text[start:start+step]) {
		start += step
	}
	for start < n && old[start] == text[start] {
		start++
	}
	end := 0
	for end+step <= n-start && bytes.Equal(old[len(old)-end-step:len(old)-end], text[len(text)-end-step:len(text)-end]) {
		end += step
	}
	for end < n-start && old[len(old)-end-1] == text[len(text)-end-1] {
		end++
	}
	start = bytes.LastIndexByte(text[:start], '\n') + 1
	rest := text[len(text)-end:]
	if at := bytes.IndexByte(rest, '\n'); at >= 0 {
		rest = rest[at+1:]
	} else {
		rest = nil
	}
	return text[start : len(text)-len(rest)]
}

// asks are words that make a configuration depend on more than a valid certificate: on an
// OCSP answer, or on a file beside it such as "a.pem.ocsp".
var asks = []string{"ocsp-update", "issuers-chain-path", "acme", "crt-store"}

// wantMore returns the names of the certificates that have a file beside them. It returns
// nil if a crt-list has one of asks.
func wantMore(files []dataplane.File) map[string]bool {
	more := map[string]bool{}
	for _, f := range files {
		if f.Kind == dataplane.CRTList && containsAny(string(f.Content), asks) {
			return nil
		}
		for i := range f.Name {
			if f.Kind == dataplane.Certificate && f.Name[i] == '.' {
				more[f.Name[:i]] = true
			}
		}
	}
	return more
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

// stringMaps matches the converters that accept any key and any value (configuration
// manual, section 7.3.1). Others need expressions, addresses or numbers.
var stringMaps = regexp.MustCompile(`^map(_(str|beg|sub|dir|dom|end)(_str)?)?$`)

// notByStringMaps returns the names of maps in the text, in any folder. The value is true
// if something other than these converters names the map. It returns nil if the text may
// name a file in another way.
func notByStringMaps(text string) map[string]bool {
	for line := range strings.Lines(text) {
		if haproxycfg.Expands(line) {
			return nil
		}
	}
	if containsAny(text, []string{"lua-load", `\x`}) {
		return nil
	}
	text = quotes.Replace(text) + "\n" // m'.map' is m.map
	others := map[string]bool{}
	word, start := 0, 0 // the starts of the current word and of its last path element
	for i := range len(text) {
		if text[i] != '/' && pathByte(text[i]) {
			continue
		}
		if name := text[start:i]; strings.HasSuffix(name, ".map") {
			converter, _, call := strings.Cut(text[word:start], "(")
			others[name] = others[name] || !call || !stringMaps.MatchString(converter)
		}
		start = i + 1
		if strings.IndexByte(" \t\n\",'[", text[i]) >= 0 {
			word = start
		}
	}
	return others
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

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
