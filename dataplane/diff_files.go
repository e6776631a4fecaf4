package dataplane

import (
	"bytes"
	"fmt"
	"iter"
	"strings"

	"github.com/hapticsdk/haptic/internal/haproxyctl"
)

// files compares the files of both configurations.
func (d *difference) files() {
	type change struct{ old, now *File }
	var changes []change
	cur, des := d.current.files, d.desired.files
	for i, j := 0, 0; i < len(cur) || j < len(des); {
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
			changes = append(changes, change{old: &cur[i]})
			i++
		case order > 0:
			changes = append(changes, change{now: &des[j]})
			j++
		default:
			if !bytes.Equal(cur[i].Content, des[j].Content) {
				changes = append(changes, change{&cur[i], &des[j]})
			}
			i, j = i+1, j+1
		}
	}
	if len(changes) == 0 {
		return
	}
	names := make(map[string]bool, len(changes))
	for _, c := range changes {
		if c.now != nil {
			names[c.now.Name] = true
		} else {
			names[c.old.Name] = true
		}
	}
	d.was, d.is = findReferences(d.current, names), findReferences(d.desired, names)
	for _, c := range changes {
		switch {
		case c.now == nil:
			d.fileGoes(*c.old)
		case c.old == nil:
			d.fileComes(*c.now)
		default:
			d.fileChanges(*c.old, *c.now)
		}
	}
}

func (d *difference) fileComes(f File) {
	op := Op{Action: Create, Kind: string(f.Kind), Name: f.Name}
	refs := d.is.of(f)
	switch {
	case f.Kind == Certificate && refs.onlyCrtList():
		d.bundleChanges(op, &action{kind: newCertificate, file: f})
		return
	case f.Kind == Certificate && d.is.folder:
		op.Impact, op.Reason = ImpactReload, "a bind line reads its certificates from a folder"
	case refs.any():
		op.Impact, op.Reason = ImpactReload, "HAProxy reads files that it does not know yet at a reload"
	}
	d.add(rankFile, op, nil)
}

func (d *difference) fileGoes(f File) {
	op := Op{Action: Delete, Kind: string(f.Kind), Name: f.Name}
	refs := d.was.of(f)
	still := d.is.of(f)
	switch {
	case still.any():
		op.Impact, op.Reason = ImpactReload, "the configuration still refers to it"
	case f.Kind == Certificate && refs.onlyCrtList():
		op.Impact = ImpactRuntime
		d.add(rankFileGone, op, &action{kind: deleteCertificate, file: f})
		return
	case f.Kind == Certificate && d.was.folder:
		op.Impact, op.Reason = ImpactReload, "a bind line reads its certificates from a folder"
	}
	d.add(rankFileGone, op, nil)
}

