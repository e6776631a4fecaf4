package validate

import (
	"testing"

	"github.com/hapticsdk/haptic/dataplane"
)

// Who may read a map is told by the text; where it does not tell, haproxy is asked.
func TestOnlyStringMaps(t *testing.T) {
	t.Parallel()
	const use = "frontend f\n  http-request set-header x %[path,map_beg(/etc/haproxy/maps/m.map)]\n"
	for text, want := range map[string]bool{
		use: true,
		use + "  http-request set-header y %[path,map_reg(/etc/haproxy/maps/m.map)]\n":                                  false,
		use + "  http-request deny if { path -f /etc/haproxy/maps/m.map }\n":                                            false,
		use + "  http-request deny if { path -M -f /etc/haproxy/maps/m.map }\n":                                         false,
		use + "  http-request set-map(/etc/haproxy/maps/m.map) %[path] x\n":                                             false,
		use + "  http-request set-header y \"%[path,map(/etc/haproxy/maps/m.map),map_sub(/etc/haproxy/maps/m.map)]\"\n": true,
		use + "  http-request set-header y %[path,map(/etc/haproxy/maps/m.map),map_int(/etc/haproxy/maps/m.map)]\n":     false,
		use + "  # a comment\n  use_backend \"$NAME\"\n":                                                                false,
		"global\n  lua-load /srv/x.lua\n" + use:                                                                         false,
		use + "  http-request deny if { path_reg '^/x$' }\n":                                                            true,
	} {
		of := func(entries string) *dataplane.Config {
			cfg, err := dataplane.NewConfig(text, dataplane.File{Kind: dataplane.Map, Name: "m.map", Content: []byte(entries)})
			if err != nil {
				t.Fatal(err)
			}
			return cfg
		}
		if got := inherits(t.Context(), of("a b\n"), of("a c\n")); got != want {
			t.Errorf("%s\ngot %v", text, got)
		}
	}
}
