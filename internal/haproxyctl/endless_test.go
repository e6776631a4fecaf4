package haproxyctl

import (
	"bytes"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// An answer that does not end is given up.
func TestConnEndlessAnswer(t *testing.T) {
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	path := listen(t, func(conn net.Conn) {
		for err := error(nil); err == nil; {
			_, err = conn.Write(chunk)
		}
	})
	_, err := Dial(t.Context(), path)
	require.ErrorContains(t, err, "larger than 134217728 bytes")
}
