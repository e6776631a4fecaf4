package pretender

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// patterns are the entries of a map or an ACL.
type patterns struct {
	kind, path string
	entries    []entry
}

type entry struct {
	config.MapEntry
	handle string
}

// is reports whether a word names the entry, by its key or by #handle.
func (e entry) is(word string) bool { return e.Key == word || "#"+e.handle == word }

func (p *Process) newEntry(e config.MapEntry) entry {
	p.handles++
	return entry{e, fmt.Sprintf("0x%x", 0x5500+p.handles*16)}
}

func (p *Process) addPatterns(kind, path string, content []config.MapEntry) {
	pt := &patterns{kind: kind, path: path}
	for _, e := range content {
		pt.entries = append(pt.entries, p.newEntry(e))
	}
	p.patterns = append(p.patterns, pt)
}

// pattern carries out a command about maps or ACLs.
func (p *Process) pattern(verb, kind string, args []string) (string, error) {
	name, key, value := args[0], args[1], args[2]
	var list strings.Builder
	var pt *patterns
	for id, one := range p.patterns {
		if one.kind != kind {
			continue
		}
		fmt.Fprintf(&list, "%d (%s) pattern loaded from file '%s' used by %s\n", id, one.path, one.path, kind)
		if one.path == name || name == "#"+strconv.Itoa(id) {
			pt = one
		}
	}
	switch {
	case verb == "show" && name == "":
		return list.String(), nil
	case pt == nil && kind == "map":
		return "", errors.New("Unknown map identifier. Please use #<id> or <file>.")
	case pt == nil:
		return "", errors.New("Unknown ACL identifier. Please use #<id> or <name>.")
	case verb == "show":
		list.Reset()
		for _, e := range pt.entries {
			fmt.Fprintln(&list, e.handle, e.Key, e.Value)
		}
		return list.String(), nil
	}
	at := slices.IndexFunc(pt.entries, func(e entry) bool { return e.is(key) })
	switch {
	case verb == "get" && at < 0:
		return "type=str, case=sensitive, found=no, match=no\n", nil
	case verb == "get" && kind == "map":
		return fmt.Sprintf("type=str, case=sensitive, found=yes, idx=tree, key=%q, value=%q, type=\"str\"\n", pt.entries[at].Key, pt.entries[at].Value), nil
	case verb == "get":
		return fmt.Sprintf("type=str, case=sensitive, match=yes, idx=tree, pattern=%q\n", pt.entries[at].Key), nil
	case verb == "add":
		pt.entries = append(pt.entries, p.newEntry(config.MapEntry{Key: key, Value: value}))
	case at < 0:
		return "", errors.New("entry not found.")
	case verb == "set":
		for i := range pt.entries {
			if pt.entries[i].is(key) {
				pt.entries[i].Value = value
			}
		}
	case verb == "del":
		pt.entries = slices.DeleteFunc(pt.entries, func(e entry) bool { return e.is(key) })
	}
	return "", nil
}

// object is a certificate or a CA file.
type object struct {
	content []byte
	pending []byte // set but not committed, nil if there is nothing
	used    bool
}

// ssl carries out a command about a certificate or a CA file.
func (p *Process) ssl(verb, kind, name, payload string) (string, error) {
	o := p.objects[kind+" "+name]
	switch {
	case verb == "new" && o != nil:
		return "", errors.New("Can't create: '" + name + "' already exists!")
	case verb == "new":
		p.objects[kind+" "+name] = &object{}
		return "New empty certificate store '" + name + "'!", nil
	case o == nil:
		return "", errors.New("Can't find '" + name + "': it is not referenced by the configuration!")
	case verb == "show":
		return "Filename: " + name + "\nSHA1 FingerPrint: " + config.Fingerprint(o.content) + "\n", nil
	case verb == "set":
		if config.Leaf([]byte(payload)) == nil {
			return "", errors.New("unable to load certificate from file '" + name + "'.")
		}
		o.pending = []byte(payload)
		return "Transaction created for certificate " + name + "!", nil
	case verb == "commit":
		if o.pending == nil {
			return "", errors.New("No ongoing transaction!")
		}
		o.content, o.pending = o.pending, nil
		return "Committing " + name + ".\nSuccess!\n", nil
	case o.used || p.inList(name): // only "del" is left
		return "", errors.New("Can't remove the certificate: certificate '" + name + "' in use, can't be deleted!")
	}
	delete(p.objects, kind+" "+name)
	return "Certificate '" + name + "' deleted!", nil
}

// inList reports whether a crt-list names a certificate.
func (p *Process) inList(cert string) bool {
	for _, list := range p.lists {
		if slices.ContainsFunc(list, func(e haproxycfg.ListEntry) bool { return e.Certificate() == cert }) {
			return true
		}
	}
	return false
}

// crtList carries out a command about crt-lists. The entry is in the payload or, if it is
// only a file, on the line.
func (p *Process) crtList(verb, name, file, payload string) (string, error) {
	list, ok := p.lists[name]
	if !ok {
		return "", errors.New("crt-list '" + name + "' does not exist!")
	}
	switch verb {
	case "show":
		out := "# " + name + "\n"
		for _, e := range list {
			out += strings.Join(e, " ") + "\n"
		}
		return out, nil
	case "add":
		added := haproxycfg.ParseCRTList([]byte(file + payload))
		if len(added) != 1 || p.objects["cert "+added[0].Certificate()] == nil {
			return "", errors.New("Can't edit the crt-list: the certificate does not exist!")
		}
		p.lists[name] = append(list, added[0])
		return "Inserting certificate in crt-list '" + name + "'.\nSuccess!\n", nil
	}
	at := slices.IndexFunc(list, func(e haproxycfg.ListEntry) bool { return e.Certificate() == file })
	if at < 0 {
		return "", errors.New("Can't delete the entry: the certificate '" + file + "' is not in the crt-list!")
	}
	p.lists[name] = slices.Delete(slices.Clone(list), at, at+1)
	return "Entry '" + file + "' deleted in crtlist '" + name + "'!", nil
}
