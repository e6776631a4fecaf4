// Package imported declares events that others publish.
package imported

type Plan struct{ Steps []string }

//eventbus:immutable a report, made once
type Report struct{ Lines []string } // want Report:"immutable"

type Rendered struct {
	Revision string
	Plan     *Plan
	Report   *Report
	// Files by name.
	//eventbus:immutable replaced as a whole
	Files map[string]string // want Files:"immutable"
}
