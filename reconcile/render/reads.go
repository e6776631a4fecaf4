package render

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
	"github.com/hapticsdk/haptic/templating"
)

// read is one way in which a configuration reads files.
type read struct {
	hint  string // a line without it reads no such file
	line  *regexp.Regexp
	kinds []templating.Kind
	name  string // what such a file is called
}

// reads lists how a configuration reads files whose values are escaped by their names, and
// which kinds the files must have. The group is the path, or flags with paths behind -f.
var reads = []read{ // constant in effect
	{"map_reg", regexp.MustCompile(`\bmap_reg(?:m|_[a-z]+)?\(["'\\ ]*([^,)"'\\ ]+)`), []templating.Kind{templating.RegMap}, "*_reg.map"},
	{"map", regexp.MustCompile(`\bmap(?:_(?:str|beg|sub|dir|dom|end|int|ip)(?:_[a-z]+)?)?\(["'\\ ]*([^,)"'\\ ]+)`), []templating.Kind{templating.Map}, "*.map"},
	{
		"reg",
		regexp.MustCompile(`(?:\{|\bacl\s+\S+)\s+(?:[\w.]+_reg(?:[(,]\S*)?|[^{}]*?\s-m\s+reg)((?:\s+-[inM]|\s+-[mfu]\s+\S+)+)`),
		[]templating.Kind{templating.RegList},
		"*_reg.lst",
	},
	{"-f", listed, []templating.Kind{templating.List, templating.Map, templating.RegList}, "*.lst"},
	{"lf-file", regexp.MustCompile(`\blf-file\s+["']?([^\s"']+)`), []templating.Kind{templating.Format}, "*_lf.html"},
	{"crt-list", regexp.MustCompile(`\bcrt-list\s+["']?([^\s"']+)`), []templating.Kind{templating.CRTList}, "*.txt"},
}

var listed = regexp.MustCompile(`\s-f\s+["']?([^\s"']+)`) // constant in effect

// files returns the paths that a line reads.
func (r read) files(line string) (files []string) {
	for _, found := range r.line.FindAllStringSubmatch(line, -1) {
		if flags := listed.FindAllStringSubmatch(found[1], -1); flags != nil {
			for _, flag := range flags {
				files = append(files, flag[1])
			}
			continue
		}
		files = append(files, found[1])
	}
	for i, file := range files { // HAProxy 3.0 has opt@ and virt@
		files[i] = file[strings.IndexByte(file, '@')+1:]
	}
	return files
}

// misread finds the files of ours that a text of the configuration reads in another way than
// their names say. Their values are escaped for the use in the name. A value can look like
// such a line, so each error has the owners of its line.
func (r *run) misread(ctx context.Context, entry string, item any, s string) error {
	if !isMain(entry) {
		return nil
	}
	p := piece{entry: entry}
	p.each, _ = r.itemsOf(entry)
	o := &origins{run: r}
	var errs []error
	for _, read := range reads {
		if !strings.Contains(s, read.hint) {
			continue
		}
		n := 0
		for line := range strings.Lines(s) {
			n++
			if !strings.Contains(line, read.hint) || strings.HasPrefix(strings.TrimSpace(line), "#") {
				continue
			}
			for _, file := range read.files(line) {
				kind := templating.KindOf(file)
				if !r.isOurs(file) || slices.Contains(read.kinds, kind) {
					continue
				}
				from, _ := o.inSpan(ctx, span{piece: &p, item: item, text: &text{string: s}}, n)
				errs = append(
					errs,
					&templating.Error{Entry: p.entry, File: from.File, Line: from.Line, Column: from.Column, Text: from.Text, Owners: from.Owners,
						Message: fmt.Sprintf("%.80q reads %s, whose values are escaped for %s: a file that is read so has a name like %s",
							strings.TrimSpace(line), file, kind, read.name)},
				)
				if len(errs) == maxItemErrors {
					return joined(errs)
				}
			}
		}
	}
	return joined(errs)
}

// isOurs reports whether a path is in a folder of the layout.
func (r *run) isOurs(file string) bool {
	return slices.ContainsFunc([]dataplane.FileKind{dataplane.Map, dataplane.General, dataplane.CRTList}, func(kind dataplane.FileKind) bool {
		return r.Layout.Dir(kind) == path.Dir(file)
	})
}
