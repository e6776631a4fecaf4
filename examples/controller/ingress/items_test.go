package ingress

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/dataplane"
)

// TestEachOf: templates say by what they print whether they are for one item.
func TestEachOf(t *testing.T) {
	engine, err := Compile(fstest.MapFS{
		"haproxy.cfg":                {Data: []byte("global\n")},
		"haproxy.d/backend.cfg":      {Data: []byte("backend {{ backend.Name }}\n    # of {{ len(backends) }}\n")},
		"maps/exact.map":             {Data: []byte("{% if route != nil %}{{ route.Key }} x\n{% end %}")},
		"maps/prefix.map":            {Data: []byte("{% for route in prefix %}{{ route.Key }} x\n{% end %}")},
		"maps/hosts.map":             {Data: []byte("{% for host in hosts %}{{ host.Name }} x\n{% end %}")},
		"crt-lists/certificates.txt": {Data: []byte("# none\n")},
	}, dataplane.Layout{})
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"haproxy.d/backend.cfg": true, "maps/exact.map": true, "maps/prefix.map": false,
		"maps/paths_reg.map": false, "haproxy.d/userlist.cfg": false, "maps/hosts.map": false, "maps/wildcards.map": false, "crt-lists/certificates.txt": false,
		"haproxy.d/tcp.cfg": false, "maps/names-exact.map": false, "maps/names-prefix.map": false, "maps/names_reg.map": false, "maps/passed.map": false}, EachOf(engine))
}
