// Package cases has tests that stand beside templates: which resources there are,
// and what must be made of them. [Parse] has the format. A [Runner] runs cases, before
// settings take effect or in a pipeline.
package cases
