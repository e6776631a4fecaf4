package pretender

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/dataplanetest/internal/certs"
)

// object is a certificate or a CA file.
type object struct {
	content []byte
	pending []byte // set and not committed, nil if there is nothing
	used    bool
}

// ssl carries out a command about certificates and CA files.
func (p *Process) ssl(verb, kind, name, payload string) said {
	if verb == "show" && name == "" {
		return p.listObjects(kind)
	}
	index := ""
	if kind == "ca-file" {
		name, index, _ = strings.Cut(name, ":")
	}
	o := p.objects[kind+" "+name]
	switch {
	case verb == "new" && o != nil:
		return failed("Can't create: '" + name + "' already exists!")
	case verb == "new":
		p.objects[kind+" "+name] = &object{}
		return shown("New empty certificate store '%s'!", name)
	case o == nil && verb == "show":
		return failed("Can't display the " + kind + " : Not found or the certificate is a bundle!")
	case o == nil:
		return failed("Can't replace a certificate which is not referenced by the configuration!\nCan't update " + name + "!")
	case verb == "show":
		return o.show(name, index)
	case verb == "set":
		if len(certs.Read([]byte(payload))) == 0 {
			return failed("unable to load certificate from file '" + name + "'.")
		}
		o.pending = []byte(payload)
		return shown("Transaction created for certificate %s!", name)
	case verb == "commit":
		if o.pending == nil {
			return failed("No ongoing transaction! !\nCan't commit " + name + "!")
		}
		o.content, o.pending = o.pending, nil
		return shown("Committing %s.\nSuccess!\n", name)
	case o.used || p.inList(name): // "del" is left
		return failed("Can't remove the certificate: certificate '" + name + "' in use, can't be deleted!")
	}
	delete(p.objects, kind+" "+name)
	return shown("Certificate '%s' deleted!", name)
}

func (p *Process) listObjects(kind string) said {
	out := "# filename\n"
	for _, key := range slices.Sorted(maps.Keys(p.objects)) {
		name, ok := strings.CutPrefix(key, kind+" ")
		if ok && kind == "ca-file" {
			name += fmt.Sprintf(" - %d certificate(s)", len(certs.Read(p.objects[key].content)))
		}
		if ok {
			out += name + "\n"
		}
	}
	return said{text: out}
}

// show tells of a certificate; of a CA file, of the one with that index.
func (o *object) show(name, index string) said {
	list := certs.Read(o.content)
	n := 1
	if index != "" {
		n, _ = strconv.Atoi(index)
	}
	if n < 1 || n > len(list) {
		return shown("Filename: %s\nStatus: Empty\n", name)
	}
	status := "Unused"
	if o.used {
		status = "Used"
	}
	out := "Filename: " + name + "\nStatus: " + status + "\n\n" + describe(list[n-1])
	if index == "" && len(list) > 1 {
		out += "Chain Subject: " + distinguished(list[1].Subject) + "\nChain Issuer: " + distinguished(list[1].Issuer) + "\n"
	}
	return said{text: out}
}

func describe(c *x509.Certificate) string {
	const date = "Jan _2 15:04:05 2006 GMT"
	var names []string
	for _, name := range c.DNSNames {
		names = append(names, "DNS:"+name)
	}
	for _, ip := range c.IPAddresses {
		names = append(names, "IP Address:"+ip.String())
	}
	algorithm := ""
	switch key := c.PublicKey.(type) {
	case *rsa.PublicKey:
		algorithm = "RSA" + strconv.Itoa(key.N.BitLen())
	case *ecdsa.PublicKey:
		algorithm = "EC" + strconv.Itoa(key.Params().BitSize)
	}
	return fmt.Sprintf("Serial: %s\nnotBefore: %s\nnotAfter: %s\nSubject Alternative Name: %s\nAlgorithm: %s\nSHA1 FingerPrint: %s\nSubject: %s\nIssuer: %s\n",
		strings.ToUpper(hex.EncodeToString(c.SerialNumber.Bytes())), c.NotBefore.UTC().Format(date), c.NotAfter.UTC().Format(date),
		strings.Join(names, ", "), algorithm, certs.Fingerprint(c), distinguished(c.Subject), distinguished(c.Issuer))
}

// distinguished writes a name as OpenSSL does in one line.
func distinguished(name pkix.Name) string {
	words := map[string]string{"2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.10": "O", "2.5.4.11": "OU"}
	out := ""
	for _, part := range name.Names {
		word := words[part.Type.String()]
		if word == "" {
			word = part.Type.String()
		}
		out += fmt.Sprintf("/%s=%v", word, part.Value)
	}
	return out
}

// crtList carries out a command about crt-lists.
func (p *Process) crtList(verb string, args []string, payload string) said {
	numbered := args[0] == "-n"
	if numbered {
		args = args[1:]
	}
	name := args[0]
	lines, ok := p.lists[name]
	switch {
	case !ok && verb == "show":
		return failed("didn't find the specified filename")
	case !ok:
		return failed("Can't edit the crt-list: crt-list '" + name + "' does not exist!")
	case verb == "show":
		return showList(name, lines, numbered)
	case verb == "del":
		return p.dropFromList(name, args[1])
	}
	entry := strings.TrimSpace(payload)
	if entry == "" {
		entry = args[1]
	}
	file := certificateOf(entry)
	if p.objects["cert "+file] == nil {
		return failed("Can't edit the crt-list: certificate '" + file + "' does not exist!")
	}
	p.lists[name] = append(lines, entry)
	return shown("Inserting certificate '%s' in crt-list '%s'.\nSuccess!\n", file, name)
}

// certificateOf returns the first word of a line, "" for a line without entry.
func certificateOf(line string) string {
	words := strings.Fields(line)
	if len(words) == 0 || words[0][0] == '#' {
		return ""
	}
	return words[0]
}

func showList(name string, lines []string, numbered bool) said {
	out := "# " + name + "\n"
	for i, line := range lines {
		file := certificateOf(line)
		if file == "" {
			continue
		}
		rest := strings.TrimPrefix(strings.TrimSpace(line), file)
		rest = strings.Replace(rest, "]", "\x00]", 1) // as HAProxy does
		if numbered {
			file += ":" + strconv.Itoa(i+1)
		}
		out += file + rest + "\n"
	}
	return said{text: out}
}

// dropFromList removes an entry by file, or by file and line.
func (p *Process) dropFromList(name, entry string) said {
	file, number, exact := strings.Cut(entry, ":")
	for i, line := range p.lists[name] {
		if certificateOf(line) == file && (!exact || number == strconv.Itoa(i+1)) {
			p.lists[name] = slices.Delete(slices.Clone(p.lists[name]), i, i+1)
			return shown("Entry '%s' deleted in crtlist '%s'!", file, name)
		}
	}
	return failed("Can't delete the entry: the certificate '" + file + "' is not in the crt-list!")
}

// inList reports whether a crt-list names a certificate.
func (p *Process) inList(cert string) bool {
	for _, lines := range p.lists {
		if slices.ContainsFunc(lines, func(line string) bool { return certificateOf(line) == cert }) {
			return true
		}
	}
	return false
}
