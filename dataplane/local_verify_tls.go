package dataplane

import (
	"context"
	"crypto/sha1" //nolint:gosec // the fingerprint that HAProxy shows
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// checkCrtLists reads the entries of crt-lists back that were changed, each list
// once.
func (a *applier) checkCrtLists(ctx context.Context, actions []*action) error {
	shown := make(map[string]map[string][]string)
	for _, do := range actions {
		switch do.kind {
		case addCrtListEntry, updateCrtListEntry, deleteCrtListEntry:
		default:
			continue
		}
		list := a.path(do.file)
		if shown[list] == nil {
			answer, err := a.conn.Exec(ctx, "show ssl crt-list -n "+list)
			if err != nil {
				return err
			}
			shown[list] = parseShownList(answer)
		}
		var want []string
		if do.kind != deleteCrtListEntry {
			want = []string{filtersOf(do.entry)}
		}
		if cert := path.Base(do.entry[0]); !slices.Equal(shown[list][cert], want) {
			return fmt.Errorf("crt-list %s has another entry for %s after the change", do.file.Name, cert)
		}
	}
	return nil
}

var shownLine = regexp.MustCompile(`:[0-9]+$`)

// parseShownList reads the answer to "show ssl crt-list -n": the filters of
// the entries by the name of the certificate.
func parseShownList(answer string) map[string][]string {
	shown := make(map[string][]string)
	for _, entry := range parseCrtList([]byte(answer)) {
		cert := path.Base(shownLine.ReplaceAllString(entry[0], ""))
		shown[cert] = append(shown[cert], filtersOf(entry))
	}
	return shown
}

// filtersOf returns the filters of an entry in a form to compare. Options, which
// HAProxy shows in a form of its own, are left out.
func filtersOf(entry []string) string {
	var filters []string
	options := false
	for _, w := range entry[1:] {
		options = options || strings.HasPrefix(w, "[")
		if !options {
			filters = append(filters, strings.ToLower(w))
		}
		options = options && !strings.HasSuffix(w, "]")
	}
	slices.Sort(filters)
	return strings.Join(slices.Compact(filters), " ")
}

// checkAuthorities compares the fingerprints of the certificates that a loaded
// file has with those of the file. Their order means nothing.
func (a *applier) checkAuthorities(ctx context.Context, f File) error {
	answer, err := a.conn.Exec(ctx, "show ssl ca-file "+a.path(f))
	if err != nil {
		return err
	}
	var shown, want []string
	for l := range strings.Lines(answer) {
		if sum, ok := strings.CutPrefix(strings.TrimSpace(l), "SHA1 FingerPrint: "); ok {
			shown = append(shown, sum)
		}
	}
	for block := range blocksOf(f.Content, "CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE") {
		var cert asn1.RawValue // which in a trusted one is followed by what it is trusted for
		if _, err := asn1.Unmarshal(block.Bytes, &cert); err != nil {
			return fmt.Errorf("%s %s: %w", f.Kind, f.Name, err)
		}
		want = append(want, fingerprint(cert.FullBytes))
	}
	return sameSet(f, shown, want)
}

func fingerprint(der []byte) string {
	sum := sha1.Sum(der) //nolint:gosec // see above
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

// checkRevocations compares what HAProxy shows of loaded revocation lists with
// the file: when each was made and is renewed, and the serial numbers.
func (a *applier) checkRevocations(ctx context.Context, f File) error {
	answer, err := a.conn.Exec(ctx, "show ssl crl-file "+a.path(f))
	if err != nil {
		return err
	}
	var shown, want []string
	for l := range strings.Lines(answer) {
		l = strings.TrimSpace(l)
		for _, name := range []string{"Last Update: ", "Next Update: ", "Serial Number: "} {
			if strings.HasPrefix(l, name) {
				shown = append(shown, l)
			}
		}
	}
	for block := range blocksOf(f.Content, "X509 CRL") {
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil //nolint:nilerr // HAProxy took it all the same, and shows no fingerprint
		}
		want = append(want, "Last Update: "+shownTime(list.ThisUpdate))
		if !list.NextUpdate.IsZero() {
			want = append(want, "Next Update: "+shownTime(list.NextUpdate))
		}
		for _, entry := range list.RevokedCertificateEntries {
			want = append(want, "Serial Number: "+shownSerial(entry.SerialNumber.Bytes()))
		}
	}
	shown = slices.DeleteFunc(shown, func(l string) bool { return strings.HasSuffix(l, ": NONE") })
	return sameSet(f, shown, want)
}

func shownTime(t time.Time) string { return t.UTC().Format("Jan _2 15:04:05 2006 GMT") }

// shownSerial writes a number byte by byte, as OpenSSL does.
func shownSerial(b []byte) string {
	if len(b) == 0 {
		return "00"
	}
	return strings.ToUpper(hex.EncodeToString(b))
}

// sameSet compares what is shown with what should be, where what stands twice
// counts once.
func sameSet(f File, shown, want []string) error {
	slices.Sort(shown)
	slices.Sort(want)
	shown, want = slices.Compact(shown), slices.Compact(want)
	if !slices.Equal(shown, want) {
		return fmt.Errorf("%s %s has another content after the change", f.Kind, f.Name)
	}
	return nil
}

// blocksOf goes through the PEM blocks of those types.
func blocksOf(content []byte, types ...string) func(yield func(*pem.Block) bool) {
	return func(yield func(*pem.Block) bool) {
		for rest := content; ; {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				return
			}
			if slices.Contains(types, block.Type) && !yield(block) {
				return
			}
		}
	}
}
