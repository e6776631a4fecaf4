package haproxyctl

import (
	"bufio"
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A command whose answer came too late ends its connection: the answer would count for the
// next command.
func TestConnLateAnswer(t *testing.T) {
	asked, late := make(chan struct{}), make(chan struct{})
	conn, err := Dial(t.Context(), listen(t, func(conn net.Conn) {
		_, _ = conn.Write([]byte("\n> "))
		in := bufio.NewScanner(conn)
		in.Scan() // prompt
		in.Scan()
		close(asked)
		<-late
		_, _ = conn.Write([]byte("the first answer\n> "))
	}))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, err = conn.Exec(ctx, "show info")
	require.ErrorIs(t, err, context.Canceled)
	close(late)
	answer, err := conn.Exec(t.Context(), "show errors")
	require.ErrorContains(t, err, "an earlier command on this connection failed")
	require.Empty(t, answer)
}
