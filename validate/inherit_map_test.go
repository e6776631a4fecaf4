package validate

import "testing"

// Who may read a map is told by the text; where it does not tell, haproxy is asked.
func TestOnlyStringMaps(t *testing.T) {
	t.Parallel()
	const use = "  http-request set-header x %[path,map_beg(/etc/haproxy/maps/m.map)]\n"
	for text, want := range map[string]bool{
		use: true,
		use + "  http-request set-header y %[path,map_reg(/etc/haproxy/maps/m.map)]\n": false,
		use + "  http-request deny if { path -f /etc/haproxy/maps/m.map }\n":           false,
		use + "  # a comment\n  use_backend \"$NAME\"\n":                               false,
		"global\n  lua-load /srv/x.lua\n" + use:                                        false,
		use + "  http-request deny if { path_reg '^/x$' }\n":                           true,
	} {
		others := notByStringMaps(text)
		if got := others != nil && !others["m.map"]; got != want {
			t.Errorf("%s\ngot %v", text, got)
		}
	}
}
