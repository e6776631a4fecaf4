package dataplane_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// A file that somebody spoilt stops neither DryRun nor Sync.
func TestLocalSpoiltFiles(t *testing.T) {
	h := newHost(t)
	one, two := h.server("127.0.0.2"), h.server("127.0.0.3")
	last := h.sync(h.web("server a " + one))
	require.NoError(t, os.WriteFile(filepath.Join(h.dir, "haproxy.cfg"), []byte("global\x00"), 0o640))
	desired := h.config(h.web("server a " + two))
	plan, err := h.local.DryRun(t.Context(), desired)
	require.NoError(t, err)
	require.Equal(t, dataplane.ImpactRuntime, plan.Impact(), "%s", plan)
	result := h.sync(desired.Main())
	require.Equal(t, plan.String(), result.Plan.String())
	require.Zero(t, result.Reloads)
	require.Equal(t, last.WorkerPID, result.WorkerPID)
	_, body := h.get("shop.test", "/")
	require.Equal(t, two, body)
	current, err := h.local.Current(t.Context())
	require.NoError(t, err)
	require.Equal(t, desired.Main(), current.Main())
}

// The limit of a process goes down and up again at runtime, and beyond what it
// started with at a reload.
func TestLocalGlobalLimit(t *testing.T) {
	h := newHost(t)
	text := func(limit string) string {
		return strings.Replace(h.web("server a 127.0.0.1:1"), "maxconn 100", "maxconn "+limit, 1)
	}
	last := h.sync(text("100"))
	last = h.atRuntime(last, text("50"))
	require.Contains(t, h.ask("show info"), "\nMaxconn: 50\n")
	last = h.atRuntime(last, text("90"))
	require.Contains(t, h.ask("show info"), "\nMaxconn: 90\n")
	require.Regexp(t, `web,FRONTEND,,,\d+,\d+,90,`, h.ask("show stat"), "a frontend without a limit of its own has that of the process")
	result := h.sync(text("101"))
	require.Equal(t, 1, result.Reloads)
	require.NotEqual(t, last.WorkerPID, result.WorkerPID)
	h.atRuntime(result, text("100"))
}

// What a map has that it should not is found, and ends in a reload.
func TestLocalReadsMapsBack(t *testing.T) {
	h := newHost(t)
	path := h.local.Layout().Path(dataplane.Map, "m.map")
	text := h.web("server a 127.0.0.1:1", "http-request set-header X %[path,map("+path+")]")
	file := func(content string) dataplane.File {
		return dataplane.File{Kind: dataplane.Map, Name: "m.map", Content: []byte(content)}
	}
	h.sync(text, file("a 1\nb 2\n"))
	h.ask("add map " + path + " stray 9")
	result := h.sync(text, file("a 1\nb 3\n"))
	require.Contains(t, result.Fallback, "other entries")
	require.Equal(t, 1, result.Reloads)
	require.NotContains(t, h.ask("show map "+path), "stray")
}
