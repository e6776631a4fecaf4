package dataplanetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// pattern carries out a command about maps or ACLs.
func (p *pretender) pattern(verb, kind string, args []string, payload string) said {
	if verb == "show" && args[0] == "" {
		return p.listPatterns(kind)
	}
	version := ""
	if strings.HasPrefix(args[0], "@") {
		version, args = args[0][1:], args[1:]
	}
	pt := p.findPatterns(kind, args[0])
	if pt == nil && kind == "map" {
		return failed("Unknown map identifier. Please use #<id> or <file>.")
	}
	if pt == nil {
		return failed("Unknown ACL identifier. Please use #<id> or <name>.")
	}
	key := args[1]
	switch verb {
	case "show":
		var out strings.Builder
		for _, e := range pt.entries {
			fmt.Fprintln(&out, e.handle, e.key, e.value)
		}
		return shown(out.String())
	case "get":
		return pt.get(key)
	case "add":
		return p.addTo(pt, version, key, args[2], payload)
	case "set":
		return pt.set(key, args[2])
	case "del":
		return pt.del(key)
	case "clear":
		pt.entries = nil
	case "prepare":
		pt.last++
		pt.versions[strconv.Itoa(pt.last)] = nil
		return informed("New version created: %d", pt.last)
	case "commit":
		entries, ok := pt.versions[version]
		if !ok {
			return failed("Version number out of range.")
		}
		pt.entries = entries
		delete(pt.versions, version)
	default:
		return failed("Unknown command: '" + verb + "'")
	}
	return shown("")
}

func (p *pretender) listPatterns(kind string) said {
	var out strings.Builder
	out.WriteString("# id (file) description\n")
	for id, pt := range p.patterns {
		if pt.kind == kind {
			fmt.Fprintf(&out, "%d (%s) pattern loaded from file '%s' used by %s. curr_ver=0 next_ver=0 entry_cnt=%d\n", id, pt.path, pt.path, kind, len(pt.entries))
		}
	}
	return shown(out.String())
}

// findPatterns finds a map or an ACL by #identifier or path.
func (p *pretender) findPatterns(kind, name string) *patterns {
	for id, pt := range p.patterns {
		if pt.kind == kind && (pt.path == name || name == "#"+strconv.Itoa(id)) {
			return pt
		}
	}
	return nil
}

func (p *pretender) addTo(pt *patterns, version, key, value, payload string) said {
	entries := p.readEntries(pt.kind, payload)
	switch {
	case payload == "" && (key == "" || pt.kind == "map" && value == ""):
		return failed("This command expects a key, and a value for a map.")
	case payload == "":
		entries = []entry{p.newEntry(key, value)}
	}
	if version == "" {
		pt.entries = append(pt.entries, entries...)
		return shown("")
	}
	if _, ok := pt.versions[version]; !ok {
		return failed("Version number out of range.")
	}
	pt.versions[version] = append(pt.versions[version], entries...)
	return shown("")
}

// is reports whether a word names an entry, by its key or by #handle.
func (e entry) is(word string) bool { return e.key == word || "#"+e.handle == word }

func (pt *patterns) get(key string) said {
	i := slices.IndexFunc(pt.entries, func(e entry) bool { return e.is(key) })
	switch {
	case i < 0 && pt.kind == "map":
		return shown("type=str, case=sensitive, found=no\n")
	case i < 0:
		return shown("type=str, case=sensitive, match=no\n")
	case pt.kind == "map":
		return shown(fmt.Sprintf("type=str, case=sensitive, found=yes, idx=tree, key=%q, value=%q, type=\"str\"\n", pt.entries[i].key, pt.entries[i].value))
	}
	return shown(fmt.Sprintf("type=str, case=sensitive, match=yes, idx=tree, pattern=%q\n", pt.entries[i].key))
}

func (pt *patterns) set(key, value string) said {
	found := false
	for i := range pt.entries {
		if pt.entries[i].is(key) {
			pt.entries[i].value, found = value, true
		}
	}
	if !found {
		return failed("entry not found.")
	}
	return shown("")
}

func (pt *patterns) del(key string) said {
	before := len(pt.entries)
	pt.entries = slices.DeleteFunc(pt.entries, func(e entry) bool { return e.is(key) })
	if len(pt.entries) == before {
		return failed("Key not found.")
	}
	return shown("")
}
