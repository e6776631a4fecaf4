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

// TestWholeLines: no line comes in two parts, in as few writes as there are reads, and one
// without an end fills no memory.
func TestWholeLines(t *testing.T) {
	t.Parallel()
	var writes []string
	w := &wholeLines{to: writerFunc(func(b []byte) { writes = append(writes, string(b)) })}
	for _, part := range []string{"a\nb\nc", "d", "e\nf\n", "g\n", "h"} {
		n, err := w.Write([]byte(part))
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	require.Equal(t, []string{"a\nb\n", "cde\nf\n", "g\n"}, writes)
	for range 100 {
		_, err := w.Write(bytes.Repeat([]byte("x"), maxLine/2))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(w.part), maxLine)
}

type writerFunc func(b []byte)

func (f writerFunc) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}
