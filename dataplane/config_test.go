package dataplane_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"context"

	"github.com/hapticsdk/haptic/dataplane"
)

func TestNewConfigRefuses(t *testing.T) {
	t.Parallel()
	file := func(kind dataplane.FileKind, name string) []dataplane.File {
		return []dataplane.File{{Kind: kind, Name: name, Content: []byte("x")}}
	}
	for _, tt := range []struct {
		name, main string
		files      []dataplane.File
		want       []string
	}{
		{"nothing", "", nil, []string{"the text is empty"}},
		{"no end", "global", nil, []string{"does not end in a line feed"}},
		{"a control character", "global\n  x\x01\n", nil, []string{`line 2: control character '\x01' in column 4`}},
		{"a lone carriage return", "global\r\na\rb\n", nil, []string{`line 2: control character '\r' in column 2`}},
		{"delete", "\x7f\n", nil, []string{"line 1: control character"}},
		{"a long line", "global\n" + strings.Repeat("x", (64<<10)-1) + "\n", nil, []string{"line 2: 65536 bytes are too many"}},
		{"bad files", "global\n", append(file("photo", "x.txt"), file(dataplane.Map, "x.txt")...),
			[]string{`unknown kind "photo"`, "must end in .map"}},
		{"a file twice", "global\n", append(file(dataplane.Map, "a.map"), file(dataplane.Map, "a.map")...), []string{"given twice"}},
		{"two files at one path", "global\n", append(file(dataplane.CA, "a.txt"), file(dataplane.General, "a.txt")...),
			[]string{"a file of kind ca has the same path"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := dataplane.NewConfig(tt.main, tt.files...)
			require.ErrorIs(t, err, dataplane.ErrInvalidConfig)
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
			require.False(t, dataplane.Retryable(err))
		})
	}
	_, err := dataplane.NewConfig("a\tb\r\n"+strings.Repeat("x", (64<<10)-2)+"\n", append(file(dataplane.Map, "a.map"), file(dataplane.Certificate, "a")...)...)
	require.NoError(t, err)
}

// Wherever a control character stands, it is found, and nothing else is.
func TestNewConfigFindsControls(t *testing.T) {
	t.Parallel()
	for at := range 40 {
		for c := range 256 {
			text := strings.Repeat("x", at) + string([]byte{byte(c)}) + strings.Repeat("\xff", 40-at) + "\n"
			_, err := dataplane.NewConfig(text)
			bad := c < 0x20 && c != '\t' && c != '\n' || c == 0x7f
			require.Equal(t, bad, err != nil, "%q at %d: %v", c, at, err)
			if bad {
				require.ErrorContains(t, err, fmt.Sprintf("in column %d", at+1))
			}
		}
	}
}

func TestFileNames(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"a.pem": true, "A-b_9.pem": true, "noext": true, "": false, ".pem": false, "a.b.pem": false, "a b.pem": false,
		"../a.pem": false, "a/b": false, "é.pem": false, "\xff.pem": false, "a.": true,
		strings.Repeat("x", 255): true, strings.Repeat("x", 256): false,
	} {
		err := dataplane.CheckFileName(dataplane.Certificate, name)
		require.Equal(t, ok, err == nil, "%q: %v", name, err)
	}
	for _, kind := range []dataplane.FileKind{dataplane.Map, dataplane.Certificate, dataplane.CA, dataplane.CRTList, dataplane.General} {
		name := dataplane.FileName(kind, "*.Shop.example/é")
		require.NoError(t, dataplane.CheckFileName(kind, name))
		require.True(t, strings.HasPrefix(name, "__Shop_example__."), name)
	}
}

func FuzzFileName(f *testing.F) {
	f.Add("shop.example.com")
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" || len(text) > 200 {
			return
		}
		if err := dataplane.CheckFileName(dataplane.CRTList, dataplane.FileName(dataplane.CRTList, text)); err != nil {
			t.Error(err)
		}
	})
}

func TestConfigHash(t *testing.T) {
	t.Parallel()
	m := func(content string) dataplane.File {
		return dataplane.File{Kind: dataplane.Map, Name: "a.map", Content: []byte(content)}
	}
	g := dataplane.File{Kind: dataplane.General, Name: "a.txt"}
	hash := func(main string, files ...dataplane.File) string {
		c, err := dataplane.NewConfig(main, files...)
		require.NoError(t, err)
		return c.Hash()
	}
	require.Equal(t, hash("global\n", m("x"), g), hash("global\n", g, m("x")))
	seen := map[string]bool{}
	for _, h := range []string{hash("global\n"), hash("global \n"), hash("global\n", m("x")), hash("global\n", m("y")), hash("global\n", g)} {
		require.False(t, seen[h])
		seen[h] = true
	}
}

