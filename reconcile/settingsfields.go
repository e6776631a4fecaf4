package reconcile

import (
	"cmp"
	"reflect"
	"strings"
)

// settingsField is what the tags of a field of the settings say.
type settingsField struct {
	name, doc, enum string
	min, max        string
	required        bool
	index           []int
	typ             reflect.Type
}

// settingsFields lists the fields of a struct of the settings, in the order in
// which they are declared.
func settingsFields(t reflect.Type) []settingsField {
	var fields []settingsField
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(cmp.Or(f.Tag.Get("yaml"), f.Tag.Get("json")), ",")
		if !f.IsExported() || name == "" || name == "-" {
			continue
		}
		fields = append(fields, settingsField{
			name: name, doc: f.Tag.Get("doc"), enum: f.Tag.Get("enum"), min: f.Tag.Get("min"), max: f.Tag.Get("max"),
			required: f.Tag.Get("required") != "", index: f.Index, typ: f.Type,
		})
	}
	return fields
}

// nearest finds the name that was meant: at most two letters off, and fewer than
// half of them.
func nearest(word string, names []string) string {
	best, least := "", 3
	for _, name := range names {
		d := editDistance(strings.ToLower(word), strings.ToLower(name), least)
		if d < least && 2*d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// editDistance counts the bytes to insert, delete or replace, and stops counting
// at most.
func editDistance(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], most)
}
