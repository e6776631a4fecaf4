// Package templating renders HAProxy configuration from templates that cannot
// be injected into.
//
// Templates are [Scriggo]'s: Go's expressions and types, with "{{ value }}",
// "{% for _, i := range list %}", macros, imports, extends and rendered files.
// They are compiled once, all together, against the types of the host's
// functions and variables; a misspelt field of a Kubernetes object is an error
// of [Compile] with file, line, column and the text of that line.
//
//	engine, err := templating.Compile(os.DirFS("templates"), &templating.Options{
//		Vars: map[string]any{"ingresses": []*networkingv1.Ingress(nil)},
//	})
//	...
//	text, err := engine.Render(ctx, "haproxy.cfg", map[string]any{"ingresses": list})
//
// Files whose name starts with "_" are not entries; they are for others to
// render and import; files in "snippets" are included, see below. Every rendered
// or imported file needs an extension; {{ render "_site.cfg" default "" }} is for one
// that need not exist.
//
// # Values and where they stand
//
// Every shown value is escaped, or refused, for the place where it stands, as
// the text before it on its line tells. The author of a template does nothing
// for it. A table of HAProxy's directives says what HAProxy reads in each place: a
// value stays one argument, one name, one pattern, one part of a path. It becomes
// neither an option, a flag, a condition nor the keyword of a line. The rules by
// place are in [docs/escaping.md].
//
// The name of an entry tells what HAProxy reads it for; see [KindOf]. *.cfg and *.conf
// are configurations. *.map and *.txt (crt-lists) have neither quotes nor escapes, *.lst
// and *.acl are lists of patterns; *_reg.map, *_reg.lst and *_reg.acl have regular
// expressions, *_lf.html and the like are log-format strings. Error pages, Lua and PEM
// files (.http, .html, .json, .lua, .pem, .crt, .key) get values as they are. In all
// others a value has letters, digits, ".", "-", "_" and ":" only.
//
// Everywhere control characters are refused, tabs and line feeds included, and
// what is not UTF-8. A refusal is an [*Error] with the position of the
// expression and the value, shortened. A nil value is an error, and so is one
// without a text, such as a list.
//
// The text of a macro or a rendered file is not escaped again: the values in
// it have been.
//
// raw(s) writes a string as it is, and refuses nothing. It is the one way out,
// and easy to search for.
//
// # Functions
//
// Go functions of the host ([Options.Globals]) are called alike. One whose first
// parameter is a context.Context gets that of the render, one whose first
// parameter is a native.Env of Scriggo gets that; templates leave it out.
//
// The standard functions, for text, patterns, numbers, encodings, lists and objects,
// are in [docs/functions.md]. Every function fails with an [*Error] at the position of
// its call.
//
// Snippets are the files below "snippets", by their path there without the
// extension; an entry includes those of its own kind, by which values are escaped.
// Two of one name and kind, such as a.cfg and a.conf, are refused by Compile.
//
// owner(obj) is a statement, {% owner(ing) %}: what follows belongs to obj, until
// the next owner of the same loop, macro or file, or its end. The normal render
// ignores it. Elements of loops that are Kubernetes objects are owners by
// themselves. The object that a shown value was read from comes before those: that of
// c in {{ c.Data["k"] }}, also through variables, macros and functions.
//
// Variables that every template has, unless the host has others of the name:
// data (any), templateSnippets ([]string, sorted) and shared (see [Shared]).
//
// # Who wrote it
//
// [Engine.RenderTraced] says of each line of an output which line of a template
// wrote it, and for which Kubernetes objects. An [*Error] of a render has them
// too, and one render reports all values that are refused; see [Errors]. The normal
// render pays for neither: both are templates compiled a second time, when first used.
//
// # Bounds
//
// A context that ends stops a template within about half a second, also in a sort or a
// regular expression. Output is bounded ([Options.MaxOutput]), and what macros write in
// memory by eight times as much. All that a render takes is bounded together, with what
// it remembers of lines: [Options.MaxMemory]. Macros and functions may call each other
// 256 deep. A text or a list that a template puts together has at most 64 MiB, and make
// takes a length of up to 65,536; docs/functions.md has the bounds of functions. Beyond
// is [ErrTooLarge].
//
// A file has at most 4 MiB, and 128 KiB of code between two delimiters. Statements and
// expressions lie at most 1000 deep in each other. Compile reads at most 524,288
// statements and expressions. It counts one in a loop once per turn. A constant text has at most 1 MiB. Templates
// have no arrays, no types of lists, and no keys in lists.
//
// Not bounded are functions of the host, the comparison of structs that have each other
// as fields, and values that entries share.
//
// # Where things are
//
// The way of a template through the folders below internal: rewrite adds calls to the
// tree of Scriggo, place decides what a value may be where it stands (rules.go refuses;
// refusesFile: what is part of a file's path), origin says which line and resource wrote
// what, funcs has the functions.
//
// [docs/functions.md]: https://github.com/hapticsdk/haptic/blob/main/docs/functions.md
// [docs/escaping.md]: https://github.com/hapticsdk/haptic/blob/main/docs/escaping.md
// [Scriggo]: https://scriggo.com/templates
package templating
