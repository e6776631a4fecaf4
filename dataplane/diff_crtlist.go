package dataplane

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
)

// defaultIdle reports whether no bind line takes its default certificate from
// the list: with strict-sni there is none in use, and a certificate that stands
// before the list on the line is the default one (configuration manual,
// "strict-sni", "crt").
func (r *referrers) defaultIdle(list File) bool {
	for _, from := range r.texts {
		for _, at := range from.places[list.Name] {
			start := at - len(lineBefore(from.text, at))
			words := strings.Fields(firstLine(from.text[start:]))
			before := strings.Fields(lineBefore(from.text, at))
			switch {
			case from.kind != "" || words[0] != "bind":
				return false
			case slices.Contains(before, "crt"):
			case !slices.Contains(words, "strict-sni") || slices.Contains(words, "no-strict-sni"):
				return false
			}
		}
	}
	return !strings.Contains(r.texts[0].text, "generate-certificates") // which are made with the default one
}

// whyCrtListOrder says why a list needs a reload to get into its order, "" if
// it does not. Of two certificates for one name HAProxy serves the one that it
// has loaded first, and what comes at runtime comes at the end. Of a
// certificate that is no file of the configuration the names are not known;
// it counts as having none in common with others.
func (d *difference) whyCrtListOrder(before, after [][]string) string {
	was, is := byCertificate(before), byCertificate(after)
	var running [][]string
	for _, e := range before {
		if slices.Equal(e, is[e[0]]) {
			running = append(running, e)
		}
	}
	for _, e := range after {
		if !slices.Equal(e, was[e[0]]) {
			running = append(running, e)
		}
	}
	if slices.EqualFunc(running, after, func(a, b []string) bool { return a[0] == b[0] }) {
		return ""
	}
	names := make(map[string][]string, len(after)) // by certificate
	for _, e := range after {
		names[e[0]] = d.namesOfEntry(e)
	}
	inOrder := func(entries [][]string) map[string][]string {
		m := make(map[string][]string)
		for _, e := range entries {
			for _, name := range names[e[0]] {
				m[name] = append(m[name], e[0])
			}
		}
		return m
	}
	have := inOrder(running)
	for name, want := range inOrder(after) {
		if len(want) > 1 && !slices.Equal(want, have[name]) {
			return "of two certificates for one name the first counts, and an order changes only at a reload"
		}
	}
	return ""
}

// namesOfEntry returns the names that an entry of a crt-list is for: its
// filters, or else those in the certificate (configuration manual, "crt-list").
func (d *difference) namesOfEntry(entry []string) []string {
	var names []string
	options := false
	for _, w := range entry[1:] {
		options = options || strings.HasPrefix(w, "[")
		if !options && !strings.HasPrefix(w, "!") {
			names = append(names, strings.ToLower(w))
		}
		options = options && !strings.HasSuffix(w, "]")
	}
	if len(names) > 0 {
		return names
	}
	file, _ := d.desired.File(Certificate, entry[0][strings.LastIndexByte(entry[0], '/')+1:])
	for rest := file.Content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil
		}
		for _, name := range append(leaf.DNSNames, leaf.Subject.CommonName) {
			if name = strings.ToLower(name); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return names
	}
}
