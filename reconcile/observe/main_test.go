package observe_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hapticsdk/haptic/eventbus"
	"github.com/hapticsdk/haptic/reconcile/observe"
)

// newObserver is observe.New of what is no mistake.
func newObserver(t testing.TB, bus *eventbus.Bus, s observe.Subject, log *slog.Logger) *observe.Observer {
	t.Helper()
	o, err := observe.New(bus, s, log)
	require.NoError(t, err)
	return o
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