func (d *difference) fileChanges(old, now File) {
	was, is := d.was.of(now), d.is.of(now)
	if now.Kind == Certificate && d.is.folder && d.was.folder {
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
	case was.only(references{patterns: true}) && is.only(references{patterns: true}):
		d.patternChanges(old, now)
		return
	case now.Kind == Certificate && (was.crt || was.inList):
		d.bundleChanges(op, &action{kind: updateCertificate, file: now})
		return
	case was.only(references{ca: true}) && is.only(references{ca: true}):
		d.bundleChanges(op, &action{kind: updateCA, file: now})
		return
	case was.only(references{crl: true}) && is.only(references{crl: true}):
		d.bundleChanges(op, &action{kind: updateCRL, file: now})
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

// bundleChanges adds the change of a file that a command carries as a whole.
func (d *difference) bundleChanges(op Op, do *action) {
	kind, field := op.Kind, ""
	switch do.kind {
	case updateCA:
		kind = "ca"
		if !fitsCommand(do.file) {
			field = "bundle"
		}
	case updateCRL:
		kind = "crl"
	}
	op.Impact, op.Reason = ImpactRuntime, d.target.whyNot(kind, op.Action, field)
	if op.Reason == "" && !fitsCommand(do.file) && do.kind != updateCA {
		op.Reason = tooBig
	}
	if op.Reason != "" {
		op.Impact, do = ImpactReload, nil
	}
	d.add(rankFile, op, do)
}

const tooBig = "the file does not fit into a runtime command"

// fitsCommand reports whether a file fits into one command. It leaves room for
// the path.
func fitsCommand(f File) bool { return len(f.Content) <= haproxyctl.MaxPayload-512 }

// references says how a configuration refers to a file.
type references struct {
	mapped  bool // by a map converter, or an ACL that reads a map
	ordered bool // by a converter that takes the first entry that matches
	crt     bool // by "crt"
	inList  bool // in a crt-list
	list    bool // by "crt-list"
	other   bool // in any other way

	patterns bool // by an ACL that reads patterns
	ca       bool // by "ca-file" or "ca-verify-file"
	crl      bool // by "crl-file"
}

func (r references) any() bool                  { return r != references{} && r != references{ordered: true} }
func (r references) only(these references) bool { return r == these }
func (r references) onlyCrtList() bool          { return r.inList && !r.crt && !r.other }

// referrers knows where a configuration speaks of some files.
type referrers struct {
	texts   []referrer // the main text first
	folder  bool       // a bind line may read all certificates of a folder
	cas     bool       // a ca-file may be a folder
	issuers bool       // certificates of issuers are read from a folder
}

// referrer is a text that can refer to files.
type referrer struct {
	kind   FileKind // of the file; "" for the main text
	text   string
	places map[string][]int // by the name of a file
	loose  map[string]bool  // files that HAProxy may read without their full name
}

// findReferences looks for the names of files, in the text and in the files
// that can refer to others. It looks for all names at once, so that the cost
// does not depend on how many there are.
func findReferences(c *Config, names map[string]bool) *referrers {
	r := &referrers{
		folder:  c.loadsFolder(),
		cas:     c.namesFolderAfter("ca-file") || c.namesFolderAfter("ca-verify-file"),
		issuers: strings.Contains(c.main, "issuers-chain-path"),
	}
	beside := namesBeside(names)
	add := func(kind FileKind, text string) {
		places, loose := findNames(text, names, beside)
		r.texts = append(r.texts, referrer{kind, text, places, loose})
	}
	add("", c.main)
	for _, f := range c.files {
		if f.Kind == CRTList || f.Kind == General {
			add(f.Kind, string(f.Content))
		}
	}
	return r
}

// findNames returns where in the text the names stand as whole words, comments
// excepted. A path is written as the template pleases, so any folder before
// the name will do: a reference too many is harmless.
func findNames(text string, names map[string]bool, beside map[string][]string) (found map[string][]int, loose map[string]bool) {
	found, loose = make(map[string][]int), make(map[string]bool)
	isPart := func(c byte) bool { return c == '.' || isNameRune(rune(c)) }
	for i := 0; i < len(text); i++ {
		if !isPart(text[i]) {
			continue
		}
		start := i
		for i < len(text) && isPart(text[i]) {
			i++
		}
		name := text[start:i]
		if names[name] && !inComment(text, start) {
			found[name] = append(found[name], start)
		}
		if len(beside) > 0 {
			stem, _ := splitExt(name)
			for _, other := range beside[stem] {
				loose[other] = loose[other] || other != name && !inComment(text, start)
			}
		}
	}
	return found, loose
}

// namesBeside lists, by the name without its extension, the files that HAProxy
// reads along with one of that name (configuration manual,
// "ssl-load-extra-files"), and modules of Lua.
func namesBeside(names map[string]bool) map[string][]string {
	beside := make(map[string][]string)
	for name := range names {
		switch stem, ext := splitExt(name); ext {
		case ".rsa", ".ecdsa", ".dsa", ".key", ".ocsp", ".issuer", ".sctl", ".lua":
			beside[stem] = append(beside[stem], name)
		}
	}
	return beside
}

func inComment(text string, at int) bool {
	return strings.HasPrefix(strings.TrimLeft(lineBefore(text, at), " \t"), "#")
}

// lineBefore returns the line at a place, up to there.
func lineBefore(text string, at int) string {
	return text[strings.LastIndexByte(text[:at], '\n')+1 : at]
}

// of says how the configuration refers to a file.
func (r *referrers) of(f File) references {
	var refs references
	refs.other = r.cas && f.Kind == CA || r.issuers && f.Kind != Map && f.Kind != CRTList
	for _, from := range r.texts {
		refs.other = refs.other || from.loose[f.Name]
		for _, at := range from.places[f.Name] {
			before, previous := leadOf(from.text, at)
			switch {
			case from.kind == "" && f.Kind != Certificate && f.Kind != CRTList && !isAbsolute(from.text, at):
				refs.other = true // the commands would know the file by another path
			case from.kind == "":
				refs.inMain(f.Kind, lineBefore(from.text, at), before, previous)
			case from.kind == CRTList && f.Kind == Certificate && previous == "" && before == "":
				refs.inList = true
			default:
				refs.other = true
			}
		}
	}
	return refs
}

// inMain notes a place in the main text.
func (r *references) inMain(kind FileKind, lead, before, previous string) {
	converter, isCall := callOf(before)
	isBundle := (kind == CA || kind == General) && before == ""
	switch {
	case previous == "crt" && kind == Certificate:
		r.crt = true
	case previous == "crt-list" && kind == CRTList:
		r.list = true
	case kind == Map && isCall && strings.HasPrefix(converter, "map"):
		r.mapped = true
		r.ordered = r.ordered || !unorderedMap(converter)
	case kind == Map && previous == "-f" && strings.Contains(lead, " -M "):
		r.mapped = true
	case kind == General && previous == "-f" && before == "" && !strings.Contains(lead, " -M "):
		r.patterns = true
	case isBundle && (previous == "ca-file" || previous == "ca-verify-file"):
		r.ca = true
	case isBundle && previous == "crl-file":
		r.crl = true
	default:
		r.other = true
	}
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

// isAbsolute reports whether the path whose last element starts at a place is
// absolute.
func isAbsolute(text string, at int) bool {
	lead := lineBefore(text, at)
	return strings.HasPrefix(lead[strings.LastIndexAny(lead, " \t\"'(,=@")+1:], "/")
}

// leadOf returns what stands before a path within its word, and the word before
// that; at is where the last element of the path starts.
func leadOf(text string, at int) (before, previous string) {
	lead := lineBefore(text, at)
	path := strings.LastIndexAny(lead, " \t\"'(,=@") + 1
	word := strings.LastIndexAny(lead[:path], " \t") + 1
	if words := strings.Fields(lead[:word]); len(words) > 0 {
		previous = words[len(words)-1]
	}
	return strings.TrimLeft(lead[word:path], `"'`), previous
}

// loadsFolder reports whether a bind line may read all certificates of a
// folder: whether a "crt" is followed by what is no certificate of the
// configuration.
func (c *Config) loadsFolder() bool {
	for word := range wordsAfter(c.main, "crt") {
		if _, ok := c.File(Certificate, word[strings.LastIndexByte(word, '/')+1:]); !ok {
			return true
		}
	}
	return false
}

// namesFolderAfter reports whether a keyword is followed by a path whose last
// element has no extension.
func (c *Config) namesFolderAfter(keyword string) bool {
	for word := range wordsAfter(c.main, keyword) {
		if !strings.HasPrefix(word, "@") && !strings.Contains(word[strings.LastIndexByte(word, '/')+1:], ".") {
			return true
		}
	}
	return false
}

// wordsAfter goes through the words that follow a keyword, without quotes.
func wordsAfter(text, keyword string) iter.Seq[string] {
	blank := func(c byte) bool { return c == ' ' || c == '\t' }
	return func(yield func(string) bool) {
		for at := 0; ; {
			i := strings.Index(text[at:], keyword)
			if i < 0 {
				return
			}
			start := at + i
			at = start + len(keyword)
			if start == 0 || !blank(text[start-1]) || at == len(text) || !blank(text[at]) {
				continue
			}
			fields := strings.Fields(firstLine(text[at:]))
			if len(fields) > 0 && !yield(strings.Trim(fields[0], `"'`)) {
				return
			}
		}
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
