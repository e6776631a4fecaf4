// Package jsonpath compiles the field paths that name index keys and ignored
// fields of Kubernetes objects, such as
//
//	metadata.namespace
//	metadata.labels['kubernetes.io/service-name']
//	{.spec.rules[*].host}
//
// It is the subset of JSONPath that has one obvious meaning: fields, quoted
// keys, list positions and the wildcard. Filters, ranges, unions, negative
// positions and recursive descent are errors from [Compile], so a mistake shows
// when a watcher is made and not as an index that stays empty.
//
// A [Path] is bound to what it reads with [Path.Bind]: a Go type whose fields
// are found once by their json tags (a misspelt field is an error), or the
// nested maps of an unstructured object.
package jsonpath
