// Package place decides what a value may be where a template prints it.
//
// The text of a template around a value says where the value stands: in an argument
// of a directive, in a sample fetch, in a key of a map. That is found when the
// template is compiled. At each render the value is then checked for that place, and
// escaped or refused. A [Table] follows the text of a template, a [Site] escapes the
// values of one place, and [Check] looks at the output as a whole.
//
//   - Which words of HAProxy's language are paths, names or numbers: directives.txt
//     (f is a path of a file), samples.txt, converters.txt, keywords.txt.
//   - What a word is together with what stands beside it: shape.go.
//   - What a file is for, by its name: KindOf in kind.go.
//   - What such a word may have in it: the table readings in directives.go.
//   - What is refused, and why: rules.go (refusesFile for paths of files).
//   - Who asks for it: escape.go (Site.Escape).
//   - How a line is followed to find the place: table.go, line.go, inner.go.
//
// docs/escaping.md lists the places for authors of templates.
package place
