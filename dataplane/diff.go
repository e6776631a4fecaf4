package dataplane

import (
	"errors"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/diff"
)

// SparePrefix begins the names of spare backends. A template declares them with the
// lines that new backends will have, and with disabled servers or none. A new backend
// that has the lines of a spare one but for its name and its servers takes that in the
// running process, without a reload: the spare gets the servers, and map entries whose
// value is the name of the new backend lead to it. The files have the right name from
// the start. So has HAProxy, in statistics, logs and be_name, after its next reload,
// which makes all spares free again.
//
// A configuration with spares promises that requests find a backend by its whole name,
// in a rule or as the value of a map entry, and that such a value means nothing else.
// A backend that goes stays in the process until the next reload, with its servers in
// maintenance. These take a reload, and the plan says why: a rule that names the new
// backend, a value that holds the name and more, a backend without a spare of its
// lines, and spares that come, go or change.
const SparePrefix = change.SparePrefix

// Diff compares two configurations and says what has to happen to get from
// current to desired, in the order in which it is safe to do. It does no I/O.
// A nil current stands for an empty configuration. It fails only without a desired
// configuration.
//
// Sections are compared by their text first, so that the cost follows the change.
// What HAProxy reads the same way is no difference: blanks, comments, quotes that
// are not needed, and the order of sections that say nothing about each other. Lines of
// a section that differ are compared once more
// in the order that the Dataplane API gives them, unless it would lose or change
// one of them. Where it would, the text decides.
//
// The impact of an operation is what HAProxy 2.6 and later need:
//
//   - Servers change, come and go at runtime where the management manual
//     (section 9.3, "set server", "add server", "del server") allows it;
//     [RuntimeChanges] lists all such changes and what each of them takes.
//   - The order of servers alone is shown, but needs no reload where the balance
//     does not depend on it.
//   - A new backend takes a spare one of current, see [SparePrefix]. All of them count
//     as free. HAProxy 3.4 makes and deletes backends whose lines, but for servers, are
//     all those of a defaults section with a name.
//   - Entries of maps and crt-lists, and certificates, change at runtime where
//     the running HAProxy has loaded the file by its name.
//   - In a text with conditional blocks (.if) every change of a section takes a
//     reload.
//   - A file that nothing refers to has no impact.
//   - All else takes a reload, and the reason says why.
//
// What is referred to comes before what refers to it and goes after it. Rules go
// from the last to the first; the index of a line that comes or changes is that in
// the desired section.
func Diff(current, desired *Config) (*Plan, error) {
	if desired == nil {
		return nil, errors.New("no desired configuration to compare with")
	}
	from := config.Empty()
	if current != nil {
		from = current.inner
	}
	return planOf(diff.Compare(from, desired.inner, change.Target{})), nil
}
