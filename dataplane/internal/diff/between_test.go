package diff

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What stands between the lines that two texts have in common has all lines that only
// the second has.
func TestChangedLines(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	text := func() []byte {
		var b strings.Builder
		for range r.IntN(400) {
			fmt.Fprintf(&b, "%s\n", strings.Repeat("x", r.IntN(40)))
		}
		return []byte(b.String())
	}
	for range 100 {
		start, end := text(), text()
		old, now := bytes.Join([][]byte{start, text(), end}, nil), bytes.Join([][]byte{start, text(), end}, nil)
		_, got, head, end := changedLines(old, now)
		require.Equal(t, string(now), string(head)+string(got)+string(end))
		lines := map[string]int{}
		for line := range bytes.Lines(now) {
			lines[string(line)]++
		}
		for line := range bytes.Lines(old) {
			lines[string(line)]--
		}
		for line := range bytes.Lines(got) {
			lines[string(line)]--
		}
		for line, n := range lines {
			if n > 0 {
				t.Fatalf("%q is new, and not in %q", line, got)
			}
		}
	}
}
