package panics

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGuard(t *testing.T) {
	err := errors.New("an error")
	require.Equal(t, err, Guard(func() error { return err }))
	var e *Error
	require.ErrorAs(t, Guard(func() error { panic("oops") }), &e)
	require.EqualError(t, e, "panic: oops")
	require.Contains(t, string(e.Stack), "TestGuard")
}
