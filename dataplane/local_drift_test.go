package dataplane_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// A check for drift finds what the process was told by others, and repairs it without
// a reload.
func TestLocalRepairsTheProcess(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	path := h.local.Layout().Path(dataplane.Map, "m.map")
	text := strings.Replace(h.web("server a "+one, "server b "+two+" weight 10 disabled"), "backend shop\n",
		"backend shop\n  http-request set-header X %[path,map("+path+")]\n", 1)
	m := dataplane.File{Kind: dataplane.Map, Name: "m.map", Content: []byte("/a a\n/b b\n")}
	last := h.sync(text, m)
	for command, op := range map[string]string{
		"disable server shop/a":                       "server a",
		"set server shop/a addr 127.0.0.9 port 99":    "server a",
		"set server shop/b weight 77":                 "server b",
		"set server shop/b state ready":               "server b",
		"set map " + path + " /a other":               "map entry /a",
		"del map " + path + " /b":                     "map entry /b",
		"add map " + path + " /theirs something else": "map entry /theirs",
	} {
		h.ask(command)
		var plan *dataplane.Plan
		var err error
		eventually(t, command, func() bool { // from HAProxy 2.9 on a task changes addresses
			plan, err = h.local.DryRun(t.Context(), h.config(text, m))
			return err == nil && strings.Contains(plan.String(), op)
		})
		require.Equal(t, dataplane.ImpactRuntime, plan.Impact(), "%s: %s", command, plan)
		last = h.atRuntime(last, text, m)
		require.Equal(t, plan.String(), last.Plan.String())
		plan, err = h.local.DryRun(t.Context(), h.config(text, m))
		require.NoError(t, err)
		require.True(t, plan.Empty(), "%s: %s", command, plan)
	}
	require.Equal(t, map[string]int{one: 3}, h.answers(3))
}

// An address and a map entry never wait for a reload that something else needs.
func TestLocalWithoutReload(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	first := h.sync(h.web("server a " + one))
	mixed := h.config(h.web("timeout server 7s", "server a "+two, "server more "+one+" weight 1") + "\nbackend coming\n  server s1 192.0.2.1:80\n")
	r, err := h.local.Sync(t.Context(), mixed, dataplane.WithoutReload())
	require.NoError(t, err)
	require.Zero(t, r.Reloads)
	require.Equal(t, first.WorkerPID, r.WorkerPID)
	require.Contains(t, r.Left.String(), "+ backend coming")
	require.NotContains(t, r.Left.String(), "server a")
	require.Contains(t, h.answers(20), two)
	stored, err := h.local.Current(t.Context())
	require.NoError(t, err)
	require.Contains(t, stored.Main(), two, "it is stored, too: a HAProxy that starts anew has it")
	require.NotContains(t, stored.Main(), "backend coming")

	r, err = h.local.Sync(t.Context(), mixed, dataplane.WithoutReload())
	require.NoError(t, err)
	require.Zero(t, r.Commands)
	r, err = h.local.Sync(t.Context(), mixed)
	require.NoError(t, err)
	require.Equal(t, 1, r.Reloads)
	require.True(t, r.Left.Empty())
}

// The first start is a start and no reload, in plan and result.
func TestLocalStartIsNoReload(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	config := h.config(h.web("server a " + h.server("127.0.0.2")))
	plan, err := h.local.DryRun(t.Context(), config)
	require.NoError(t, err)
	require.Equal(t, dataplane.ImpactStart, plan.Impact())
	require.Contains(t, plan.Summary(), "HAProxy starts")
	r, err := h.local.Sync(t.Context(), config)
	require.NoError(t, err)
	require.True(t, r.Started)
	require.Zero(t, r.Reloads)
	require.NotContains(t, r.String(), "1 reload")
}
