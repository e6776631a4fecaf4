package dataplane

import (
	"errors"

	"github.com/hapticsdk/haptic/dataplane/internal/change"
	"github.com/hapticsdk/haptic/dataplane/internal/config"
	"github.com/hapticsdk/haptic/dataplane/internal/diff"
)

// SparePrefix begins the names of spare backends. A template declares them with the lines
// that new backends will have, and with disabled servers or none. A new backend takes a spare
// one in the running process, without a reload, if both have the same lines apart from name
// and servers. The spare gets the servers, and map entries whose value is the name of the new
// backend lead to it. The files have the right name from the start. HAProxy shows the right
// name in statistics, logs and be_name after its next reload, which makes all spares free
// again.
//
// A configuration with spares makes two promises. Requests find a backend by its whole name,
// in a rule or as the value of a map entry. And such a value means nothing else. A deleted
// backend stays in the process until the next reload, with its servers in maintenance. The
// following take a reload, and the plan says why:
//
//   - a rule that names the new backend;
//   - a value that holds the name and more;
//   - a backend for which no spare has the same lines;
//   - a backend of an owner that has spares, if no more than a sixteenth of all is free: the
//     last ones are for others. The owner is the name up to the first "_", without
//     capital letters and "-" before it;
//   - spares that come, go or change.
const SparePrefix = change.SparePrefix

// Diff compares two configurations. It returns the operations that lead from current to
// desired, in an order that is safe. It does no I/O. A nil current stands for an empty
// configuration. It fails only without a desired configuration.
//
// Diff compares the texts of sections first, so the cost follows the change. It ignores
// differences that HAProxy ignores: blanks, comments, quotes that are not needed, and the
// order of sections that say nothing about each other. If lines of a section differ, Diff
// compares them again in the order that the Dataplane API gives them. If the API would lose
// or change one of them, the text decides.
//
// The impact of an operation is what HAProxy 2.6 and later need:
//
//   - Servers change, come and go at runtime where the management manual (section 9.3, "set
//     server", "add server", "del server") allows it. [RuntimeChanges] lists all such changes
//     and what each of them takes.
//   - Diff shows a change of only the order of servers. It needs no reload unless the balance
//     depends on the order.
//   - A new backend takes a spare one of current, see [SparePrefix]. All of them count as
//     free. HAProxy 3.4 makes and deletes a backend at runtime if all its lines, except
//     servers, are those of a named defaults section.
//   - Entries of maps and crt-lists, and certificates, change at runtime if the running
//     HAProxy has loaded the file by its name.
//   - In a text with conditional blocks (.if) every change of a section takes a reload.
//   - A file that nothing refers to has no impact.
//   - All else takes a reload, and the reason says why.
//
// An operation that creates a thing comes before the operations that refer to it. One that
// deletes a thing comes after them. Rules go from the last to the first. The index of a line
// that comes or changes is its index in the desired section.
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
