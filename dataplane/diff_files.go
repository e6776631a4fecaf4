package dataplane

import (
	"bytes"
	"fmt"
	"strings"
)

// files compares the files of both configurations.
func (d *difference) files() {
	cur, des := d.current.files, d.desired.files
	i, j := 0, 0
	for i < len(cur) || j < len(des) {
		order := 0
		switch {
		case i == len(cur):
			order = 1
		case j == len(des):
			order = -1
		default:
			order = compareFiles(cur[i], des[j])
		}
		switch {
		case order < 0:
			d.fileGoes(cur[i])
			i++
		case order > 0:
			d.fileComes(des[j])
			j++
		default:
			if !bytes.Equal(cur[i].Content, des[j].Content) {
				d.fileChanges(cur[i], des[j])
			}
			i, j = i+1, j+1
		}
	}
}

func (d *difference) fileComes(f File) {
	op := Op{Action: Create, Kind: string(f.Kind), Name: f.Name}
	refs := d.desired.references(f)
	switch {
	case f.Kind == Certificate && refs.onlyCrtList():
		op.Impact = ImpactRuntime
		d.add(rankFile, op, &action{kind: newCertificate, file: f})
		return
	case f.Kind == Certificate && d.desired.loadsFolder():
		op.Impact, op.Reason = ImpactReload, "a bind line reads its certificates from a folder"
	case refs.any():
		op.Impact, op.Reason = ImpactReload, "HAProxy reads files that it does not know yet at a reload"
	}
	d.add(rankFile, op, nil)
}

func (d *difference) fileGoes(f File) {
	op := Op{Action: Delete, Kind: string(f.Kind), Name: f.Name}
	refs := d.current.references(f)
	still := d.desired.references(f)
	switch {
	case still.any():
		op.Impact, op.Reason = ImpactReload, "the configuration still refers to it"
	case f.Kind == Certificate && refs.onlyCrtList():
		op.Impact = ImpactRuntime
		d.add(rankFileGone, op, &action{kind: deleteCertificate, file: f})
		return
	case f.Kind == Certificate && d.current.loadsFolder():
		op.Impact, op.Reason = ImpactReload, "a bind line reads its certificates from a folder"
	}
	d.add(rankFileGone, op, nil)
}

func (d *difference) fileChanges(old, now File) {
	was, is := d.current.references(now), d.desired.references(now)
	if now.Kind == Certificate && d.desired.loadsFolder() && d.current.loadsFolder() {
		was.crt, is.crt = true, true
	}
	op := Op{Action: Update, Kind: string(now.Kind), Name: now.Name}
	switch {
	case !is.any():
		d.add(rankFile, op, nil) // nobody reads it
		return
	case was.other || is.other || !was.any():
		// Below.
	case now.Kind == Map && was.mapped && is.mapped:
		d.mapChanges(old, now, is.ordered)
		return
	case now.Kind == Certificate && (was.crt || was.inList):
		op.Impact = ImpactRuntime
		d.add(rankFile, op, &action{kind: updateCertificate, file: now})
		return
	case now.Kind == CRTList && was.list && is.list:
		d.crtListChanges(old, now)
		return
	}
	op.Impact, op.Reason = ImpactReload, fmt.Sprintf("HAProxy reads a %s file only at a reload", now.Kind)
	if now.Kind == Certificate {
		op.Reason = "HAProxy reads a certificate that is used in this way only at a reload"
	}
	if op.Kind == string(Map) {
		op.Reason = "something other than a map converter refers to it"
	}
	d.add(rankFile, op, nil)
}

// references says how a configuration refers to a file.
type references struct {
	mapped  bool // by a map converter or an ACL
	ordered bool // by a converter that takes the first entry that matches
	crt     bool // by "crt"
	inList  bool // in a crt-list
	list    bool // by "crt-list"
	other   bool // in any other way
}

func (r references) any() bool         { return r.mapped || r.crt || r.inList || r.list || r.other }
func (r references) onlyCrtList() bool { return r.inList && !r.crt && !r.other }

// references looks for the name of a file at the end of a path, in the text and
// in the files that can refer to others. A path is written as the template
// pleases, so any folder will do: a reference too many is harmless.
func (c *Config) references(f File) references {
	var r references
	eachPath(c.main, f.Name, func(before, previous string) {
		converter, isCall := callOf(before)
		switch {
		case previous == "crt" && f.Kind == Certificate:
			r.crt = true
		case previous == "crt-list" && f.Kind == CRTList:
			r.list = true
		case f.Kind == Map && isCall && strings.HasPrefix(converter, "map"):
			r.mapped = true
			r.ordered = r.ordered || !unorderedMap(converter)
		case f.Kind == Map && previous == "-f":
			r.mapped = true
		default:
			r.other = true
		}
	})
	for _, holder := range c.files {
		switch holder.Kind {
		case CRTList:
			eachPath(string(holder.Content), f.Name, func(before, previous string) {
				if f.Kind == Certificate && previous == "" && before == "" {
					r.inList = true
				} else {
					r.other = true
				}
			})
		case General:
			eachPath(string(holder.Content), f.Name, func(string, string) { r.other = true })
		}
	}
	return r
}

// unorderedMap reports the converters that look their key up in a tree, where
// the order of the entries means nothing (configuration manual, "map").
func unorderedMap(converter string) bool {
	for _, tree := range []string{"map_str", "map_beg", "map_ip"} {
		if converter == tree || strings.HasPrefix(converter, tree+"_") {
			return true
		}
	}
	return converter == "map"
}

// callOf returns the function in whose brackets a path stands: "map_beg" for
// "%[path,map_beg(".
func callOf(before string) (name string, ok bool) {
	before, ok = strings.CutSuffix(strings.TrimRight(before, `"'\`), "(")
	if !ok {
		return "", false
	}
	start := strings.LastIndexFunc(before, func(r rune) bool { return !isNameRune(r) }) + 1
	return before[start:], true
}

// eachPath calls found for every path in the text whose last element is name,
// comments excepted, with what stands before the path in its word and with the
// word before.
func eachPath(text, name string, found func(before, previous string)) {
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return
		}
		at := from + i
		from = at + len(name)
		if from < len(text) && (isNameRune(rune(text[from])) || text[from] == '.') ||
			at > 0 && (isNameRune(rune(text[at-1])) || text[at-1] == '.') {
			continue // part of a longer name
		}
		lineStart := strings.LastIndexByte(text[:at], '\n') + 1
		lead := text[lineStart:at]
		if strings.HasPrefix(strings.TrimLeft(lead, " \t"), "#") {
			continue
		}
		path := strings.LastIndexAny(lead, " \t\"'(,=@") + 1
		word := strings.LastIndexAny(lead[:path], " \t") + 1
		previous := ""
		if words := strings.Fields(lead[:word]); len(words) > 0 {
			previous = words[len(words)-1]
		}
		found(strings.TrimLeft(lead[word:path], `"'`), previous)
	}
}

// loadsFolder reports whether a bind line may read all certificates of a
// folder: whether a "crt" is followed by what is no certificate of the
// configuration.
func (c *Config) loadsFolder() bool {
	for text := c.main; ; {
		i := strings.Index(text, " crt ")
		if i < 0 {
			return false
		}
		text = text[i+len(" crt "):]
		fields := strings.Fields(firstLine(text))
		if len(fields) == 0 {
			continue
		}
		path := strings.Trim(fields[0], `"'`)
		if _, ok := c.File(Certificate, path[strings.LastIndexByte(path, '/')+1:]); !ok {
			return true
		}
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
