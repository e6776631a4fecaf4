package dataplanetest

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the fingerprint that HAProxy shows
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ssl carries out a command about certificates, CA files and crt-lists.
func (p *pretender) ssl(verb string, args []string, payload string) said {
	kind, name := args[0], args[1]
	switch {
	case kind == "crt-list":
		return p.crtList(verb, args[1:], payload)
	case kind != "cert" && kind != "ca-file":
		return failed("Unknown command: 'ssl'")
	case verb == "show" && name == "":
		return p.listObjects(kind)
	}
	index := ""
	if kind == "ca-file" {
		name, index, _ = strings.Cut(name, ":")
	}
	key := kind + " " + name
	o := p.objects[key]
	switch {
	case verb == "new" && o != nil:
		return failed("Can't create: '" + name + "' already exists!")
	case verb == "new":
		p.objects[key] = &sslObject{}
		if kind == "ca-file" {
			return told("New CA file created '%s'!", name)
		}
		return told("New empty certificate store '%s'!", name)
	case o == nil && verb == "show":
		return failed("Can't display the " + kind + " : Not found or the certificate is a bundle!")
	case o == nil:
		return failed("Can't replace a certificate which is not referenced by the configuration!\nCan't update " + name + "!")
	}
	if verb == "show" {
		return o.show(name, index)
	}
	return p.changeObject(o, verb, kind, name, payload)
}

func (p *pretender) changeObject(o *sslObject, verb, kind, name, payload string) said {
	switch verb {
	case "set", "add":
		o.pending, o.open = []byte(payload+"\n"), true
		if verb == "add" {
			o.pending = slices.Concat(o.content, o.pending)
		}
		if firstCertificate(o.pending) == nil {
			o.open = false
			return failed("unable to load certificate from file '" + name + "'.")
		}
		return told("Transaction created for certificate %s!", name)
	case "commit":
		if !o.open {
			return failed("No ongoing transaction! !\nCan't commit " + name + "!")
		}
		o.content, o.open = o.pending, false
		return shown("Committing " + name + ".\nSuccess!\n")
	case "abort":
		o.open = false
		return told("Transaction aborted for certificate '%s'!", name)
	case "del":
		if o.used || p.inList(name) {
			return failed("Can't remove the certificate: certificate '" + name + "' in use, can't be deleted!")
		}
		delete(p.objects, kind+" "+name)
		if kind == "ca-file" {
			return told("CA file '%s' deleted!", name)
		}
		return told("Certificate '%s' deleted!", name)
	}
	return failed("Unknown command: '" + verb + "'")
}

func (p *pretender) listObjects(kind string) said {
	lines := []string{"# filename"}
	for _, key := range slices.Sorted(maps.Keys(p.objects)) {
		name, ok := strings.CutPrefix(key, kind+" ")
		switch {
		case !ok:
		case kind == "ca-file":
			lines = append(lines, fmt.Sprintf("%s - %d certificate(s)", name, len(certificatesIn(p.objects[key].content))))
		default:
			lines = append(lines, name)
		}
	}
	return shown(strings.Join(lines, "\n") + "\n")
}

// show tells of a certificate; of a CA file, of the one with that index.
func (o *sslObject) show(name, index string) said {
	certs := certificatesIn(o.content)
	i := 0
	if index != "" {
		i, _ = strconv.Atoi(index)
		i--
	}
	if i < 0 || i >= len(certs) {
		return shown("Filename: " + name + "\nStatus: Empty\n")
	}
	c := certs[i]
	status := "Unused"
	if o.used {
		status = "Used"
	}
	return shown(fmt.Sprintf("Filename: %s\nStatus: %s\n\nSerial: %s\nnotBefore: %s\nnotAfter: %s\nSubject Alternative Name: \nSHA1 FingerPrint: %s\nSubject: /CN=%s\nIssuer: /CN=%s\n",
		name, status, strings.ToUpper(hex.EncodeToString(c.SerialNumber.Bytes())), c.NotBefore.UTC().Format("Jan _2 15:04:05 2006 GMT"), c.NotAfter.UTC().Format("Jan _2 15:04:05 2006 GMT"),
		fingerprint(c), c.Subject.CommonName, c.Issuer.CommonName))
}

func fingerprint(c *x509.Certificate) string {
	sum := sha1.Sum(c.Raw) //nolint:gosec // see the import
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

func certificatesIn(content []byte) (certs []*x509.Certificate) {
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return certs
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			certs = append(certs, c)
		}
	}
}

func firstCertificate(content []byte) *x509.Certificate {
	certs := certificatesIn(bytes.TrimSpace(content))
	if len(certs) == 0 {
		return nil
	}
	return certs[0]
}

// crtList carries out a command about crt-lists.
func (p *pretender) crtList(verb string, args []string, payload string) said {
	numbered := args[0] == "-n"
	if numbered {
		args = args[1:]
	}
	name := args[0]
	if verb == "show" && name == "" {
		return shown(strings.Join(slices.Sorted(maps.Keys(p.lists)), "\n") + "\n")
	}
	lines, ok := p.lists[name]
	switch {
	case !ok && verb == "show":
		return failed("didn't find the specified filename")
	case !ok:
		return failed("Can't edit the crt-list: crt-list '" + name + "' does not exist!")
	case verb == "show":
		return showList(name, lines, numbered)
	case verb == "add":
		entry := strings.TrimSpace(payload)
		if entry == "" {
			entry = args[1]
		}
		file := strings.Fields(entry)[0]
		if p.objects["cert "+file] == nil {
			return failed("Can't edit the crt-list: certificate '" + file + "' does not exist!")
		}
		p.lists[name] = append(lines, entry)
		return shown("Inserting certificate '" + file + "' in crt-list '" + name + "'.\nSuccess!\n")
	case verb == "del":
		return p.dropFromList(name, args[1])
	}
	return failed("Unknown command: '" + verb + "'")
}

func showList(name string, lines []string, numbered bool) said {
	out := "# " + name + "\n"
	for i, line := range lines {
		file, rest, more := strings.Cut(strings.TrimSpace(line), " ")
		if file == "" || file[0] == '#' {
			continue
		}
		if numbered {
			file += ":" + strconv.Itoa(i+1)
		}
		if more {
			file += " " + rest
		}
		out += file + "\n"
	}
	return shown(out)
}

// dropFromList removes an entry by file, or by file and line.
func (p *pretender) dropFromList(name, entry string) said {
	file, number, exact := strings.Cut(entry, ":")
	for i, line := range p.lists[name] {
		first, _, _ := strings.Cut(line, " ")
		if first == file && (!exact || number == strconv.Itoa(i+1)) {
			p.lists[name] = slices.Delete(slices.Clone(p.lists[name]), i, i+1)
			return told("Entry '%s' deleted in crtlist '%s'!", file, name)
		}
	}
	return failed("Can't delete the entry: the certificate '" + file + "' is not in the crt-list!")
}

// inList reports whether a crt-list names a certificate.
func (p *pretender) inList(cert string) bool {
	for _, lines := range p.lists {
		for _, line := range lines {
			if first, _, _ := strings.Cut(line, " "); first == cert {
				return true
			}
		}
	}
	return false
}
