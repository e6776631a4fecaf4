// Package limits bounds what one namespace, and all together, take of everything that is finite.
//
//   - A [Table] has the limits: rows with a name, a default and a value. A flag sets them by
//     name, and a page lists them.
//   - A [Budget] shares a limit among the items that ask for it. The first in an [Order] get it.
//   - A [Quota] divides a [Bound] among namespaces that together ask for more than there is.
//   - [Refuse] reports what is not served to the object whose owner can fix it, and [Refusals]
//     collects the reports. One namespace cannot fill the list.
package limits

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/hapticsdk/haptic/internal/strictyaml"
)

// Limit is a row of a table of limits.
type Limit struct {
	Name  string
	Value *int // 0: the default
	Usual int  // the default
	What  string
}

// Table is a list of limits. The values belong to the caller.
type Table []Limit

// Set takes "name=number", the value of a flag. The number is 1 or larger.
func (t Table) Set(text string) error {
	name, number, _ := strings.Cut(text, "=")
	for _, row := range t {
		if row.Name != name {
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return fmt.Errorf("%s: %q is not a number above 0", name, number)
		}
		*row.Value = n
		return nil
	}
	var names []string
	for _, row := range t {
		names = append(names, row.Name)
	}
	if meant := strictyaml.Nearest(name, names); meant != "" {
		return fmt.Errorf("there is no limit %q: did you mean %s? -h lists all", name, meant)
	}
	return fmt.Errorf("there is no limit %q: want name=number; -h lists all", name)
}

// Usage lists all limits with their defaults, one a line.
func (t Table) Usage() string {
	var text strings.Builder
	for _, row := range t {
		fmt.Fprintf(&text, "%s=%d\t%s\n", row.Name, row.Usual, row.What)
	}
	return text.String()
}

// UseDefaults replaces zeros by the defaults.
func (t Table) UseDefaults() {
	for _, row := range t {
		*row.Value = cmp.Or(*row.Value, row.Usual)
	}
}

// InForce returns all limits by name, with the defaults in place of zeros.
func (t Table) InForce() map[string]int {
	all := map[string]int{}
	for _, row := range t {
		all[row.Name] = cmp.Or(*row.Value, row.Usual)
	}
	return all
}

// Figure prints 12345 as "12,345".
func Figure(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Short cuts a user's text to the 80 bytes that a message can show.
func Short(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
