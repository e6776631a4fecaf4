package claims

import (
	"iter"
	"strings"

	"github.com/hapticsdk/haptic/dataplane"
)

// Entries yields the keys and values of a map file of a configuration. An earlier process
// deployed it: with the owners that it had, a restart takes no host from a namespace. Lines
// that are no entries are skipped. Without the file there are none.
func Entries(deployed *dataplane.Config, name string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		file, _ := deployed.File(dataplane.Map, name)
		for line := range strings.Lines(string(file.Content)) {
			words := strings.Fields(line)
			if len(words) == 2 && !strings.HasPrefix(line, "#") && !yield(words[0], words[1]) {
				return
			}
		}
	}
}
