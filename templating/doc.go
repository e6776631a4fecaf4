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
// render and import; files in "snippets" are included, see below. Every rendered or imported file needs an extension;
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
//     backslash. $ does not, since it expands only inside double quotes. An
//     empty value that would be an argument of its own is refused, since the
//     next one would take its place; so it is between quotes, since HAProxy takes
//     an empty argument for the end of the line, and leaves out the rest of it.
//   - Inside double quotes ", \ and $ get a backslash. In the name of an
//     environment variable, such as behind "$", Compile refuses a value.
//   - Inside single quotes a single quote is refused.
//   - In a comment the value stands as it is.
//   - A rule that ends with "if" or "unless", as a branch or a macro may write one,
//     is refused, whoever wrote it: HAProxy would take it for one without a condition.
//
// What HAProxy reads inside an argument counts too. A table of directives, from
// the manuals of 2.6 and 3.2, says what each argument is:
//
//   - a log-format string (http-request set-header, return lf-string, redirect
//     location, log-format and others): % is doubled. Behind a lone %, Compile
//     refuses a value.
//   - an argument of a sample fetch or converter, str(...) or map_str(...), also
//     inside of %[...]: quoted where it has commas, parentheses, quotes or
//     spaces. Where nothing would be all names, req.hdr(), it is refused. A value
//     cannot be the name of a fetch, converter or service, nor
//     of a variable of the environment, env(...) and setenv, nor lead to one of
//     the process, proc.
//   - a regular expression (path_reg, -m reg, replace-path, regsub): quoted, so
//     that it matches itself alone; what sanitize_regex returns is not quoted
//     again where it is shown by itself. raw(s) is for an expression. In its
//     replacement backslashes are doubled.
//   - a pattern of an ACL: a value that would be a flag, such as -f, is refused
//     unless -- or another pattern stands before it, and so is "}". A value
//     cannot be what follows -m.
//   - a name (of a section, a server, an ACL, a variable, a header) has the
//     characters of a name; an address no "$", "@", "," or path; a value that
//     is a part of a file's path neither a slash nor "..".
//   - the first word of a line: what HAProxy knows as a keyword is refused, and
//     what becomes one with the text or the values beside it; in the further lines
//     of a macro any part of one, but digits.
//   - the name of an option, where the table knows the line and the option before
//     it: every value is refused ("server s 192.0.2.1 {{ v }}"). The value of an
//     option is one ("weight {{ v }}"), and so is the method of balance and what
//     else the table leaves to values.
//   - a number, a size or a time where HAProxy takes a sample expression as well
//     (set-timeout server {{ v }}): nothing that begins with a letter.
//   - a pattern right behind a sample expression, { req.fhdr(a) {{ v }} }: not the
//     name of a converter, since HAProxy would apply it; a flag such as -m str, or
//     --, before the pattern makes every value one. Between numbers gt, ge, eq, le
//     and lt are refused too.
//   - what HAProxy writes into lines of HTTP: no space in a URI or a method, no
//     question mark in a path, nothing in a cookie that would be an attribute; in a
//     realm quotes and backslashes get a backslash more.
//   - an address: no range of ports, nor a port counted from that of the client, nor
//     nothing, which would be all addresses or the one that the client asked for.
//   - an argument of which the table knows nothing: %, parentheses and commas
//     are refused, and the words of conditions (if, unless, or, ||).
//
// Values beside each other are held to what they may make together: {{ a }}{{ b }}
// cannot be a flag, a part of a condition, or nothing. Where they make the first
// word of a line, it is read once the line is written: a keyword is refused.
// A list stays a list: in "groups {{ v }}" or "alpn {{ v }}" a value has as many
// elements as it has commas.
//
// In the text of a macro, which may be shown anywhere, only what stands behind
// a directive in the macro itself is known. Where the text begins with a value,
// it is refused if it is shown as an option or makes the keyword of a line.
//
// Entries named *.map and *.txt (crt-lists) have neither quotes nor escapes,
// so what cannot be written is refused: white space anywhere but in the value
// of a map; in a crt-list brackets as well; at the start of a line an empty
// value and one that starts with #; and lines of a map of more than 16383
// bytes, which HAProxy would read as two. Error pages and other files with
// extensions of their own (.http, .html, .json, .lua, .pem, .crt, .key) get
// values as they are.
//
// Entries named *.lst and *.acl are lists of patterns, one on each line, for -f.
// A value may have spaces there, but neither begin with one or with #, nor be
// nothing.
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
// # Functions
//
// Go functions of the host ([Options.Globals]) are called alike. One whose first
// parameter is a context.Context gets that of the render, one whose first
// parameter is a native.Env of Scriggo gets that; templates leave it out.
//
// Every function fails with an [*Error] at the position of its call, which names
// the function and, where there is one, the path and what was found. A path goes
// through maps, lists, unstructured objects and structs, whose fields have their
// names in JSON or in Go: "spec.rules[0].host", "metadata.annotations['a.b/c']".
// A field that a struct does not have is always an error. Lists may be of any
// type; where one is returned as []any, the elements are what they were.
// What goes over a map does so in the order of its keys; the language's own loop
// over a map has no order.
//
// Text. The operator s contains "x" is the language's own.
//
//	lower(s string) string
//	upper(s string) string
//	title(s string) string                    the first letter of each word in upper case
//	trim(s string) string                     without white space at both ends
//	strip(s string) string                    the same
//	trimPrefix(s, prefix string) string
//	trimSuffix(s, suffix string) string
//	split(s, sep string) []string
//	join(list any, sep string) string         of all that tostring takes
//	replace(s, old, new string) string        all of them
//	hasPrefix(s, prefix string) bool
//	hasSuffix(s, suffix string) bool
//	includes(s, part string) bool
//	indent(text any, n int) any               n spaces before each line that is not empty; also of a macro's text
//	sprintf(format string, a ...any) string   without widths of "*"
//	basename(s string) string                 what is behind the last slash
//
// Patterns: Go's regular expressions, and those of [path.Match], in which "*"
// does not match a slash.
//
//	regex_search(s, pattern string) bool
//	regex_replace(s, pattern, replacement string) string    $1 is the first group
//	sanitize_regex(s string) string           quotes what means something in one
//	glob_match(list any, pattern string) []string           of strings
//
// Conversions. Texts of numbers are decimal. A value with methods has the text
// that it is in JSON, where that is a text or a number (a quantity, a port, a time
// of Kubernetes), else that of its MarshalText, String or Error; an object of
// Kubernetes as a whole has none.
//
//	tostring(v any) string                    as v would be shown, not escaped
//	toint(v any) int                          fails on a fraction
//	tofloat(v any) float64
//	ceil(v any) int
//	floor(v any) int
//	abs(n int) int
//	min(a, b int) int
//	max(a, b int) int
//	seq(n int) []int                          0 to n-1; seq(from, to) and seq(from, to, step), without to; at most 1048576
//
// Encodings and hashes, these in lower-case hexadecimal digits. What is read has
// at most 4 MiB (8 MiB with the aliases of YAML written out), 100 values in each
// other and one document; whole numbers are int64, others float64.
//
//	b64encode(s string) string
//	b64decode(s string) string
//	to_json(v any) string                     fields sorted
//	toJson(v any) string                      the same
//	from_json(s string) any
//	to_yaml(v any) string                     by the names in JSON
//	from_yaml(s string) any
//	md5(s string) string
//	sha1(s string) string
//	sha256(s string) string
//
// Lists. The criteria of a sort are paths, each with ":desc" or not; elements
// with nothing there come last. The tests of selectattr are "eq", "ne", "lt",
// "le", "gt", "ge", "in" and "contains".
//
//	sort(list []string) []string
//	unique(list []string) []string            the first of equal ones
//	reverse(list any) []any
//	sort_by(list any, criteria ...any) []any
//	order_by(list any, criteria ...any) []int               where they stand: list[i] has its type
//	unique_by(list any, path string) []any    the first of those with the same text there
//	selectattr(list any, path string, test ...any) []any    with something not empty there; or: path, "eq", value
//	rejectattr(list any, path string, test ...any) []any    the others
//	map_by(list any, path string) []any       what each has there, or nil
//	group_by(list any, path string) []Group   see [Group], sorted by key
//	index_by(list any, path string) map[string]any          the first with each text there
//	count_by(list any, path string) map[string]int
//
// Objects. Those with a type in their name give its zero value where nothing or
// null is, and fail on another type.
//
//	dig(obj any, path string, default ...any) any           fails where nothing is and there is no default
//	digString(obj any, path string) string
//	digInt(obj any, path string) int
//	digFloat(obj any, path string) float64
//	digBool(obj any, path string) bool
//	digList(obj any, path string) []any
//	digMap(obj any, path string) map[string]any
//	has(obj any, path string) bool            something that is not null
//	keys(m any) []string                      sorted
//	sortedKeys(m any) []string                the same
//	merge(maps ...any) map[string]any         of equal keys the last
//	coalesce(values ...any) any               the first that is not nil, zero or empty
//
// The render.
//
//	include(name string, data ...any)         the text of a snippet
//	include_all(pattern string, data ...any)  the texts of all that match, by name, each on lines of its own
//	first_seen(key ...any) bool               true once a key in each render of an entry
//	debug(values ...any)                      gives them to [Options.Debug]: {% debug(x) %}
//	fail(message string)                      ends the render
//	raw(s string)                             writes s as it is
//
// Snippets are the files below "snippets", by their path there without the
// extension; an entry includes those of its own kind, by which values are escaped.
// Two of one name and kind, such as a.cfg and a.conf, are refused by Compile.
//
// owner(obj) is a statement, {% owner(ing) %}: what follows belongs to obj, until
// the next owner of the same loop, macro or file, or its end. The normal render
// ignores it. Elements of loops that are Kubernetes objects are owners by
// themselves.
//
// Variables that every template has, unless the host has others of the name:
// data (any), templateSnippets ([]string, sorted) and shared (see [Shared]).
//
// # Who wrote it
//
// [Engine.RenderTraced] says of each line of an output which line of a template
// wrote it, and for which Kubernetes objects. An [*Error] of a render has them
// too, and one render reports all values that are refused; see [Errors].
// The normal render pays for none of
// them: they are templates compiled a second time, when first used.
//
// # Bounds
//
// A context that ends stops a template that loops; a function that is being
// called, such as a sort of a million elements, ends first. Output is bounded
// ([Options.MaxOutput]), and what macros write in memory by eight times as
// much; macros and functions may call each other 256 deep. A text that replace,
// join or indent makes has at most 64 MiB. Beyond is [ErrTooLarge].
//
// A file has at most 4 MiB, and 128 KiB of code between two delimiters.
//
// Nothing else is bounded, so that a hostile author can use up the memory of the
// process: templates are as trusted as the configuration that they write.
//
// [Scriggo]: https://scriggo.com/templates
package templating
