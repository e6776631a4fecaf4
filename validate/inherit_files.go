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

// filesInherit wants the same files, but for entries of maps of strings and for
// certificates of the same shape. It reads the text once, however many files changed.
func filesInherit(ctx context.Context, base, cfg *dataplane.Config) bool {
	more := sync.OnceValue(func() map[string]bool { return wantMore(cfg) })
	others := sync.OnceValue(func() map[string]bool { return notByStringMaps(cfg.Main()) })
	for _, f := range cfg.Files() {
		old, ok := base.File(f.Kind, f.Name)
		switch {
		case ok && bytes.Equal(old.Content, f.Content):
		case ctx.Err() != nil:
			return false
		case ok && f.Kind == dataplane.Map && plainEntries(f.Content) && others() != nil && !others()[f.Name]:
		case ok && f.Kind == dataplane.Certificate && sameShape(old.Content, f.Content) && more() != nil && !more()[f.Name]:
		default:
			return false
		}
	}
	return len(base.Files()) == len(cfg.Files())
}

// wantMore returns the certificates of which a configuration asks more than that
// OpenSSL takes them: an answer by OCSP, a file beside it such as "a.pem.ocsp". Nil
// means that it may ask that of any.
func wantMore(cfg *dataplane.Config) map[string]bool {
	words := []string{"ocsp-update", "issuers-chain-path", "acme", "crt-store"}
	if containsAny(cfg.Main(), words) {
		return nil
	}
	more := map[string]bool{}
	for _, f := range cfg.Files() {
		if f.Kind == dataplane.CRTList && containsAny(string(f.Content), words) {
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

// shapeOf returns what OpenSSL takes or refuses certificates by, at any security
// level: the algorithm of each, and the kind and size of its key. It is empty
// unless the file has certificates and the key of the first, in blocks of the
// usual form and nothing else: OpenSSL stops at what Go's reader skips.
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

// stringMaps are the converters that take any key and any value (configuration
// manual, section 7.3.1). Others want expressions, addresses or numbers.
var stringMaps = regexp.MustCompile(`^map(_(str|beg|sub|dir|dom|end)(_str)?)?$`)

// notByStringMaps tells the names of maps, in whatever folder, that something else
// than those converters names. Nil means that the text may name a file in another way.
func notByStringMaps(text string) map[string]bool {
	for line := range strings.Lines(text) {
		if haproxycfg.Expands(line) {
			return nil
		}
	}
	if containsAny(text, []string{"lua-load", `\x`}) {
		return nil
	}
	text = strings.NewReplacer(`"`, "", "'", "", `\`, "").Replace(text) + "\n" // m'.map' is m.map
	others := map[string]bool{}
	word, start := 0, 0 // where the current word begins, and its last element
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

// maxEntry is the length up to which HAProxy never cuts a line of a map,
// whatever tune.bufsize says.
const maxEntry = 1000

// plainEntries reports whether a map has nothing but comments and pairs of key
// and value, with blanks and tabs between them.
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
