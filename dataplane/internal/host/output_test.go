package host

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// A HAProxy that prints without a line feed fills no memory.
func TestOutputWithoutLines(t *testing.T) {
	t.Parallel()
	longest := 0
	o := &output{tell: func(line string) { longest = max(longest, len(line)) }}
	for range 100 {
		_, err := o.Write(bytes.Repeat([]byte("x"), 1<<20))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(o.part), maxLine)
	require.LessOrEqual(t, longest, maxLine)
	require.LessOrEqual(t, len(o.last()), keptLines+1)
	_, err := o.Write([]byte("\nfine\n"))
	require.NoError(t, err)
	require.Equal(t, "fine", o.last()[len(o.last())-1])
}
