package validate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// filesInherit wants the same files, but for entries of maps of strings and for
// certificates of the same shape.
func filesInherit(base, cfg *dataplane.Config) bool {
	for _, f := range cfg.Files() {
		old, ok := base.File(f.Kind, f.Name)
		switch {
		case ok && bytes.Equal(old.Content, f.Content):
		case ok && f.Kind == dataplane.Map && plainEntries(f.Content) && onlyStringMaps(cfg.Main(), f.Name):
		case ok && f.Kind == dataplane.Certificate && sameShape(old.Content, f.Content) && !wantsMore(cfg, f.Name):
		default:
			return false
		}
	}
	return len(base.Files()) == len(cfg.Files())
}

// wantsMore reports whether a configuration asks more of a certificate than
// that OpenSSL takes it: an answer by OCSP, a file beside it such as "a.pem.ocsp".
func wantsMore(cfg *dataplane.Config, name string) bool {
	words := []string{"ocsp-update", "issuers-chain-path", "acme", "crt-store"}
	return containsAny(cfg.Main(), words) || slices.ContainsFunc(cfg.Files(), func(f dataplane.File) bool {
		return f.Kind == dataplane.CRTList && containsAny(string(f.Content), words) ||
			f.Kind == dataplane.Certificate && strings.HasPrefix(f.Name, name+".")
	})
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

// onlyStringMaps reports whether nothing but those converters names a file, in
// whatever folder.
func onlyStringMaps(text, name string) bool {
	for line := range strings.Lines(text) {
		if haproxycfg.Expands(line) {
			return false
		}
	}
	if containsAny(text, []string{"lua-load", `\x`}) {
		return false // which may name it in another way
	}
	text = strings.NewReplacer(`"`, "", "'", "", `\`, "").Replace(text) // m'.map' is m.map
	for {
		before, after, found := strings.Cut(text, name)
		if !found {
			return true
		}
		converter, _, call := strings.Cut(before[strings.LastIndexAny(before, " \t\n\",'[")+1:], "(")
		if !call || !stringMaps.MatchString(converter) {
			return false
		}
		text = after
	}
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
