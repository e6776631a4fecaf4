// Package templating renders HAProxy configuration from templates that cannot
// be injected into.
//
// Templates are written in [Scriggo]: expressions and types of Go, with "{{ value }}",
// "{% for _, i := range list %}", macros, imports, extends and rendered files. [Compile]
// checks all of them once against the types of the host's functions and variables. It
// reports a misspelt field of a Kubernetes object with file, line, column and the text of
// that line.
//
//	engine, err := templating.Compile(os.DirFS("templates"), &templating.Options{
//		Vars: map[string]any{"ingresses": []*networkingv1.Ingress(nil)},
//	})
//	...
//	text, err := engine.Render(ctx, "haproxy.cfg", map[string]any{"ingresses": list})
//
// A file whose name starts with "_" is not an entry: other files render or import it.
// Templates include files in "snippets", see below. Every rendered or imported file needs
// an extension. {{ render "_site.cfg" default "" }} renders a file that may be missing.
//
// # Values and where they stand
//
// The engine escapes or refuses every shown value for the place where it stands. The text
// before the value on its line tells the place. The author of a template does nothing for
// it. A table of HAProxy's directives says how HAProxy reads each place: a value stays one
// argument, one name, one pattern, one part of a path. It never becomes an option, a flag,
// a condition or the keyword of a line. The rules by place are in [docs/escaping.md].
//
// The name of an entry tells how HAProxy uses the file; see [KindOf]. *.cfg and *.conf are
// configurations. *.map and *.txt (crt-lists) have neither quotes nor escapes, *.lst and
// *.acl are lists of patterns; *_reg.map, *_reg.lst and *_reg.acl have regular expressions,
// *_lf.html and the like are log-format strings. Error pages, Lua and PEM files (.http,
// .html, .json, .lua, .pem, .crt, .key, .crl ...) get values as they are. In all other files a value
// has letters, digits, ".", "-", "_" and ":" only.
//
// The engine refuses control characters (tabs and line feeds included) and invalid UTF-8
// everywhere. A refusal is an [*Error] with the position of the expression and the value,
// shortened. A nil value is an error. A value without a text, such as a list, is one too.
//
// The text of a macro or a rendered file is not escaped again: its values are escaped
// already.
//
// raw(s) writes a string as it is, and refuses nothing. It is the only way around the
// rules, and easy to search for. regex(s) checks a regular expression of a tenant who is not
// trusted, and writes it where HAProxy reads one; see package regex.
//
// # Functions
//
// Templates call Go functions of the host ([Options.Globals]) like standard ones. If the
// first parameter is a context.Context, the function gets the context of the render. If it
// is a native.Env of Scriggo, it gets that. Templates leave this argument out.
//
// The standard functions, for text, patterns, numbers, encodings, lists and objects,
// are in [docs/functions.md]. Every function fails with an [*Error] at the position of
// its call.
//
// Snippets are the files below "snippets". The name of a snippet is its path there without
// the extension. An entry can include the snippets of its own kind, because the kind
// decides the escaping. Compile refuses two snippets of one name and kind, such as a.cfg
// and a.conf.
//
// owner(obj) is a statement, {% owner(ing) %}: the text behind it belongs to obj, until the
// next owner of the same loop, macro or file, or its end. The normal render ignores it. A
// Kubernetes object that is the element of a loop is an owner by itself. The object that a
// shown value comes from takes precedence over these: c in {{ c.Data["k"] }}, also through
// variables, macros and functions.
//
// Every template has the variables data (any), templateSnippets ([]string, sorted) and
// shared (see [Shared]), unless the host uses the name for something else.
//
// # Origins
//
// [Engine.RenderTraced] tells, for each line of an output, which line of a template wrote
// it and for which Kubernetes objects. An [*Error] of a render has both too, and one render
// reports all refused values; see [Errors]. The normal render does not pay for this: the
// engine compiles a second, traced template when it first needs one.
//
// # Bounds
//
// When its context ends, a template stops within about half a second, also in a sort or a
// regular expression. [Options.MaxOutput] bounds the output; macros may write eight times
// as much in memory. [Options.MaxMemory] bounds all memory of a render, with its notes
// about lines. Macros and functions may call each other 256 deep. A text or a list that a
// template puts together has at most 64 MiB, and make takes a length of up to 65,536.
// docs/functions.md has the bounds of functions. A render beyond a bound fails with
// [ErrTooLarge].
//
// A file has at most 4 MiB, and 128 KiB of code between two delimiters. Statements and
// expressions nest at most 1000 deep. Compile walks at most 524,288 statements and
// expressions, the body of a loop again until it knows all places. A constant text has at
// most 1 MiB. Templates have no arrays, no named list types, and no keys in lists.
//
// Functions of the host, comparisons of structs nested in each other, and values that
// entries share are not bounded.
//
// # Where things are
//
// A template passes through the folders below internal. rewrite adds calls to Scriggo's
// tree. place decides which values may stand in a place; rules.go refuses (refusesFile: in
// the path of a file). origin finds the template line and the resource behind each output
// line. funcs has the functions.
//
// [docs/functions.md]: https://github.com/hapticsdk/haptic/blob/main/docs/functions.md
// [docs/escaping.md]: https://github.com/hapticsdk/haptic/blob/main/docs/escaping.md
// [Scriggo]: https://scriggo.com/templates
package templating
