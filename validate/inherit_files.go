package validate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// filesInherit wants the same files, but for entries of maps of strings and for
// whole certificates.
func filesInherit(base, cfg *dataplane.Config) bool {
	for _, f := range cfg.Files() {
		old, ok := base.File(f.Kind, f.Name)
		switch {
		case ok && bytes.Equal(old.Content, f.Content):
		case ok && f.Kind == dataplane.Map && plainEntries(f.Content) && onlyStringMaps(cfg.Main(), f.Name):
		// HAProxy may read a file that was no certificate as something else.
		case ok && f.Kind == dataplane.Certificate && wholeCertificate(old.Content) && wholeCertificate(f.Content) && !wantsMore(cfg, f.Name):
		default:
			return false
		}
	}
	return len(base.Files()) == len(cfg.Files())
}

// wantsMore reports whether a configuration asks more of a certificate than
// that it is whole: another security level, an answer by OCSP, a file beside it
// such as "a.pem.ocsp".
func wantsMore(cfg *dataplane.Config, name string) bool {
	words := []string{"ssl-security-level", "SECLEVEL", "ocsp-update", "issuers-chain-path", "acme", "crt-store"}
	return containsAny(cfg.Main(), words) || slices.ContainsFunc(cfg.Files(), func(f dataplane.File) bool {
		return f.Kind == dataplane.CRTList && containsAny(string(f.Content), words) ||
			f.Kind == dataplane.Certificate && strings.HasPrefix(f.Name, name+".")
	})
}

// wholeCertificate reports whether a PEM file has certificates and the key of
// the first, in blocks of the usual form and nothing else: OpenSSL stops at what
// Go's reader skips.
func wholeCertificate(content []byte) bool {
	text := bytes.ReplaceAll(bytes.TrimSpace(content), []byte("\r\n"), []byte("\n"))
	text = append(bytes.ReplaceAll(text, []byte("\n\n"), []byte("\n")), '\n')
	keys := 0
	for rest := text; len(rest) > 0; {
		block, after := pem.Decode(rest)
		if block == nil || !bytes.Equal(pem.EncodeToMemory(block), rest[:len(rest)-len(after)]) {
			return false
		}
		switch block.Type {
		case "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY":
			keys++
		case "CERTIFICATE":
			if cert, err := x509.ParseCertificate(block.Bytes); err != nil || !strong(cert) {
				return false
			}
		default:
			return false
		}
		rest = after
	}
	_, err := tls.X509KeyPair(text, text)
	return err == nil && keys == 1
}

// strong reports what OpenSSL takes at its usual security level, 2.
func strong(cert *x509.Certificate) bool {
	switch cert.SignatureAlgorithm {
	case x509.UnknownSignatureAlgorithm, x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1:
		return false
	}
	switch key := cert.PublicKey.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() >= 2048 && key.N.BitLen() <= 16384
	case *ecdsa.PublicKey:
		return key.Curve.Params().BitSize >= 256
	case ed25519.PublicKey:
		return true
	}
	return false
}

// stringMaps are the converters that take any key and any value (configuration
// manual, section 7.3.1). Others want expressions, addresses or numbers.
var stringMaps = []string{
	"map", "map_str", "map_beg", "map_sub", "map_dir", "map_dom", "map_end",
	"map_str_str", "map_beg_str", "map_sub_str", "map_dir_str", "map_dom_str", "map_end_str",
}

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
		if !call || !slices.Contains(stringMaps, converter) {
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
		switch {
		case len(line) > maxEntry, bytes.ContainsFunc(line, func(r rune) bool { return r < 0x20 && r != '\t' || r == 0x7f }):
			return false
		case len(line) == 0, line[0] == '#', bytes.ContainsAny(line, " \t"):
		default:
			return false
		}
	}
	return true
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
