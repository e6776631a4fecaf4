package validate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// inherits reports whether base, which haproxy accepted, vouches for cfg: all
// that differs is checked by a running HAProxy when it is told, and is of a
// shape that haproxy -c would take too, should cfg ever be loaded from disk.
// When in doubt the answer is no, which costs one run of haproxy.
func inherits(base, cfg *dataplane.Config) bool {
	plan, err := dataplane.Diff(base, cfg)
	if err != nil || plan.Impact() > dataplane.ImpactRuntime {
		return false
	}
	return sameButServers(base.Main(), cfg.Main()) && sameButEntries(base, cfg)
}

// sameButServers reports whether two texts have the same sections with the
// same lines, but for servers of backends.
func sameButServers(base, text string) bool {
	if base == text {
		return true
	}
	before, after := haproxycfg.Split(base), haproxycfg.Split(text)
	if len(before) != len(after) {
		return false
	}
	for i := range before {
		if before[i].Hash == after[i].Hash && before[i].Text == after[i].Text {
			continue
		}
		if before[i].Kind != after[i].Kind || before[i].Name != after[i].Name || before[i].Kind != "backend" {
			return false
		}
		if !serversInherit(before[i].Text, after[i].Text, text) {
			return false
		}
	}
	return true
}

// server is a server line that inherits knows all about.
type server struct{ name, options string }

// serversInherit compares two texts of one backend. New servers must have the
// options of one that haproxy has seen there.
func serversInherit(before, after, text string) bool {
	oldRest, oldServers, ok := splitServers(before)
	if !ok {
		return false
	}
	newRest, newServers, ok := splitServers(after)
	if !ok || !slices.Equal(oldRest, newRest) {
		return false
	}
	seen := map[string]bool{}
	options := map[string]bool{}
	gone := map[string]bool{}
	for _, s := range oldServers {
		options[s.options], gone[s.name] = true, true
	}
	for _, s := range newServers {
		if seen[s.name] || !options[s.options] {
			return false
		}
		seen[s.name] = true
		delete(gone, s.name)
	}
	return !mentions(text, gone)
}

// mentions reports whether a line other than a server's own may name one of
// these servers: use-server, track, srv_is_up(...). A name that stands in the
// line by itself, in whatever quotes, is enough, and so is a variable of the
// environment.
func mentions(text string, servers map[string]bool) bool {
	if len(servers) == 0 {
		return false
	}
	for line := range strings.Lines(text) {
		words, err := haproxycfg.Fields(line)
		if err != nil || haproxycfg.Expands(line) {
			return true
		}
		if len(words) > 1 && words[0] == "server" {
			words = words[2:]
		}
		for _, word := range words {
			for name := range strings.FieldsFuncSeq(word, func(r rune) bool { return r >= 0x80 || r == '/' || !pathByte(byte(r)) }) {
				if servers[name] {
					return true
				}
			}
		}
	}
	return false
}

// splitServers takes the servers out of the lines of a backend. It fails on a
// server that is not plain.
func splitServers(text string) (rest []string, servers []server, ok bool) {
	for line := range strings.Lines(text) {
		words, err := haproxycfg.Fields(line)
		if err != nil {
			return nil, nil, false
		}
		if len(words) == 0 {
			continue
		}
		switch {
		case words[0] == "server-template": // its servers have names, too
			return nil, nil, false
		case words[0] == "default-server" && len(servers) > 0: // the order tells what it holds for
			return nil, nil, false
		case words[0] == "use-fcgi-app", words[0][:min(1, len(words[0]))] == ".": // HAProxy counts servers, or skips lines
			return nil, nil, false
		}
		if words[0] != "server" {
			rest = append(rest, strings.Trim(line, " \t\r\n"))
			continue
		}
		raw, _ := haproxycfg.RawFields(line) // quotes decide what is a variable
		s, plain := plainServer(raw)
		if !plain {
			return nil, nil, false
		}
		servers = append(servers, s)
	}
	return rest, servers, true
}

// plainServer reads "server name address:port [options]", with its quotes. Options that must be
// unique, and addresses that are no IP addresses, are not plain.
func plainServer(words []string) (server, bool) {
	if len(words) < 3 {
		return server{}, false
	}
	addr, err := netip.ParseAddrPort(words[2])
	if err != nil || addr.Port() == 0 || addr.Addr().Zone() != "" {
		return server{}, false
	}
	if words[1] == "" || strings.ContainsFunc(words[1], func(r rune) bool { return r >= 0x80 || !pathByte(byte(r)) || r == '/' }) {
		return server{}, false
	}
	s := server{name: words[1]}
	for i := 3; i < len(words); i++ {
		switch words[i] {
		case "id", "guid", "cookie", "track":
			return server{}, false
		case "weight":
			if i+1 == len(words) {
				return server{}, false
			}
			if n, err := strconv.Atoi(words[i+1]); err != nil || n < 0 || n > 256 {
				return server{}, false
			}
			i++ // the value itself is checked
			s.options += "weight\n"
			continue
		}
		s.options += words[i] + "\n"
	}
	return s, true
}

