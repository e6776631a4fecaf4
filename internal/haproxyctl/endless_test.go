package haproxyctl

import (
	"bytes"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// An answer that does not end is given up.
func TestConnEndlessAnswer(t *testing.T) {
	chunk := bytes.Repeat([]byte("x"), 1<<16)
	conn, err := Dial(t.Context(), listen(t, func(conn net.Conn) {
		_, err := conn.Write([]byte("\n> "))
		for err == nil {
			_, err = conn.Write(chunk)
		}
	}))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	require.Equal(t, maxAnswer, conn.most)
	conn.most = 1 << 20
	_, err = conn.Exec(t.Context(), "show map")
	require.ErrorContains(t, err, "larger than 1048576 bytes")
	require.Less(t, cap(conn.buf), 4<<20)
}
