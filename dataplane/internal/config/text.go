package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// MaxLine is the number of bytes from which [New] refuses a line: the parser of the Dataplane
// API silently drops everything from the first line of 64 KiB on.
const MaxLine = 64 << 10

// check returns the first reason why [New] refuses the text.
func (x *Index) check() Refusals {
	if x.size == 0 {
		return Refusals{{What: "the text is empty"}}
	}
	if !strings.HasSuffix(x.List[len(x.List)-1].Text, "\n") {
		return Refusals{{Line: x.LineCount() + 1, What: "the last line does not end in a line feed"}}
	}
	if x.sound {
		return nil
	}
	i := slices.IndexFunc(x.List, func(s *Section) bool { return !s.sound })
	return refuseLines(x.List[i].Text, x.Line(i))
}

// refuseLines returns the first forbidden line or character in a text that begins at that
// line.
func refuseLines(main string, line int) Refusals {
	start := 0
	for at := 0; at < len(main); at++ {
		for at < len(main)-1 && main[at] >= ' ' && main[at] != 0x7f { // the usual case
			at++
		}
		switch c := main[at]; {
		case c >= ' ' && c != 0x7f || c == '\t':
		case c == '\n':
			if n := at + 1 - start; n >= MaxLine {
				return Refusals{{Line: line, What: fmt.Sprintf("line %d: %d bytes are too many, a line must be shorter than %d", line, n, MaxLine)}}
			}
			line, start = line+1, at+1
		case c == '\r' && strings.HasPrefix(main[at+1:], "\n"):
		default: // C0 controls, and DEL
			return Refusals{{Line: line, What: fmt.Sprintf("line %d: control character %q in column %d", line, c, at+1-start)}}
		}
	}
	return nil
}

// CheckFileName reports why a file of that kind cannot have that name. Package dataplane
// documents it and FileName.
func CheckFileName(kind FileKind, name string) error {
	if r := checkFileName(kind, name); r != nil {
		return r
	}
	return nil
}

func checkFileName(kind FileKind, name string) *Refusal {
	refuse := func(why string) *Refusal { return refuseFile(kind, name, why) }
	stem, ext := SplitExt(name)
	switch {
	case name == "":
		return refuse("the name is empty")
	case len(name) > 255:
		return refuse("the name is longer than 255 bytes")
	case stem == "":
		return refuse("the name starts with a dot")
	}
	if i := strings.IndexFunc(stem+strings.TrimPrefix(ext, "."), func(r rune) bool { return !IsNameRune(r) }); i >= 0 {
		return refuse("only letters, digits, _ and - may stand in a name, and one dot before the extension")
	}
	if want := extensions[kind]; (kind == Map || kind == CRTList) && ext != want {
		return refuse("the name must end in " + want)
	}
	return nil
}

// FileName makes a name for a file of that kind from any text.
func FileName(kind FileKind, text string) string {
	stem := strings.Map(func(r rune) rune {
		if IsNameRune(r) {
			return r
		}
		return '_'
	}, text)
	return stem + extensions[kind]
}

// extensions has the extensions that [FileName] appends.
var extensions = map[FileKind]string{Map: ".map", Certificate: ".pem", CA: ".pem", CRTList: ".txt", General: ".txt"}

// SplitExt cuts a file name before its last dot.
func SplitExt(name string) (stem, ext string) {
	ext = path.Ext(name)
	return strings.TrimSuffix(name, ext), ext
}

// IsNameRune reports whether a storage keeps a character in the name of a file.
func IsNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

// GeneralKinds returns the CA files and crt-lists by name. They share a folder with the
// general files, so only the text tells them apart.
func GeneralKinds(main string) map[string]FileKind {
	kinds := make(map[string]FileKind)
	for line := range strings.Lines(main) {
		words := strings.Fields(line)
		for i := range len(words) - 1 {
			name := path.Base(words[i+1])
			switch words[i] {
			case "ca-file", "ca-verify-file":
				kinds[name] = CA
			case "crt-list":
				if CheckFileName(CRTList, name) == nil { // otherwise it counts as a general file, which takes a reload
					kinds[name] = CRTList
				}
			}
		}
	}
	return kinds
}
