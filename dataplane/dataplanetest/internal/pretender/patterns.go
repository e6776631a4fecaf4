package pretender

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// patterns are the entries of a map or an ACL.
type patterns struct {
	kind, path string
	entries    []entry
}

type entry struct{ handle, key, value string }

func (p *Process) newEntry(key, value string) entry {
	p.handles++
	return entry{"0x" + strconv.FormatInt(int64(0x5500+p.handles*16), 16), key, value}
}

func (p *Process) addPatterns(kind string, f File) {
	pt := &patterns{kind: kind, path: f.Path}
	for line := range strings.Lines(string(f.Content)) {
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#':
		case kind == "acl":
			pt.entries = append(pt.entries, p.newEntry(line, ""))
		default:
			pt.entries = append(pt.entries, p.newEntry(key, strings.TrimSpace(value)))
		}
	}
	p.patterns = append(p.patterns, pt)
}

// pattern carries out a command about maps or ACLs.
func (p *Process) pattern(verb, kind string, args []string) said {
	name, key, value := args[0], args[1], args[2]
	if verb == "show" && name == "" {
		return p.listPatterns(kind)
	}
	pt := p.findPatterns(kind, name)
	if pt == nil && kind == "map" {
		return failed("Unknown map identifier. Please use #<id> or <file>.")
	}
	if pt == nil {
		return failed("Unknown ACL identifier. Please use #<id> or <name>.")
	}
	at := slices.IndexFunc(pt.entries, func(e entry) bool { return e.is(key) })
	switch {
	case verb == "show":
		var out strings.Builder
		for _, e := range pt.entries {
			fmt.Fprintln(&out, e.handle, e.key, e.value)
		}
		return said{text: out.String()}
	case verb == "get":
		return pt.get(at)
	case verb == "add" && (key == "" || kind == "map" && value == ""):
		return failed("'add " + kind + "' expects a key, and a value for a map.")
	case verb == "add":
		pt.entries = append(pt.entries, p.newEntry(key, value))
	case at < 0:
		return failed("entry not found.")
	case verb == "set":
		for i := range pt.entries {
			if pt.entries[i].is(key) {
				pt.entries[i].value = value
			}
		}
	case verb == "del":
		pt.entries = slices.DeleteFunc(pt.entries, func(e entry) bool { return e.is(key) })
	}
	return shown("")
}

func (p *Process) listPatterns(kind string) said {
	var out strings.Builder
	out.WriteString("# id (file) description\n")
	for id, pt := range p.patterns {
		if pt.kind == kind {
			fmt.Fprintf(&out, "%d (%s) pattern loaded from file '%s' used by %s. curr_ver=0 next_ver=0 entry_cnt=%d\n", id, pt.path, pt.path, kind, len(pt.entries))
		}
	}
	return said{text: out.String()}
}

// findPatterns finds a map or an ACL by #identifier or path.
func (p *Process) findPatterns(kind, name string) *patterns {
	for id, pt := range p.patterns {
		if pt.kind == kind && (pt.path == name || name == "#"+strconv.Itoa(id)) {
			return pt
		}
	}
	return nil
}

// is reports whether a word names an entry, by its key or by #handle.
func (e entry) is(word string) bool { return e.key == word || "#"+e.handle == word }

func (pt *patterns) get(at int) said {
	switch {
	case at < 0 && pt.kind == "map":
		return shown("type=str, case=sensitive, found=no\n")
	case at < 0:
		return shown("type=str, case=sensitive, match=no\n")
	case pt.kind == "map":
		return shown("type=str, case=sensitive, found=yes, idx=tree, key=%q, value=%q, type=\"str\"\n", pt.entries[at].key, pt.entries[at].value)
	}
	return shown("type=str, case=sensitive, match=yes, idx=tree, pattern=%q\n", pt.entries[at].key)
}
