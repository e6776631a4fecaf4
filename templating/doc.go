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
// render and import. Every rendered or imported file needs an extension;
// {{ render "_site.cfg" default "" }} is for one that need not exist.
//
// # Values and where they stand
//
// Every shown value is escaped, or refused, for the place where it stands, as
// the text before it on its line tells. The author of a template does nothing
// for it. In haproxy.cfg, and in all entries that have no rules of their own
// (configuration manual, section 2.2, "Quoting and escaping"):
//
//   - Unquoted, a value stays one argument: space, #, ", ' and \ get a
//     backslash. $ does not, since it expands only inside double quotes (and
//     in addresses, whatever stands around it: check those that come from
//     others). An empty value writes nothing: where an argument may be empty,
//     put the value in double quotes.
//   - Inside double quotes ", \ and $ get a backslash. In the name of an
//     environment variable, such as behind "$", Compile refuses a value.
//   - Inside single quotes a single quote is refused.
//   - In a comment the value stands as it is.
//
// Entries named *.map and *.txt (crt-lists) have neither quotes nor escapes,
// so what cannot be written is refused: white space anywhere but in the value
// of a map; in a crt-list brackets as well; at the start of a line an empty
// value and one that starts with #; and lines of a map of more than 16383
// bytes, which HAProxy would read as two. Error pages and other files with
// extensions of their own (.http, .html, .json, .lua, .pem, .crt, .key) get
// values as they are.
//
// Everywhere control characters are refused, tabs and line feeds included, and
// what is not UTF-8. A refusal is an [*Error] with the position of the
// expression and the value, shortened.
//
// Numbers and booleans are written as they are, pointers followed; a nil value
// is an error, and so is one without a text, such as a list.
//
// The text of a macro or a rendered file is not escaped again: the values in
// it have been. Inside quotes it is refused when it has characters that mean
// something there, outside when it leaves quotes open or ends in a backslash,
// and in a comment when it has line feeds. Where branches or loops leave it open whether a value stands
// inside quotes, Compile says so.
//
// raw(s) writes a string as it is, and refuses nothing. It is the one way out,
// and easy to search for.
//
// What HAProxy reads inside an argument is not the escaper's: "%" starts a
// variable in a log-format string (http-request set-header and others), and
// commas and parentheses delimit the arguments of sample expressions.
//
// # Functions
//
// Text: lower, upper, trim (white space at both ends), split(s, sep),
// join(list, sep), replace(s, old, new), hasPrefix, hasSuffix, includes(s,
// part), indent(text, n), sprintf, abbreviate(s, n). The operator "contains"
// is the language's own: s contains "x".
//
// Regular expressions (Go's): regex_search(s, pattern) reports a match,
// regex_replace(s, pattern, replacement), sanitize_regex(s) quotes.
//
// Encodings: b64encode, b64decode, toJson, sha256.
//
// Lists: sort, unique, coalesce(values...) for the first that is not empty,
// sortedKeys(map).
//
// Unstructured objects: dig(obj, "spec.rules[0].host") fails, with the path,
// when nothing is there; digString, digInt, digList and digMap give the zero
// value then and fail only on another type; has(obj, path). A key with dots is
// written metadata.annotations['a.b/c'].
//
// fail(message) ends the render with an [*Error] at its position.
//
// # Bounds
//
// A context that ends stops a template that loops. Output is bounded
// ([Options.MaxOutput]), and what macros write in memory by eight times as
// much; macros may call each other 256 deep. A string that a template itself
// makes longer and longer is not bounded.
//
// [Scriggo]: https://scriggo.com/templates
package templating
