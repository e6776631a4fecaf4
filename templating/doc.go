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
// The extension of an entry tells its syntax: *.map and *.txt (crt-lists) have
// neither quotes nor escapes, *.lst and *.acl are lists of patterns, error pages,
// Lua and PEM files (.http, .html, .json, .lua, .pem, .crt, .key) get values as
// they are. All others are configurations.
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
// Every function fails with an [*Error] at the position of its call, which names
// the function and, where there is one, the path and what was found. A path goes
// through maps, lists, unstructured objects and structs, whose fields have their
// names in JSON or in Go: "spec.rules[0].host", "metadata.annotations['a.b/c']".
// A field that a struct does not have is always an error. Lists may be of any
// type; where one is returned as []any, the elements are what they were.
// Functions go over a map in the order of its keys; the language's own loop
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
// too, and one render reports all values that are refused; see [Errors]. The normal
// render pays for neither: both are templates compiled a second time, when first used.
//
// # Bounds
//
// A context that ends stops a template that loops; a function that is being
// called, such as a sort of a million elements, ends first. Output is bounded
// ([Options.MaxOutput]), and what macros write in memory by eight times as
// much; macros and functions may call each other 256 deep. A text that replace,
// regex_replace, join or indent makes has at most 64 MiB. Beyond is [ErrTooLarge].
//
// A file has at most 4 MiB, and 128 KiB of code between two delimiters.
//
// Nothing else is bounded, so that a hostile author can use up the memory of the
// process: templates are as trusted as the configuration that they write.
//
// [docs/escaping.md]: https://github.com/hapticsdk/haptic/blob/main/docs/escaping.md
// [Scriggo]: https://scriggo.com/templates
package templating
