package render

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/templating"
)

// reads says how a configuration reads files whose values are escaped by their names,
// and of what kind they must be. The last group is the path.
var reads = []struct { // constant in effect
	hint  string // a line without it has none
	line  *regexp.Regexp
	kinds []templating.Kind
	name  string // that such a file has
}{
	{"map_reg", regexp.MustCompile(`\bmap_reg(?:m|_[a-z]+)?\(["'\\ ]*([^,)"'\\ ]+)`), []templating.Kind{templating.RegMap}, "*_reg.map"},
	{"map", regexp.MustCompile(`\bmap(?:_(?:str|beg|sub|dir|dom|end|int|ip)(?:_[a-z]+)?)?\(["'\\ ]*([^,)"'\\ ]+)`), []templating.Kind{templating.Map}, "*.map"},
	{"reg", regexp.MustCompile(`(?:_reg|-m\s+reg)\b[^{}]*\s-f\s+["']?([^\s"']+)`), []templating.Kind{templating.RegList}, "*_reg.lst"},
	{"-f", regexp.MustCompile(`\s-f\s+["']?([^\s"']+)`), []templating.Kind{templating.List, templating.Map, templating.RegList}, "*.lst"},
	{"lf-file", regexp.MustCompile(`\blf-file\s+["']?([^\s"']+)`), []templating.Kind{templating.Format}, "*_lf.html"},
	{"crt-list", regexp.MustCompile(`\bcrt-list\s+["']?([^\s"']+)`), []templating.Kind{templating.CRTList}, "*.txt"},
}

// misread finds a file of ours that the configuration reads for something else than
// its name says: its values are escaped for what that is.
func (r *run) misread(entry string, texts ...string) error {
	if !isMain(entry) {
		return nil
	}
	for _, text := range texts {
		for _, read := range reads {
			if !strings.Contains(text, read.hint) {
				continue
			}
			for line := range strings.Lines(text) {
				if !strings.Contains(line, read.hint) || strings.HasPrefix(strings.TrimSpace(line), "#") {
					continue
				}
				for _, found := range read.line.FindAllStringSubmatch(line, -1) {
					file := found[len(found)-1]
					if kind := templating.KindOf(file); r.isOurs(file) && !slices.Contains(read.kinds, kind) {
						return &templating.Error{Entry: entry, File: entry, Message: fmt.Sprintf("%q reads %s, whose values are escaped for %s: a file that is read so has a name like %s",
							strings.TrimSpace(line), file, kind, read.name)}
					}
				}
			}
		}
	}
	return nil
}

// isOurs reports whether a path is in a folder of the layout.
func (r *run) isOurs(file string) bool {
	return slices.ContainsFunc([]dataplane.FileKind{dataplane.Map, dataplane.General, dataplane.CRTList}, func(kind dataplane.FileKind) bool {
		return r.Layout.Dir(kind) == path.Dir(file)
	})
}
