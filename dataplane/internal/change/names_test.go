package change

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	var none *Names
	require.Equal(t, "shop", none.InProcess("shop"))
	require.Equal(t, "shop", none.Value("shop"))
	require.Equal(t, "shop", none.Backend("shop"))
	require.False(t, none.Taken("haptic-spare-0"))
	require.Empty(t, none.List())
	require.Same(t, none, none.After([]Do{&SetServer{}}))

	take := func(backend, process string) Do {
		return &TakeBackend{Name: Name{Backend: backend, Process: process}}
	}
	leave := func(backend, process string) Do {
		return &LeaveBackend{Name: Name{Backend: backend, Process: process, Gone: &Gone{Text: "backend " + backend + "\n"}}}
	}
	n := none.After([]Do{take("shop", "haptic-spare-0"), take("blog", "haptic-spare-1"), leave("old", "old")})
	require.Empty(t, none.List(), "names do not change")
	require.Equal(t, "haptic-spare-0", n.InProcess("shop"))
	require.Equal(t, "haptic-spare-0", n.Value("shop"))
	require.Equal(t, "blog", n.Backend("haptic-spare-1"))
	require.True(t, n.Taken("haptic-spare-1"))
	require.False(t, n.Taken("old"))
	require.Equal(t, 1, n.GoneCount())
	require.Equal(t, n, NewNames(n.List()))

	// One that is gone is known by its name, and nothing leads to it.
	gone := n.After([]Do{leave("shop", "haptic-spare-0")})
	require.Equal(t, "haptic-spare-0", gone.InProcess("shop"))
	require.Equal(t, "shop", gone.Value("shop"))
	require.True(t, gone.Taken("haptic-spare-0"), "requests for it may wait yet")
	require.Equal(t, n, gone.After([]Do{take("shop", "haptic-spare-0")}))

	// One that was loaded is as before when it comes back.
	_, known := n.After([]Do{take("old", "old")}).Of("old")
	require.False(t, known)

	// The process has deleted one.
	require.Equal(t, []Name{{Backend: "blog", Process: "haptic-spare-1"}, {Backend: "shop", Process: "haptic-spare-0"}}, n.Without([]string{"old", "never"}).List())
	require.True(t, n.Has("old"), "names do not change")
	require.Empty(t, none.Without([]string{"old"}).List())
}
