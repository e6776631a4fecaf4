package render

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hapticsdk/haptic/templating"
)

// TestFilesAreReadAsTheirNamesSay has values in a file that HAProxy reads for
// something else than they are escaped for.
func TestFilesAreReadAsTheirNamesSay(t *testing.T) {
	const maps, general = "/srv/haproxy/maps/", "/srv/haproxy/general/"
	for line, refused := range map[string]string{
		"use_backend %[path,map_reg(" + maps + "a.map)]":                       "*_reg.map",
		"use_backend %[path,map_reg(" + maps + "a_reg.map,none)]":              "",
		"use_backend %[path,map_regm(" + maps + "a.map)]":                      "*_reg.map",
		"use_backend %[path,map_reg_int('" + maps + "a.map')]":                 "*_reg.map",
		"use_backend %[path,lower,map(" + maps + "a.map)]":                     "",
		"use_backend %[path,map_beg(" + maps + "a.map)]":                       "",
		"use_backend %[path,map_str(" + maps + "a_reg.map)]":                   "*.map",
		"use_backend %[path,map_str(" + general + "a.lst)]":                    "*.map",
		"http-request deny if { path_reg -f " + general + "a.lst }":            "*_reg.lst",
		"http-request deny if { path_reg -i -f " + general + "a_reg.lst }":     "",
		"http-request deny if { path -m reg -f " + general + "a.acl }":         "*_reg.lst",
		"http-request deny if { path_reg a } { path -f " + general + "a.lst }": "",
		"acl a path -i -f " + general + "a.http":                               "*.lst",
		"acl a path -i -f " + general + "a.lst":                                "",
		"acl a src -f /etc/blocked":                                            "",
		"http-request return lf-file " + general + "a.html":                    "*_lf.html",
		"http-request return lf-file " + general + "a_lf.html":                 "",
		"http-request return file " + general + "a.html":                       "",
		"bind :443 ssl crt-list " + general + "a.lst":                          "*.txt",
		"bind :443 ssl crt-list " + general + "a.txt":                          "",
		"# map_reg(" + maps + "a.map)":                                         "",
	} {
		for _, entry := range []string{"haproxy.cfg", "haproxy.d/a.cfg"} {
			texts := map[string]string{"haproxy.cfg": "global\n", entry: "frontend f\n  " + line + "\n"}
			_, err := site(t, texts, nil, &Input{}).Render(t.Context())
			if refused == "" {
				require.NoError(t, err, line)
				continue
			}
			require.ErrorContains(t, err, refused, line)
			require.Equal(t, entry, templating.Errors(err)[0].File)
		}
	}
}

// TestPartsOfTheConfigurationSaySo: the rules of haproxy.cfg are for names that end in .cfg.
func TestPartsOfTheConfigurationSaySo(t *testing.T) {
	templates := site(t, map[string]string{"haproxy.cfg": "global\n", "haproxy.d/a.tmpl": "\n"}, nil, &Input{})
	require.ErrorContains(t, templates.Check(), "ends in .cfg")
}
