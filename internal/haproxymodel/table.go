package haproxymodel

// Kind describes one kind of section.
type Kind struct {
	Name     string  // as in the text: "backend", "log-forward"
	Path     string  // path element of the Dataplane API v3 below .../configuration: "backends"
	Singular bool    // there is one, without a name: global and traces
	Children []Child // in the order in which the API wants them made
}

// Child describes one collection of children of a kind of section.
type Child struct {
	Field string // of the model: "HTTPRequestRuleList"
	Kind  string // as people say it: "http-request rule", "server"
	Path  string // path element of the Dataplane API v3, "" when the section is written as a whole
	Key   string // field of the child's model that names it: "Name"; "" for children by position
	Words string // first words of the lines that make it: "http-request"
	Keys  string // JSON name of Key
}

// ByName reports whether the children have names that tell them apart; all
// others are told apart by position.
func (c *Child) ByName() bool { return c.Key != "" }

// Kinds returns the descriptors of all kinds of sections. The result is shared
// by all callers, which must not change it.
func Kinds() []*Kind { return nil }

// KindOf returns the descriptor of a kind by its name in the text, or nil.
func KindOf(name string) *Kind { return nil }

// Secret reports whether a field of a child of that kind ("" for the section
// itself), named as in [Field], holds what must not be shown.
func Secret(section, child, field string) bool { return false }
