package render

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

func TestCurrentConfig(t *testing.T) {
	cfg, err := dataplane.NewConfig(`global
  maxconn 7 # seven
defaults
  mode http
defaults named
  mode tcp
frontend web
  bind :80
# the shop
backend shop
  default-server check
  server-template t 1-3 192.0.2.9:80
  server a 192.0.2.1:80 weight 7
  server "b c" [2001:db8::1]:80 disabled
  # server d 192.0.2.3:80
  server e 192.0.2.4:80 disabled enabled
  server broken "
  server f
listen both
  bind :81
  server a 192.0.2.5:80
global
  nbthread 2
`, dataplane.File{Kind: dataplane.Map, Name: "hosts.map", Content: []byte("a b\n")})
	require.NoError(t, err)
	c := &CurrentConfig{config: newPrevious(cfg), note: func(any, any) {}}
	require.Equal(t, []CurrentServer{
		{Name: "a", Address: "192.0.2.1:80", Options: []string{"weight", "7"}},
		{Name: "b c", Address: "[2001:db8::1]:80", Disabled: true, Options: []string{"disabled"}},
		{Name: "e", Address: "192.0.2.4:80", Options: []string{"disabled", "enabled"}},
	}, c.Servers("backend", "shop"))
	require.Len(t, c.Servers("listen", "both"), 1)
	require.Empty(t, c.Servers("backend", "both"))
	require.Equal(t, []string{"shop"}, c.Sections("backend"))
	require.Equal(t, []string{"", "named"}, c.Sections("defaults"))
	require.Empty(t, c.Sections("peers"))
	require.Equal(t, &CurrentSection{Kind: "global", Lines: [][]string{{"maxconn", "7"}, {"nbthread", "2"}}}, c.Section("global", ""))
	require.Equal(t, &CurrentSection{Kind: "frontend", Name: "web", Lines: [][]string{{"bind", ":80"}}}, c.Section("frontend", "web"))
	require.Nil(t, c.Section("backend", "web"))
	require.Equal(t, "a b\n", c.File("map", "hosts.map"))
	require.Empty(t, c.File("map", "other.map"))
	require.Panics(t, func() { c.File("page", "x") })
	names := c.Sections("backend")
	names[0] = "changed"
	require.Equal(t, []string{"shop"}, c.Sections("backend"), "what a template changes is its own")

	var none *CurrentConfig
	require.Nil(t, none.Section("global", ""))
	require.Empty(t, none.Sections("backend"))
	require.Empty(t, none.Servers("backend", "shop"))
	require.Empty(t, none.File("map", "hosts.map"))
}

func FuzzCurrentConfig(f *testing.F) {
	f.Add("backend a\n server a 1:1\n", "backend", "a")
	f.Add("# x\nbackend 'a b' # c\n server \"a\\\" b\n\"backend\" a\n", "backend", "a b")
	f.Add("server a b c\nglobal", "global", "")
	f.Fuzz(func(t *testing.T, text, kind, name string) {
		cfg, err := dataplane.NewConfig(text)
		if err != nil {
			return
		}
		c := &CurrentConfig{config: newPrevious(cfg), note: func(any, any) {}}
		section, servers := c.Section(kind, name), c.Servers(kind, name)
		if section == nil {
			require.Empty(t, servers)
			require.NotContains(t, c.Sections(kind), name)
			return
		}
		require.Contains(t, c.Sections(kind), name)
		n := 0
		for _, words := range section.Lines {
			if words[0] == "server" && len(words) >= 3 {
				require.Equal(t, words[1], servers[n].Name)
				require.Equal(t, words[2], servers[n].Address)
				n++
			}
		}
	})
}

// FuzzRegister: whatever the name and the content, what is registered can be in
// a configuration, below its folder.
func FuzzRegister(f *testing.F) {
	f.Add("map", "hosts.map", "a b\n")
	f.Add("file", "../x", "\x00")
	f.Add("crt-list", "a.txt", "x [a]\n")
	f.Fuzz(func(t *testing.T, kind, name, content string) {
		for _, c := range []any{content, []string{content, content}, map[string]string{content: content}} {
			r := newFileRegistry(dataplane.Layout{}, nil)
			r.begin("haproxy.cfg")
			file, err := newFile(kind, name, c)
			if err != nil {
				continue
			}
			require.NoError(t, r.add(file))
			require.NoError(t, r.add(file))
			files, err := r.with(nil, []piece{{madeTexts: &madeTexts{chunks: []*chunk{{items: []any{nil}, texts: []*text{{files: r.made()}}}}}}})
			require.NoError(t, err)
			_, err = dataplane.NewConfig("global\n", files...)
			require.NoError(t, err)
			if lines, ok := c.([]string); ok {
				require.Equal(t, lines[0]+"\n"+lines[1]+"\n", string(file.Content))
			}
		}
	})
}
