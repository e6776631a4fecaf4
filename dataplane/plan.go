package dataplane

import "github.com/hapticsdk/haptic/dataplane/internal/change"

// Impact says what a change costs the running HAProxy.
type Impact int

// Impacts, the cheapest first.
const (
	ImpactNone    Impact = iota // the running HAProxy does not notice: a file that nothing refers to
	ImpactStart                 // no HAProxy runs: it starts with the configuration
	ImpactRuntime               // applied to the running process, no reload
	ImpactReload                // HAProxy must read its configuration again
)

// Action is what happens to the subject of an [Op].
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// Change is one difference within the subject of an [Op]. Field is the field of a server, or
// the words that both versions of a line begin with, such as "timeout client". It is "line"
// if a whole line comes or goes. Old is empty if the field is new, New if the field goes. A
// secret reads "(secret)" in both.
type Change struct {
	Field string `json:"field"`
	Old   string `json:"old,omitempty"`
	New   string `json:"new,omitempty"`
}

// Op is one difference between two configurations.
type Op struct {
	Action Action `json:"action"`
	Kind   string `json:"kind"`             // first word of a line or a section, or "map entry", "certificate", ...
	Parent string `json:"parent,omitempty"` // where the subject lives: "backend shop_web_80", "map hosts.map"
	Name   string `json:"name,omitempty"`

	// Index is the position of a child that has one, such as a rule or an ACL, counted from 0
	// as the Dataplane API counts. For a child that goes it is the position in the current
	// section, for all others in the desired one. Nil for a subject that has a name instead.
	Index *int `json:"index,omitempty"`

	Changes []Change `json:"changes,omitempty"`
	Impact  Impact   `json:"impact"`
	Reason  string   `json:"reason,omitempty"` // why it takes a reload; empty otherwise
}

// Plan lists the differences between two configurations in an order that is safe to apply.
// The zero value is the empty plan.
type Plan struct {
	Ops []Op `json:"ops"`
}

func planOf(steps []change.Step) *Plan {
	p := &Plan{Ops: make([]Op, len(steps))}
	for i := range steps {
		s := &steps[i]
		p.Ops[i] = Op{
			Action: Action(s.Action), Kind: s.Kind, Parent: s.Parent, Name: s.Name, Index: s.Index,
			Impact: Impact(s.Impact), Reason: s.Reason,
		}
		for _, f := range s.Fields {
			p.Ops[i].Changes = append(p.Ops[i].Changes, Change{Field: f.Name, Old: f.Old, New: f.New})
		}
	}
	return p
}
