package dataplane_test

import (
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

func ExampleReadConfig() {
	folder := fstest.MapFS{ // or os.DirFS("/etc/haproxy")
		"haproxy.cfg":      {Data: []byte("frontend web\n    bind :443 ssl crt-list /etc/haproxy/general/list.txt\n")},
		"general/list.txt": {Data: []byte("/etc/haproxy/ssl/shop.pem\n")},
		"ssl/shop.pem":     {Data: []byte("...")},
		"maps/hosts.map":   {Data: []byte("shop.example.com shop\n")},
	}
	config, err := dataplane.ReadConfig(folder, "haproxy.cfg")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range config.Files() {
		fmt.Println(f.Kind, f.Name)
	}
	// Output:
	// certificate shop.pem
	// crt-list list.txt
	// map hosts.map
}

func TestReadConfig(t *testing.T) {
	t.Parallel()
	const text = `frontend f
    bind :1 ssl crt-list general/odd.list crt-list general/list.txt ca-file /x/general/a.pem ca-verify-file general/b.pem
`
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	folder := fstest.MapFS{
		"etc/new.cfg": file(text), "etc/haproxy.cfg": file("global\n"),
		"etc/general/odd.list": file("1"), "etc/general/list.txt": file("2"), "etc/general/a.pem": file("3"),
		"etc/general/b.pem": file("4"), "etc/general/page.http": file("5"), "etc/general/..data/x": file("6"), "etc/general/.swp": file("7"),
		"etc/maps/m.map": file("8"),
	}
	c, err := dataplane.ReadConfig(folder, "etc/new.cfg")
	require.NoError(t, err)
	require.Equal(t, text, c.Main())
	got := map[string]dataplane.FileKind{}
	for _, f := range c.Files() {
		got[f.Name+" "+string(f.Content)] = f.Kind
	}
	require.Equal(t, map[string]dataplane.FileKind{
		"odd.list 1": dataplane.General, "list.txt 2": dataplane.CRTList, "a.pem 3": dataplane.CA, "b.pem 4": dataplane.CA,
		"page.http 5": dataplane.General, "m.map 8": dataplane.Map,
	}, got)

	_, err = dataplane.ReadConfig(folder, "etc/missing.cfg")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "etc/missing.cfg")
	for name, want := range map[string]string{
		"etc/maps/m.txt":   `"m.txt": the name must end in .map`,
		"etc/ssl/deep/x":   "etc/ssl/deep is a folder",
		"etc/ssl/a.b.pem":  `"a.b.pem": only letters`,
		"etc/maps/a b.map": `"a b.map": only letters`,
	} {
		folder[name] = file("x")
		_, err = dataplane.ReadConfig(folder, "etc/new.cfg")
		require.ErrorIs(t, err, dataplane.ErrInvalidConfig)
		require.ErrorContains(t, err, want)
		delete(folder, name)
	}
}
