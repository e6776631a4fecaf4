package haproxymodel

// Action is what happens to a section or a child.
type Action int

const (
	Create Action = iota + 1
	Update
	Delete
)

// String returns "create", "update" or "delete".
func (a Action) String() string {
	return [...]string{"", "create", "update", "delete"}[a]
}

// Difference is one step from an old section to a new one.
type Difference struct {
	Action Action
	Child  *Child // nil for the fields of the section itself, whose Action is Update
	Name   string // of a child that has one: its key, or the name of an ACL; else ""

	// Positions of a child by position, from 0: OldIndex in the old section (-1
	// for Create), NewIndex in the new one (-1 for Delete). -1 for all others.
	OldIndex, NewIndex int

	Fields []Field // what changed; for Create all fields that are set, for Delete none
	Old    any     // the model of the child, or of the section's own fields, before; nil for Create
	New    any     // and after; nil for Delete
}

// Body returns New in the JSON of the Dataplane API v3.
func (d *Difference) Body() ([]byte, error) { return nil, nil }

// Field is one field of a model with its value as text.
type Field struct {
	Name     string // JSON names, joined by dots: "cond_test", "balance.algorithm", "error_files.0.code"
	Old, New string // "" for absent
	Secret   bool   // the values must not be shown
}

// Diff returns what makes new from old in the order of the descriptor table:
// the section's own fields, then its children. Children by position are
// aligned by their longest common subsequence. Metadata, which are comments,
// make no difference. Both must be of one kind and without error.
//
// What the models do not hold is told by [DiffLines].
func Diff(old, new *Section) []Difference { return nil }

// LineDifference is a line that one of two sections has and that no
// [Difference] explains.
type LineDifference struct {
	Action Action // Create, Delete; Update for a line that only moved
	Line   Line   // in the new section, in the old one for Delete
}

// DiffLines returns the differences between two sections that [Diff] cannot
// see: lines that the models do not hold, and the order of lines where it means
// something but the models do not keep it (servers, error files, ...). When Diff
// and DiffLines are both empty, the sections mean the same. For sections with
// an error it compares all lines.
func DiffLines(old, new *Section) []LineDifference { return nil }

// Apply makes the differences, which [Diff] returned for s and another section,
// in the model of s.
func (s *Section) Apply(differences []Difference) error { return nil }