// sameButEntries compares the files: maps of strings may have other entries,
// certificates may be others; everything else must be the same.
func sameButEntries(base, cfg *dataplane.Config) bool {
	before, after := base.Files(), cfg.Files()
	if len(before) != len(after) {
		return false
	}
	for i := range before {
		if before[i].Kind != after[i].Kind || before[i].Name != after[i].Name {
			return false
		}
		if bytes.Equal(before[i].Content, after[i].Content) {
			continue
		}
		switch after[i].Kind {
		case dataplane.Map:
			if !onlyStringMaps(cfg.Main(), after[i].Name) || !plainEntries(after[i].Content) {
				return false
			}
		case dataplane.Certificate:
			// What was no such file may be read as something else, such as a CRL.
			if refusesMore(cfg) || accompanied(after, after[i].Name) || !wholeCertificate(before[i].Content) || !wholeCertificate(after[i].Content) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// refusesMore reports whether a configuration asks more of certificates:
// another security level than the usual one, that OCSP can be asked about them,
// or keys that lie elsewhere.
func refusesMore(cfg *dataplane.Config) bool {
	for _, word := range []string{"ssl-security-level", "SECLEVEL", "ocsp-update", "issuers-chain-path", "acme", "crt-store"} {
		if strings.Contains(cfg.Main(), word) {
			return true
		}
		for _, f := range cfg.Files() {
			if f.Kind == dataplane.CRTList && bytes.Contains(f.Content, []byte(word)) {
				return true
			}
		}
	}
	return false
}

// accompanied reports whether HAProxy reads other files with a certificate,
// which may fit none but the one that it was: "a.pem.ocsp" and its like.
func accompanied(files []dataplane.File, name string) bool {
	return slices.ContainsFunc(files, func(f dataplane.File) bool {
		return f.Kind == dataplane.Certificate && strings.HasPrefix(f.Name, name+".")
	})
}

// wholeCertificate reports whether a PEM file has a certificate with its key,
// and nothing that OpenSSL refuses at its usual security level (2): keys of few
// bits, signatures by MD5 and SHA-1. It wants blocks of the usual form and
// nothing else, since OpenSSL stops at what Go's reader skips.
func wholeCertificate(content []byte) bool {
	if !plainPEM(content) {
		return false
	}
	pair, err := tls.X509KeyPair(content, content)
	if err != nil {
		return false
	}
	for _, der := range pair.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil || !strongKey(cert.PublicKey) {
			return false
		}
		switch cert.SignatureAlgorithm {
		case x509.UnknownSignatureAlgorithm, x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1:
			return false
		}
	}
	return true
}

// strongKey reports the public keys that OpenSSL takes.
func strongKey(key any) bool {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() >= 2048 && key.N.BitLen() <= 16384
	case *ecdsa.PublicKey:
		return key.Curve.Params().BitSize >= 256
	case ed25519.PublicKey:
		return true
	}
	return false
}

// plainPEM reports whether a file consists of certificates and one private key
// as everybody writes them, and of empty lines.
func plainPEM(content []byte) bool {
	var plain []byte
	keys := 0
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		switch block.Type {
		case "CERTIFICATE":
		case "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY":
			keys++
		default:
			return false
		}
		plain = append(plain, pem.EncodeToMemory(block)...)
	}
	return keys == 1 && bytes.Equal(plain, withoutEmptyLines(content))
}

func withoutEmptyLines(content []byte) []byte {
	var b []byte
	for line := range bytes.Lines(content) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			b = append(append(b, line...), '\n')
		}
	}
	return b
}

// stringMaps are the converters that take any key and any value (section 7.3.1
// of the configuration manual): neither expressions, addresses nor numbers.
var stringMaps = []string{
	"map", "map_str", "map_beg", "map_sub", "map_dir", "map_dom", "map_end",
	"map_str_str", "map_beg_str", "map_sub_str", "map_dir_str", "map_dom_str", "map_end_str",
}

// onlyStringMaps reports whether all that names the file is one of those
// converters. The name alone is looked for, in whatever folder.
func onlyStringMaps(text, name string) bool {
	if strings.Contains(text, "lua-load") || strings.Contains(text, `\x`) || expands(text) {
		return false // Lua, or a variable, may name it
	}
	text = strings.NewReplacer(`"`, "", "'", "", `\`, "").Replace(text) // m'.map' is m.map
	for rest := text; ; {
		i := strings.Index(rest, name)
		if i < 0 {
			return true
		}
		before := rest[:i]
		rest = rest[i+len(name):]
		before = before[strings.LastIndexAny(before, " \t\n\",'[")+1:]
		converter, _, ok := strings.Cut(before, "(")
		if !ok || !slices.Contains(stringMaps, converter) {
			return false
		}
	}
}

// expands reports whether a text has variables of the environment.
func expands(text string) bool {
	if strings.IndexByte(text, '$') < 0 {
		return false
	}
	for line := range strings.Lines(text) {
		if haproxycfg.Expands(line) {
			return true
		}
	}
	return false
}

// maxEntry is the length of a line in a map below which no setting of
// tune.bufsize makes HAProxy cut it.
const maxEntry = 1000

// plainEntries reports whether a map has nothing but comments and lines of a
// key and a value, which only blanks and tabs separate.
func plainEntries(content []byte) bool {
	for line := range bytes.Lines(content) {
		line = bytes.Trim(line, " \t\r\n")
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if len(line) > maxEntry || bytes.IndexAny(line, " \t") < 0 {
			return false
		}
		if bytes.ContainsFunc(line, func(r rune) bool { return r < 0x20 && r != '\t' || r == 0x7f }) {
			return false
		}
	}
	return true
}
