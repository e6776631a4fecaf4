// Package place decides what a value may be where a template prints it.
//
// The text around a value says where the value stands: in an argument of a directive, in a
// sample fetch, in a key of a map. The compiler finds this place once. Each render checks
// the value for the place, and escapes or refuses it. A [Table] follows the text of a
// template, a [Site] escapes the values of one place, and [Check] checks the output as a
// whole.
//
//   - The words of HAProxy's language that are paths, names or numbers: directives.txt
//     (f is a path of a file), samples.txt, converters.txt, keywords.txt.
//   - A word made of a value and the text beside it: shape.go.
//   - The kind of a file, by its name: KindOf in kind.go.
//   - The allowed content of a word: the table readings in directives.go.
//   - Refusals and their reasons: rules.go (refusesFile for paths of files).
//   - The caller of these rules: escape.go (Site.Escape).
//   - The reader that follows a line to find the place: table.go, line.go, inner.go.
//
// docs/escaping.md lists the places for authors of templates.
package place