// Nothing that prints a configuration or a file prints what is in it.
func TestConfigKeepsSecrets(t *testing.T) {
	t.Parallel()
	file := dataplane.File{Kind: dataplane.Certificate, Name: "a.pem", Content: []byte("hunter2")}
	config, err := dataplane.NewConfig("global\n  setenv X hunter2\n", file)
	require.NoError(t, err)
	raw, err := json.Marshal(map[string]any{"file": file, "config": config})
	require.NoError(t, err)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "config", config, "file", file)
	for _, text := range []string{string(raw), log.String(), fmt.Sprintf("%v %+v %#v %s %x", config, config, config, config, config.Files()),
		fmt.Sprintf("%v %+v %#v %s %x %q", file, file, file, file, file, file)} {
		require.NotContains(t, text, "hunter2")
		require.NotContains(t, text, fmt.Sprintf("%x", "hunter2"))
	}
	require.Contains(t, log.String(), "certificate a.pem (7 bytes)")
}

func TestLayout(t *testing.T) {
	t.Parallel()
	var l dataplane.Layout
	require.Equal(t, "/etc/haproxy/haproxy.cfg", l.ConfigPath())
	require.Equal(t, "/etc/haproxy/maps/a.map", l.Path(dataplane.Map, "a.map"))
	require.Equal(t, "/etc/haproxy/ssl/a.pem", l.Path(dataplane.Certificate, "a.pem"))
	require.Equal(t, "/etc/haproxy/general/a.txt", l.Path(dataplane.CRTList, "a.txt"))
	l = dataplane.Layout{Base: "/srv", Maps: "/maps"}
	require.Equal(t, "/maps/a.map", l.Path(dataplane.Map, "a.map"))
	require.Equal(t, "/srv/general/a.pem", l.Path(dataplane.CA, "a.pem"))
}

func TestErrors(t *testing.T) {
	t.Parallel()
	e := &dataplane.Error{Endpoint: "local", Stage: "reload", File: "haproxy.cfg", Line: 7, Status: 400, Output: "unknown keyword", Err: dataplane.ErrReload}
	require.EqualError(t, e, "local: reload: haproxy.cfg:7: reload failed (status 400): unknown keyword")
	require.EqualError(t, &dataplane.Error{Stage: "files", File: "a.map"}, "files: a.map: failed")
	require.ErrorIs(t, fmt.Errorf("wrapped: %w", e), dataplane.ErrReload)

	status := func(n int) error { return &dataplane.Error{Status: n} }
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {e, false}, {dataplane.ErrInvalid, false}, {dataplane.ErrUnauthorized, false}, {dataplane.ErrUnsupported, false},
		{context.Canceled, false}, {errors.New("other"), false}, {status(400), false}, {status(422), false},
		{dataplane.ErrConflict, true}, {dataplane.ErrNotRunning, true}, {context.DeadlineExceeded, true},
		{status(409), true}, {status(429), true}, {status(503), true},
		{&dataplane.Error{Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, true},
		{&dataplane.Error{Err: &fs.PathError{Op: "write", Path: "a.map", Err: syscall.ENOSPC}}, true},
	} {
		require.Equal(t, tt.want, dataplane.Retryable(tt.err), "%v", tt.err)
	}
}

func TestImpactText(t *testing.T) {
	t.Parallel()
	for _, i := range []dataplane.Impact{dataplane.ImpactNone, dataplane.ImpactRuntime, dataplane.ImpactReload} {
		text, err := i.MarshalText()
		require.NoError(t, err)
		var again dataplane.Impact
		require.NoError(t, again.UnmarshalText(text))
		require.Equal(t, i, again)
		require.Equal(t, string(text), i.String())
	}
	_, err := dataplane.Impact(9).MarshalText()
	require.Error(t, err)
	require.Equal(t, "impact(9)", dataplane.Impact(9).String())
	require.Error(t, new(dataplane.Impact).UnmarshalText([]byte("boom")))
}

func TestEmptyPlanAndResult(t *testing.T) {
	t.Parallel()
	var p *dataplane.Plan
	require.True(t, p.Empty())
	require.Equal(t, "no changes", p.Summary())
	require.Equal(t, "No changes.\n", p.String())
	require.Equal(t, dataplane.ImpactNone, p.Impact())
	require.Equal(t, "nothing done", (*dataplane.Result)(nil).String())
	require.Equal(t, "configuration 1234 in 0s: no changes; 1 reload, 2 commands, 0 files", (&dataplane.Result{Hash: "1234", Reloads: 1, Commands: 2}).String())
}
