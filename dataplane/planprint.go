package dataplane

import (
	"fmt"
	"strings"

	"github.com/hapticsdk/haptic/dataplane/internal/diff"
	"github.com/hapticsdk/haptic/internal/printable"
)

var impactNames = [...]string{ImpactNone: "none", ImpactStart: "start", ImpactRuntime: "runtime", ImpactReload: "reload"}

// String returns "none", "start", "runtime" or "reload".
func (i Impact) String() string {
	if i < 0 || int(i) >= len(impactNames) {
		return fmt.Sprintf("impact(%d)", int(i))
	}
	return impactNames[i]
}

// MarshalText returns what String returns, or an error for an unknown value.
func (i Impact) MarshalText() ([]byte, error) {
	if i < 0 || int(i) >= len(impactNames) {
		return nil, fmt.Errorf("unknown impact %d", int(i))
	}
	return []byte(impactNames[i]), nil
}

// UnmarshalText reads what String returns.
func (i *Impact) UnmarshalText(text []byte) error {
	for v, name := range impactNames {
		if name == string(text) {
			*i = Impact(v)
			return nil
		}
	}
	return fmt.Errorf("unknown impact %q", text)
}

// Empty reports whether nothing differs. A nil plan is empty.
func (p *Plan) Empty() bool { return p == nil || len(p.Ops) == 0 }

// Impact returns the greatest impact of all operations.
func (p *Plan) Impact() Impact {
	worst := ImpactNone
	if p != nil {
		for i := range p.Ops {
			worst = max(worst, p.Ops[i].Impact)
		}
	}
	return worst
}

// Summary describes the plan in one phrase, such as "2 to create, 1 to update, 0 to delete;
// runtime, no reload".
func (p *Plan) Summary() string {
	if p.Empty() {
		return "no changes"
	}
	var create, update, del int
	for i := range p.Ops {
		switch p.Ops[i].Action {
		case Create:
			create++
		case Delete:
			del++
		default:
			update++
		}
	}
	return fmt.Sprintf("%d to create, %d to update, %d to delete; %s", create, update, del, p.Impact().phrase())
}

func (i Impact) phrase() string {
	switch i {
	case ImpactNone:
		return "nothing that runs changes"
	case ImpactStart:
		return "HAProxy starts"
	case ImpactRuntime:
		return "runtime, no reload"
	default:
		return "one reload"
	}
}

// String prints the plan as a tree: one subject per line, its changes below it, and the
// summary at the end. The output is stable and holds no secrets.
func (p *Plan) String() string {
	if p.Empty() {
		return "No changes.\n"
	}
	var b strings.Builder
	for i := range p.Ops {
		p.Ops[i].print(&b)
	}
	fmt.Fprintf(&b, "Plan: %s.\n", p.Summary())
	return printable.Text(b.String())
}

// fieldLine is the Field of a [Change] that is a whole line.
const fieldLine = diff.Line

var actionMarks = map[Action]string{Create: "+", Update: "~", Delete: "-"}

func (o *Op) print(b *strings.Builder) {
	fmt.Fprintf(b, "%s %s", actionMarks[o.Action], o.Kind)
	switch {
	case o.Name != "":
		b.WriteString(" " + o.Name)
	case o.Index != nil:
		fmt.Fprintf(b, " %d", *o.Index)
	}
	if o.Parent != "" {
		b.WriteString(" in " + o.Parent)
	}
	fmt.Fprintf(b, " (%s", o.Impact)
	if o.Reason != "" {
		b.WriteString(": " + o.Reason)
	}
	b.WriteString(")\n")
	for _, c := range o.Changes {
		c.print(b, o.hasFields())
	}
}

// hasFields reports whether the fields of the subject have names. For all other subjects, the
// changes are words of a line.
func (o *Op) hasFields() bool {
	switch o.Kind {
	case "server", "map entry", "acl entry", "crt-list entry", string(Map), string(CRTList):
		return true
	}
	return false
}

func (c Change) print(b *strings.Builder, field bool) {
	switch {
	case c.Field != fieldLine && (field && !strings.Contains(c.Field, " ") || strings.HasPrefix(c.Field, "order of ")):
		fmt.Fprintf(b, "    %s: %s -> %s\n", c.Field, orNone(c.Old), orNone(c.New))
		return
	case c.Field != fieldLine:
		fmt.Fprintf(b, "    %s %s -> %s\n", c.Field, orNone(c.Old), orNone(c.New))
		return
	}
	if c.Old != "" {
		fmt.Fprintf(b, "    - %s\n", c.Old)
	}
	if c.New != "" {
		fmt.Fprintf(b, "    + %s\n", c.New)
	}
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}
